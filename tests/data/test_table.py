import gzip
import os
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansatz.data import read_table
from ansatz.data.csv import Dialect, parse_csv
from ansatz.errors import DataError, MissingExtraError, UsageError


@pytest.fixture
def file(tmp_path):
    def write(content, name="houses.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def parse(content, **options):
    raw = content if isinstance(content, bytes) else content.encode()
    return parse_csv(raw, "houses.csv", Dialect(**options))


REFUSED = {
    "empty": (b"", "is empty"),
    "blank lines only": (b"\n\n \n", "is empty"),
    "header only": (b"a,b\n", "a header but no rows"),
    "short row": (b"a,b\n1,2\n3\n", "line 3: 1 cell, expected 2"),
    "long row": (b"a,b\n1,2\n3,4,5\n", "line 3: 3 cells, expected 2"),
    "first row wider": (b"a,b\n1,2,3\n4,5,6\n", "line 2: 3 cells, expected 2"),
    "wider, then short": (b"a,b\n1,2,3\n4\n", "line 2: 3 cells, expected 2"),
    "long then short, same total": (b"a,b\n1,2\n3,4,5\n6\n", "line 3: 3 cells"),
    "short row after a quoted newline": (b'a,b\n"x\ny",2\nz\n', "line 4: 1 cell"),
    "short row after a stray quote": (b'a,b\nx "y" z,2\n3\n', "line 3: 1 cell"),
    "open quote": (b'a,b\n"x,2\n3,4\n', "line 2.*never closed"),
    "duplicate names": (b"a,b,a\n1,2,3\n", r"2 columns are called 'a' \(columns 1, 3\)"),
    "NUL byte": (b"a,b\n1,2\n3,\0\n", "line 3: contains a NUL byte"),
    "whitespace short": (b"1 2 3\n4 5 6\n7 8\n", "line 3: 2 cells, expected 3.*whitespace"),
}


@pytest.mark.parametrize("content, said", REFUSED.values(), ids=REFUSED)
def test_a_faulty_file_is_refused_with_its_line(content, said):
    with pytest.raises(DataError, match=said):
        parse(content)


ACCEPTED = {
    "one row": "a,b\n1,x\n",
    "no final newline": "a,b\n1,x",
    "CRLF": "a,b\r\n1,x\r\n",
    "CR": "a,b\r1,x\r",
    "semicolon": "a;b\n1;x\n",
    "tab": "a\tb\n1\tx\n",
    "bar": "a|b\n1|x\n",
    "whitespace": "  a   b\n 1 x  \n",
    "blank lines": "\n\na,b\n\n1,x\n\n\n",
    "line of blanks": "a,b\n1,x\n   \n",
    "blanks after the comma": "a, b\n1, x\n",
    "quotes": '"a","b"\n"1","x"\n',
    "UTF-8 mark": b"\xef\xbb\xbfa,b\n1,x\n",
    "UTF-16": "a,b\n1,x\n".encode("utf-16"),
    "UTF-16 big endian": b"\xfe\xff" + "a,b\n1,x\n".encode("utf-16-be"),
    "UTF-32": "a,b\n1,x\n".encode("utf-32"),
}


@pytest.mark.parametrize("content", ACCEPTED.values(), ids=ACCEPTED)
def test_every_way_to_write_a_table_gives_the_same_table(content):
    frame = parse(content).frame
    assert list(frame) == ["a", "b"]
    assert frame.values.tolist() == [[1, "x"]]


def test_latin_1_is_read_and_said():
    parsed = parse("stadt,n\nKöln,1\n".encode("latin-1"))
    assert parsed.frame["stadt"].tolist() == ["Köln"]
    assert "line 2: not UTF-8, read as Latin-1" in parsed.notes[0]


def test_a_wrong_encoding_is_named_with_its_line():
    with pytest.raises(DataError, match="line 2: byte 0xf6 is not utf-8"):
        parse("stadt\nKöln\n".encode("latin-1"), encoding="utf-8")
    with pytest.raises(DataError, match="unknown encoding 'utf-9'"):
        parse("a\n1\n", encoding="utf-9")


def test_a_quoted_cell_may_hold_delimiters_and_lines():
    frame = parse('a,b\n"x, ""y""\nz",2\nw,3\n').frame
    assert frame["a"].tolist() == ['x, "y"\nz', "w"]
    assert frame["b"].tolist() == [2, 3]


def test_a_column_of_names_with_blanks_is_one_column():
    assert parse("name\nAnna Bell\nJohn Smith\n").frame["name"].tolist() == [
        "Anna Bell",
        "John Smith",
    ]


def test_an_empty_name_is_replaced_and_said():
    parsed = parse(",column_1\n1,2\n")
    assert list(parsed.frame) == ["column_1_", "column_1"]
    assert "column 1 has no name" in parsed.notes[0]


def test_a_numeric_header_is_suspected():
    assert "--no-header" in parse("3,4\n1,2\n").notes[0]


def test_columns_without_header_are_numbered_or_named():
    assert list(parse("1,2\n3,4\n", header=False).frame) == ["x1", "x2"]
    assert parse("1,2\n3,4\n", header=False, names=["u", "v"]).frame["v"].tolist() == [2, 4]
    with pytest.raises(DataError, match="3 names were given for 2 columns"):
        parse("1,2\n", header=False, names=["u", "v", "w"])


def test_comment_lines_are_skipped_and_line_numbers_stay_true():
    text = "# made by hand\na,b\n1,2\n# half\n3\n"
    with pytest.raises(DataError, match="line 5: 1 cell"):
        parse(text, comment="#")
    assert parse("#x\na,b\n1,#2\n", comment="#").frame["b"].tolist() == ["#2"]


def test_na_is_missing_among_numbers_and_a_level_among_words():
    parsed = parse("area,country\n1,NA\nNA,DE\n3,None\n")
    assert parsed.frame["area"].isna().tolist() == [False, True, False]
    assert parsed.frame["country"].tolist() == ["NA", "DE", "None"]
    assert any("'area': 1 cells 'NA' read as missing" in note for note in parsed.notes)
    assert any("'country': 2 cells 'NA', 'None' kept as a level" in n for n in parsed.notes)


def test_a_marker_that_is_named_is_missing_everywhere():
    frame = parse("x,s\n?,?\n2,b\n", missing=["?"]).frame
    assert frame["x"].isna().tolist() == frame["s"].isna().tolist() == [True, False]


def test_a_word_among_numbers_is_named_with_row_column_and_advice():
    text = "area\n" + "\n".join(map(str, range(1042))) + "\nn/a\n"
    with pytest.raises(DataError) as caught:
        parse(text)
    assert str(caught.value) == (
        "houses.csv, row 1043, column 'area': expected a number, got 'n/a'. "
        "To read it as missing: --missing n/a"
    )
    assert parse(text, missing=["n/a"]).frame["area"].isna().sum() == 1
    assert parse(text, text=["area"]).frame["area"].iloc[-1] == "n/a"


def test_a_mixture_of_words_and_numbers_is_text_and_said():
    parsed = parse("children\n0\n1\n2\n3+\n")
    assert parsed.frame["children"].tolist() == ["0", "1", "2", "3+"]
    assert "'3+' is not" in parsed.notes[0]


def test_a_decimal_comma_is_suspected_and_can_be_given():
    text = "x;y\n1,5;2\n2,5;3\n3;4\n"
    with pytest.raises(DataError, match=r"row 1, column 'x'.*'1,5'.*--decimal ,"):
        parse(text)
    assert parse(text, decimal=",").frame["x"].tolist() == [1.5, 2.5, 3.0]
    with pytest.raises(UsageError, match="not the delimiter"):
        parse(text, decimal=",", delimiter=",")


def test_true_and_false_keep_their_spelling():
    frame = parse("flag,x\nTRUE,1\n,2\nFALSE,3\n").frame
    assert frame["flag"].dropna().tolist() == ["TRUE", "FALSE"]


def test_integers_beyond_64_bits_are_numbers():
    frame = parse(
        "a,b,c\n18446744073709551616,9223372036854775809,-9223372036854775809\n1,2,3\n"
    ).frame
    assert frame["a"].tolist() == [2.0**64, 1.0]
    assert frame["b"].tolist() == [2.0**63, 2.0]
    assert frame["c"].tolist() == [-(2.0**63), 3.0]


def test_kinds_that_differ_between_chunks_become_one_kind():
    rows = ["1"] * 300_000 + ["x"] * 300_000  # pandas infers kinds chunk by chunk
    frame = parse("a,b\n" + "\n".join(f"{cell},0" for cell in rows)).frame
    assert set(frame["a"].unique()) == {"1", "x"}


def test_text_columns_keep_leading_zeros():
    assert parse("zip,x\n01,1\n02,2\n", text=["zip"]).frame["zip"].tolist() == ["01", "02"]


@pytest.mark.parametrize("quote", ["", '"'], ids=["plain", "quoted"])
@pytest.mark.parametrize("extra", [-1, 1], ids=["short", "long"])
def test_one_bad_row_deep_in_a_large_file_is_found(tmp_path, quote, extra):
    """Parsers read large files in chunks, and know little at the seams."""
    rows = [f"1.5,{quote}a{',' if quote else ''}b{quote},3"] * 120_000
    for at in (65_535, 65_536, 119_999):
        bad = [*rows[:at], ",".join(["1"] * (3 + extra)), *rows[at + 1 :]]
        path = tmp_path / "large.csv"
        path.write_text("a,b,c\n" + "\n".join(bad) + "\n")
        with pytest.raises(DataError, match=f"line {at + 2}: {3 + extra} cells, expected 3"):
            read_table(path, delimiter=",")


@pytest.mark.slow
def test_a_hundred_thousand_columns_are_read():
    names = ",".join(f"c{k}" for k in range(100_000))
    frame = parse(names + "\n" + ",".join(["1.5"] * 100_000) + "\n").frame
    assert frame.shape == (1, 100_000)


def test_more_columns_than_can_be_held_are_refused():
    with pytest.raises(DataError, match="line 1: 300,000 columns"):
        parse(b"1," * 299_999 + b"1\n1\n")


def test_a_line_without_end_is_refused_or_read():
    with pytest.raises(DataError, match="line 1: not a row of a table"):
        parse(b"x" * 1_000_000 + b"\n1\n")
    assert len(parse(b"a,b\n1," + b"x" * 1_000_000 + b"\n").frame["b"][0]) == 1_000_000


@given(
    st.lists(
        st.tuples(
            st.integers(-(2**40), 2**40),
            st.floats(allow_nan=False, allow_infinity=False, width=32),
            st.text("abc,;\"\n 'é", max_size=6).map(lambda s: "t" + s.strip()),
        ),
        min_size=1,
        max_size=20,
    )
)
@settings(max_examples=60, deadline=None)
def test_what_pandas_writes_is_read_back(rows):
    frame = pd.DataFrame(rows, columns=["i", "f", "s"])
    back = parse(frame.to_csv(index=False), delimiter=",").frame
    np.testing.assert_array_equal(back["i"], frame["i"])
    np.testing.assert_allclose(back["f"], frame["f"], rtol=1e-15)
    assert back["s"].tolist() == frame["s"].tolist()


@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 4), st.integers(-1, 2))
@settings(max_examples=60, deadline=None)
def test_a_row_of_another_width_never_passes(width, rows, at, extra):
    lines = [",".join(["1"] * width) for _ in range(rows)]
    wrong = width + extra
    if wrong < 1 or wrong == width:
        return
    lines.insert(min(at, rows), ",".join(["1"] * wrong))
    header = ",".join(f"c{k}" for k in range(width))
    with pytest.raises(DataError, match=f"line {min(at, rows) + 2}: {wrong} cell"):
        parse("\n".join([header, *lines]), delimiter=",")


