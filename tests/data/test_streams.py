"""Tables read block by block say what tables read at once say."""

import gzip
import itertools

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch
from torch.testing import assert_close

from ansatz.data import Batch, Preprocessor, infer_columns, read_table, row_keys, split_rows
from ansatz.data.split import HashSplit
from ansatz.data.streams.available import estimate_bytes, parse_bytes, reason_to_stream
from ansatz.data.streams.block_source import BlockSource
from ansatz.data.streams.blocks import open_blocks, read_blocks, stream_folder
from ansatz.data.streams.chunks import chunks
from ansatz.data.streams.learner import Learner, Moments
from ansatz.data.streams.survey import RowSample, Survey
from ansatz.errors import DataError, ResourceError, UsageError


def table(rows=1_500, seed=0):
    """Every kind of column that a reader has to tell apart."""
    rng = np.random.default_rng(seed)
    words = rng.choice(["plain", 'a "quoted" one', "two\nlines", "cut, here"], rows)
    return pd.DataFrame(
        {
            "number": rng.normal(1e3, 1.0, rows),
            "gaps": pd.Series(rng.normal(size=rows)).where(rng.random(rows) > 0.2),
            "count": rng.poisson(3, rows),
            "late": np.where(np.arange(rows) < rows // 2, "", rng.integers(9, size=rows)),
            "marked": np.where(rng.random(rows) < 0.1, "NA", rng.integers(9, size=rows)),
            "words": words,
            "levels": np.char.add("L", rng.integers(30, size=rows).astype(str)),
            "truth": rng.random(rows) > 0.5,
            "day": pd.date_range("2020-01-01", periods=rows, freq="7h").strftime("%Y-%m-%d %H:%M"),
            "id": np.arange(rows),
            "one": 1,
        }
    )


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "t.csv"
    table().to_csv(path, index=False)
    return path


def whole(blocks):
    return pd.concat(list(blocks.frames()))


# --- reading ------------------------------------------------------------------------------------


@pytest.mark.parametrize("block_bytes", [700, 5_000, 10**6])
def test_blocks_of_a_csv_hold_the_cells_of_the_whole(csv, tmp_path, block_bytes):
    blocks = open_blocks(csv, tmp_path, block_bytes=block_bytes)
    expected = read_table(csv).frame
    pd.testing.assert_frame_equal(whole(blocks), expected, check_index_type=False)
    assert (len(blocks) > 1) == (block_bytes < 10**6)


def test_a_gzipped_csv_is_read_alike(csv, tmp_path):
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(csv.read_bytes()))
    frames = list(read_blocks(packed, block_bytes=9_000))
    expected = read_table(csv).frame
    pd.testing.assert_frame_equal(
        pd.concat(frames)[["words", "count"]], expected[["words", "count"]], check_index_type=False
    )


def test_a_damaged_gzip_is_named(csv, tmp_path):
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(csv.read_bytes())[:-2_000])
    with pytest.raises(DataError, match=r"damaged gzip file"):
        list(read_blocks(packed, block_bytes=9_000))


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1", "utf-8-sig"])
def test_other_encodings_and_line_ends_are_read_as_in_memory(tmp_path, encoding):
    path = tmp_path / "t.csv"
    rows = "".join(f"{k},caf\xe9{k % 3}\r\n" for k in range(400))
    path.write_bytes(("a,b\r\n" + rows).encode(encoding))
    blocks = open_blocks(path, tmp_path, block_bytes=300)
    expected = read_table(path).frame
    pd.testing.assert_frame_equal(whole(blocks), expected, check_index_type=False)


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_quoted_line_ends_are_kept_whatever_the_delimiter(tmp_path, mark):
    path = tmp_path / "t.csv"
    rows = "".join(f'{k}{mark}"x\n{k}"\n' for k in range(200))
    path.write_text(f"a{mark}b\n{rows}")
    frames = list(read_blocks(path, block_bytes=100))
    assert pd.concat(frames)["b"].tolist() == [f"x\n{k}" for k in range(200)]