def test_gzip_is_unpacked_whatever_its_name(file):
    for name in ("a.csv.gz", "a.csv"):
        assert read_table(file(gzip.compress(b"a,b\n1,2\n"), name)).frame["b"].tolist() == [2]


def test_a_gzip_bomb_is_refused(file):
    path = file(gzip.compress(b"1,2\n" * 8_000_000), "a.csv.gz")  # 32 MB in 31 kB
    with pytest.raises(DataError, match=r"unpacks to more than .* refused"):
        read_table(path)


def test_unpacking_stops_at_the_limit(file):
    path = file(gzip.compress(os.urandom(3 * 2**20).hex().encode()), "a.csv.gz")
    with pytest.raises(DataError, match="unpacks to more than 2,097,152 bytes"):
        read_table(path, limit_bytes=2**20)


def test_a_cut_gzip_file_is_said_to_be_damaged(file):
    content = gzip.compress(b"a,b\n1,2\n" * 1000)
    with pytest.raises(DataError, match="damaged gzip"):
        read_table(file(content[:-10], "a.csv.gz"))


def test_what_is_not_a_file_is_named(tmp_path, file):
    file(b"a\n1\n", "houses.csv")
    with pytest.raises(DataError, match="is a folder"):
        read_table(tmp_path)
    with pytest.raises(DataError, match=r"does not exist. Did you mean .*houses.csv"):
        read_table(tmp_path / "house.csv")
    with pytest.raises(DataError, match="Neither does the folder"):
        read_table(tmp_path / "no" / "house.csv")
    with pytest.raises(DataError, match="is an address"):
        read_table("https://example.org/houses.csv")
    with pytest.raises(DataError, match="Unpack it first"):
        read_table(file(b"PK", "houses.7z"))
    with pytest.raises(DataError, match="Save it as CSV"):
        read_table(file(b"PK", "houses.ods"))
    with pytest.raises(DataError, match="NUL character"):
        read_table("a\0b")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no FIFO files")
def test_a_pipe_is_refused_without_waiting_for_it(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(DataError, match="pipe or device"):
        read_table(tmp_path / "pipe.csv")


def test_a_header_without_rows_is_an_empty_table_where_that_is_allowed(file):
    table = read_table(file("a,b\n"), allow_empty=True)
    assert list(table.frame) == ["a", "b"] and len(table.frame) == 0


@pytest.mark.parametrize("ending", ["parquet", "feather", "arrow"])
def test_parquet_and_arrow_round_trip(tmp_path, ending):
    frame = pd.DataFrame({"a": [1, 2], "s": ["x", None]})
    path = tmp_path / f"t.{ending}"
    frame.to_parquet(path) if ending == "parquet" else frame.to_feather(path)
    back = read_table(path).frame
    assert back["a"].tolist() == [1, 2] and back["s"].isna().tolist() == [False, True]


def test_an_arrow_stream_is_read(tmp_path):
    import pyarrow as pa

    table = pa.table({"a": [1, 2]})
    with (
        pa.OSFile(str(tmp_path / "t.arrow"), "wb") as sink,
        pa.ipc.new_stream(sink, table.schema) as w,
    ):
        w.write_table(table)
    assert read_table(tmp_path / "t.arrow").frame["a"].tolist() == [1, 2]


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.npz"])
def test_garbage_under_a_known_ending_is_refused(file, name):
    with pytest.raises(DataError, match="not a readable"):
        read_table(file(os.urandom(300), name))


def test_a_parquet_index_is_left_out_and_said(tmp_path):
    frame = pd.DataFrame({"a": [1, 2]}, index=pd.Index([5, 6], name="id"))
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert list(table.frame) == ["a"] and "index 'id'" in table.notes[0]


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch, file):
    for module in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match="Parquet files need"):
        read_table(file(b"PAR1", "t.parquet"))