def test_a_quote_within_a_cell_opens_nothing(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "".join(f'{k},5" pipe\n' for k in range(200)))
    assert len(pd.concat(list(read_blocks(path, block_bytes=100)))) == 200


def test_chunks_join_to_the_text(csv):
    found = list(chunks(csv, "t.csv", size=1_000))
    text = csv.read_bytes()
    assert b"".join(chunk.text for chunk in found) == text
    ends = np.cumsum([len(chunk.text) for chunk in found])
    assert [p.lines_before for p in found[1:]] == [text.count(b"\n", 0, e) for e in ends[:-1]]


def test_a_word_among_numbers_is_named_by_its_row_in_any_block(tmp_path):
    path = tmp_path / "t.csv"
    cells = [f"{k}.5" for k in range(2_000)]
    cells[1_717] = "oops"
    path.write_text("a,b\n" + "".join(f"{cell},1\n" for cell in cells))
    message = r"t.csv, row 1718, column 'a': expected a number.*got 'oops'.*--missing oops"
    with pytest.raises(DataError, match=message):
        list(read_blocks(path, block_bytes=1_000))
    with pytest.raises(DataError, match=r"row 1718, column 'a'"):
        read_table(path)


def test_words_for_half_of_a_later_block_are_refused_too(tmp_path):
    path = tmp_path / "t.csv"
    cells = [str(k) for k in range(500)] + ["yes", "no"] * 250
    path.write_text("a,b\n" + "".join(f"{cell},1\n" for cell in cells))
    with pytest.raises(DataError, match=r"row 501, column 'a'.*--role a=categorical"):
        list(read_blocks(path, block_bytes=1_000))


def test_a_ragged_row_is_named_by_its_line_in_any_block(tmp_path):
    path = tmp_path / "t.csv"
    lines = [f"{k},1\n" for k in range(900)]
    lines[777] = "1,2,3\n"
    path.write_text("a,b\n" + "".join(lines))
    with pytest.raises(DataError, match=r"t.csv, line 779: 3 cells, expected 2"):
        list(read_blocks(path, block_bytes=500))


def test_missing_cells_are_counted_over_all_blocks(csv, tmp_path):
    notes = open_blocks(csv, tmp_path, block_bytes=3_000).notes
    assert sorted(notes) == sorted(read_table(csv).notes)


def test_row_groups_of_parquet_are_the_blocks(tmp_path):
    path = tmp_path / "t.parquet"
    frame = table()
    frame.to_parquet(path, row_group_size=400)
    blocks = open_blocks(path, tmp_path)
    assert blocks.counts == [400, 400, 400, 300]
    expected = read_table(path).frame
    pd.testing.assert_frame_equal(whole(blocks), expected, check_index_type=False)


def test_large_row_groups_are_written_anew(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"a": np.arange(80_000)}).to_parquet(path)
    blocks = open_blocks(path, tmp_path, largest_group=10_000)
    assert len(blocks) == 3 and whole(blocks)["a"].tolist() == list(range(80_000))


def test_batches_of_arrow_files_are_the_blocks(tmp_path):
    path = tmp_path / "t.arrow"
    frame = pa.table({"a": [1, 2, None, 4], "b": ["x", None, "y", "x"]})
    with pa.ipc.new_file(path, frame.schema) as writer:
        writer.write_table(frame, max_chunksize=2)
    blocks = open_blocks(path, tmp_path)
    assert blocks.counts == [2, 2]
    assert blocks.read(0)["a"].dtype == np.float64  # one is missing in the other block