def test_npz_arrays_become_columns(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, X=np.eye(2), y=np.array([3, 4]), feature_names=np.array(["u", "v"]))
    assert list(read_table(path).frame) == ["u", "v", "y"]
    np.savez(path, a=np.zeros(2), b=np.zeros(3))
    with pytest.raises(DataError, match=r"one length, got a \(2,\), b \(3,\)"):
        read_table(path)


def test_npz_objects_are_never_unpickled(tmp_path):
    np.savez(tmp_path / "t.npz", a=np.array([{"x": 1}], dtype=object))
    with pytest.raises(DataError, match="Python objects, which are never loaded"):
        read_table(tmp_path / "t.npz")


def test_an_npz_header_that_claims_too_much_is_refused(tmp_path):
    import io
    import zipfile

    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        head, {"descr": "<f8", "fortran_order": False, "shape": (2**40,)}
    )
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        archive.writestr("a.npy", head.getvalue())
    with pytest.raises(DataError, match="claims shape"):
        read_table(tmp_path / "t.npz")


def test_names_alone_keep_a_first_row_of_data():
    assert parse("1,a\n3,b\n", names=["u", "v"]).frame["u"].tolist() == [1, 3]
    assert parse("a,b\nc,d\n", names=["u", "v"]).frame["u"].tolist() == ["a", "c"]
    replaced = parse("p,q\n1,b\n", names=["u", "v"])
    assert replaced.frame["u"].tolist() == [1]
    assert any("the first row held names" in note for note in replaced.notes)