def test_parts_in_a_folder_are_one_table_whatever_the_order_of_their_columns(tmp_path):
    parts = tmp_path / "parts"
    parts.mkdir()
    pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}).to_parquet(parts / "1.parquet")
    pd.DataFrame({"b": ["z"], "a": [3]}).to_parquet(parts / "2.parquet")
    for data in (parts, f"{parts}/*.parquet"):
        frame = whole(open_blocks(data, tmp_path))
        assert frame["a"].tolist() == [1, 2, 3] and frame["b"].tolist() == ["x", "y", "z"]
    pd.DataFrame({"a": [3]}).to_parquet(parts / "3.parquet")
    with pytest.raises(DataError, match=r"3.parquet lacks the column 'b'"):
        open_blocks(parts, tmp_path)


def test_a_part_with_words_for_numbers_is_refused(tmp_path):
    parts = tmp_path / "parts"
    parts.mkdir()
    pd.DataFrame({"a": [1.5, 2.5]}).to_parquet(parts / "1.parquet")
    pd.DataFrame({"a": ["3.5", "n/a"]}).to_parquet(parts / "2.parquet")
    with pytest.raises(DataError, match=r"row 4, column 'a': expected a number.*got 'n/a'"):
        open_blocks(parts, tmp_path)


def test_empty_row_groups_are_no_blocks(tmp_path):
    path = tmp_path / "t.parquet"
    schema = pa.schema([("a", pa.int64())])
    with pa.parquet.ParquetWriter(path, schema) as writer:
        for values in ([1, 2], [], [3]):
            writer.write_table(pa.table({"a": values}, schema=schema))
    blocks = open_blocks(path, tmp_path)
    assert blocks.counts == [2, 1] and whole(blocks)["a"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_a_damaged_parquet_file_is_one_line(tmp_path, damage):
    path = tmp_path / "t.parquet"
    table().to_parquet(path, row_group_size=500)
    content = bytearray(path.read_bytes())
    if damage == "cut":
        content = content[: len(content) // 2]
    else:
        content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
    path.write_bytes(bytes(content))
    with pytest.raises(DataError, match=r"t.parquet is not a readable Parquet file: [^\n]*$"):
        whole(open_blocks(path, tmp_path))


def test_a_full_disk_is_noted(tmp_path, csv):
    try:
        full = open("/dev/full", "wb")
    except OSError:
        pytest.skip("no /dev/full")
    full.close()
    (tmp_path / "blocks").symlink_to("/dev/full")
    with pytest.raises(ResourceError, match=r"the disk is full"):
        open_blocks(csv, tmp_path)


def test_the_folder_of_blocks_is_gone_even_after_an_error(tmp_path):
    with pytest.raises(RuntimeError), stream_folder(tmp_path / "model") as folder:
        (folder / "blocks").write_bytes(b"x")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


# --- what is learned ----------------------------------------------------------------------------


def test_columns_play_the_roles_that_they_play_in_memory(csv, tmp_path):
    survey = Survey()
    open_blocks(csv, tmp_path, watch=survey.add, block_bytes=3_000)
    assert survey.columns() == infer_columns(read_table(csv).frame)


def test_roles_that_were_asked_for_are_kept(tmp_path):
    frame = pd.DataFrame({"a": [1, 2, 3] * 20, "b": ["lo", "hi", "lo"] * 20, "c": 1.0})
    roles = {"a": "categorical", "b": "lo<hi", "c": "drop"}
    survey = Survey(roles)
    survey.add(frame.iloc[:7])
    survey.add(frame.iloc[7:])
    assert survey.columns() == infer_columns(frame, roles=roles)
    with pytest.raises(DataError, match=r"row 3, column 'b': 'mid' is not among"):
        Survey(roles).add(pd.DataFrame({"a": [1] * 3, "b": ["lo", "hi", "mid"], "c": 1.0}))


def test_free_text_is_refused_as_in_memory():
    frame = pd.DataFrame({"a": [f"once upon a time {k}" for k in range(50)], "b": range(50)})
    survey = Survey()
    survey.add(frame)
    with pytest.raises(DataError, match=r"column holds free text: 'a'"):
        survey.columns()


def test_the_preprocessor_is_that_of_all_rows_at_once(csv, tmp_path):
    frame = read_table(csv).frame
    columns = infer_columns(frame)
    weight = np.random.default_rng(1).integers(1, 4, len(frame)).astype(float)
    expected = Preprocessor.fit(frame, columns, weight=weight).state()
    learner = Learner(columns)
    for block in open_blocks(csv, tmp_path, block_bytes=3_000).frames():
        learner.add(block, weight[block.index])
    found = learner.preprocessor().state()
    numbers, others = found.pop("numeric"), expected.pop("numeric")
    assert found == expected and numbers["masked"] == others["masked"]
    for name in ("center", "scale", "fill"):
        np.testing.assert_allclose(numbers[name], others[name], rtol=1e-10, atol=1e-10)


def test_bent_columns_take_their_curve_from_the_sample():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.lognormal(size=400), "b": rng.normal(size=400)})
    columns = infer_columns(frame)
    learner = Learner(columns, quantile=["a"])
    learner.add(frame.iloc[:150])
    learner.add(frame.iloc[150:])
    expected = Preprocessor.fit(frame, columns, quantile=["a"])
    assert_close(
        learner.preprocessor(frame).transform(frame)[0],
        expected.transform(frame)[0],
        rtol=0,
        atol=1e-5,
    )


@pytest.mark.parametrize("shift", [0.0, 1e8])
def test_moments_of_blocks_are_those_of_all(shift):
    rng = np.random.default_rng(0)
    x, w = rng.normal(shift, 1.0, (999, 3)), rng.uniform(0.5, 2.0, 999)
    x[rng.random(x.shape) < 0.1] = np.nan
    x[:500, 2] = np.nan
    moments = Moments(3)
    for first in range(0, 999, 100):
        moments.add(x[first : first + 100], w[first : first + 100])
    for j in range(3):
        known = ~np.isnan(x[:, j])
        mean = np.average(x[known, j], weights=w[known])
        sd = np.sqrt(np.average((x[known, j] - mean) ** 2, weights=w[known]))
        np.testing.assert_allclose(moments.mean[j], mean, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(moments.deviation[j], sd, rtol=1e-7 if shift else 1e-12)
        assert moments.missing[j] == (~known).sum()


# --- the split and the sample -------------------------------------------------------------------


def test_the_split_differs_from_that_in_memory_only_between_the_cuts():
    keys = row_keys(table(5_000), seed=3)
    exact = split_rows(keys, seed=3, test=0.2, valid=0.1)
    parts = HashSplit(3, 0.2, 0.1).parts(keys)
    for number, rows in enumerate(exact):
        inside = (parts == number).sum()
        # Both cut the same order: one of the two sets holds the other but for the cuts' shift.
        assert abs(inside - len(rows)) <= 4 * np.sqrt(5_000 * 0.25)
        assert np.mean(parts[rows] == number) > 1 - 4 * np.sqrt(5_000 * 0.25) / len(rows)
    here, there = set(np.flatnonzero(parts == 2)), set(exact.test)
    assert here <= there or there <= here


def test_groups_and_duplicates_fall_on_one_side():
    groups = pd.Series(np.repeat(np.arange(200), 5))
    split = HashSplit(0, 0.3, 0.2)
    parts = split.parts(split.group_keys(groups, np.arange(1_000)))
    assert (parts.reshape(200, 5) == parts.reshape(200, 5)[:, :1]).all()
    assert len(np.unique(parts)) == 3
    copies = split.parts(row_keys({"a": [1, 2, 1, 2, 1]}, seed=0))
    assert copies[0] == copies[2] == copies[4] and copies[1] == copies[3]


@pytest.mark.parametrize("cuts", [(0, 1_000), (0, 10, 500, 999, 1_000)])
def test_a_sample_does_not_depend_on_the_blocks(cuts):
    frame = pd.DataFrame({"a": np.arange(1_000)})
    sample = RowSample(50, seed=7)
    for first, last in itertools.pairwise(cuts):
        sample.add(frame.iloc[first:last])
    at_once = RowSample(50, seed=7)
    at_once.add(frame)
    assert sample.frame["a"].tolist() == at_once.frame["a"].tolist()
    assert len(sample.frame) == 50 and not sample.complete


def test_every_row_has_the_same_chance_to_be_sampled():
    frame, times = pd.DataFrame({"a": np.arange(100)}), np.zeros(100)
    for seed in range(400):
        sample = RowSample(20, seed=seed)
        sample.add(frame)
        times[sample.frame["a"]] += 1
    spread = np.sqrt(400 * 0.2 * 0.8)  # binomial
    assert (np.abs(times - 80) < 4.5 * spread).all()


# --- batches ------------------------------------------------------------------------------------


def source(counts, batch_size=7, **options):
    ends = np.cumsum([0, *counts])
    blocks = [
        Batch.of(torch.arange(a, b, dtype=torch.float64).unsqueeze(1), torch.arange(a, b) * 1.0)
        for a, b in itertools.pairwise(ends)
    ]
    reads = []

    def read(block):
        reads.append(block)
        return blocks[block]

    return BlockSource(read, counts, batch_size, **options), reads


COUNTS = [10, 0, 3, 25, 1, 8, 13]


def test_an_epoch_holds_every_row_once_in_full_batches():
    found, _ = source(COUNTS, seed=1, window=2)
    batches = list(found.batches(0))
    assert [len(b.index) for b in batches] == [7] * 8 + [4] and len(found) == 9
    assert sorted(torch.cat([b.target for b in batches]).tolist()) == list(range(60))
    for batch in batches:
        assert_close(batch.inputs[0][:, 0], batch.target)


@pytest.mark.parametrize("start", range(10))
def test_an_epoch_can_be_entered_at_any_batch_bit_for_bit(start):
    found, reads = source(COUNTS, seed=5, window=2)
    all_batches = list(found.batches(3))
    reads.clear()
    later = list(found.batches(3, start))
    assert len(later) == max(0, 9 - start)
    for expected, batch in zip(all_batches[start:], later, strict=True):
        assert torch.equal(expected.target, batch.target)
    if start == 8:
        assert len(reads) <= 4  # its window and at most the next, not the epoch from its start


def test_epochs_and_seeds_have_their_own_order():
    orders = [
        torch.cat([b.target for b in source(COUNTS, seed=seed)[0].batches(epoch)]).tolist()
        for seed, epoch in ((0, 0), (0, 1), (1, 0))
    ]
    assert orders[0] != orders[1] and orders[0] != orders[2]


def test_rows_are_mixed_across_the_blocks_of_a_window():
    found, _ = source([100] * 10, batch_size=50, window=5)
    first = next(iter(found.batches(0))).target
    assert len({int(row) // 100 for row in first}) > 3


def test_without_shuffling_the_order_is_the_tables():
    found, _ = source(COUNTS, shuffle=False)
    assert torch.cat([b.target for b in found.batches(0)]).tolist() == list(range(60))


# --- whether to stream --------------------------------------------------------------------------


def test_a_table_streams_by_itself_when_it_is_larger_than_the_limit(tmp_path):
    path = tmp_path / "big.csv"
    path.write_bytes(b"a,b\n" + b"1.5,2.5\n" * (5 * 2**20))
    assert estimate_bytes(path) > 2 * path.stat().st_size
    assert reason_to_stream(path, memory_limit="50MB").startswith("the table would take some")
    assert reason_to_stream(path, memory_limit="4GB") is None
    assert reason_to_stream(path, stream=False, memory_limit="1MB") is None


def test_a_limit_has_a_unit():
    assert parse_bytes("2 GB") == 2 * 2**30
    with pytest.raises(UsageError, match=r"--memory-limit takes a size like 4GB"):
        parse_bytes("much")
