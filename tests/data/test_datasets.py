import hashlib
import io
import os
import urllib.error
from pathlib import Path

import numpy as np
import pytest

from ansatz.data import (
    describe,
    download,
    fetch,
    find_duplicates,
    find_leaks,
    infer_columns,
    load,
    names,
    row_keys,
)
from ansatz.data.bundles import BUNDLES, Bundle
from ansatz.data.registry import own_question
from ansatz.errors import DataError, ResourceError, UsageError
from ansatz.fitting import FitOptions
from ansatz.fitting.request import validated

LOCAL = Path(os.environ.get("ANSATZ_DATA", "/nowhere"))


def here(name):
    folder = BUNDLES[name].folder if name in BUNDLES else ""
    return pytest.mark.skipif(
        name in BUNDLES and not (LOCAL / folder).is_dir(), reason=f"{name} is not in $ANSATZ_DATA"
    )


FACTS = {  # name: (rows, columns, a sum that was counted by hand or is published)
    "abalone": (4177, 9, lambda f: (f["sex"] == "M").sum() == 1528 and f["rings"].max() == 29),
    "adult": (48842, 15, lambda f: (f["income"] == ">50K").sum() == 7841 + 3846),
    "bike-sharing": (17379, 17, lambda f: f["cnt"].sum() == 3_292_679),
    "diamonds": (53940, 10, lambda f: (f["cut"] == "Ideal").sum() == 21551),
    "boston": (506, 14, lambda f: f["medv"].max() == 50),
    "concrete": (1030, 9, lambda f: f["age"].max() == 365),
    "energy": (768, 9, lambda f: f["height"].isin([3.5, 7.0]).all()),
    "kin8nm": (8192, 9, lambda f: f.notna().all().all()),
    "wine": (1599, 12, lambda f: sorted(f["quality"].unique()) == [3, 4, 5, 6, 7, 8]),
    "gasoline-yield": (32, 6, lambda f: f["batch"].nunique() == 10),
    "apa-election": (5738, 5, lambda f: (f.sum(axis=1) == 15).all()),
    "lung": (228, 10, lambda f: f["wt.loss"].isna().sum() == 14),
    "rossi": (432, 9, lambda f: f["arrest"].sum() == 114),
    "metabric": (1904, 11, lambda f: f["event"].mean() == pytest.approx(0.579, abs=0.001)),
    "iris": (150, 5, lambda f: f["species"].value_counts().eq(50).all()),
    "etth1": (17420, 8, lambda f: f["OT"].notna().all()),
    "flu-by-bw": (58240, 4, lambda f: f["district"].nunique() == 140),
    "digits": (1797, 65, lambda f: f["digit"].nunique() == 10),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=here(name)) for name in FACTS])
def test_a_data_set_has_the_rows_and_counts_that_are_known(name):
    rows, columns, fact = FACTS[name]
    dataset = load(name)
    assert dataset.frame.shape == (rows, columns)
    assert fact(dataset.frame)
    target = [dataset.target] if isinstance(dataset.target, str) else list(dataset.target)
    assert set(target) <= set(dataset.frame.columns)


@pytest.mark.parametrize("name", names())
def test_every_name_is_described(name):
    entry = describe(name)
    assert entry.summary and entry.reference


@pytest.mark.parametrize("name", [pytest.param(name, marks=here(name)) for name in FACTS])
def test_what_is_described_is_what_is_read(name):
    entry, frame = describe(name), load(name).frame
    assert entry.source and entry.license and entry.rows == len(frame)
    assert list(entry.columns) == list(frame.columns)


@pytest.mark.parametrize("name", names())
def test_every_table_asks_a_question_about_its_own_columns(name):
    entry = describe(name)
    if entry.images:
        return
    asked = validated(entry.question, FitOptions, name)
    for option in ("target", "drop", "event", "entry", "lower", "upper", "group", "time"):
        for column in np.atleast_1d(asked.get(option) or []):
            assert column in entry.columns or column.endswith("*")


def test_a_file_comes_before_a_data_set_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert own_question("boston") == {"target": ["medv"]}
    (tmp_path / "boston").write_text("a,b\n1,2\n")
    assert own_question("boston") == own_question({"a": [1]}) == {}


@here("boston")
def test_published_splits_are_partitions():
    dataset = load("boston")
    assert len(dataset.splits) == 20
    for k in range(20):
        train, test = dataset.split(k)
        assert (len(train), len(test)) == (455, 51)
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(506))
    with pytest.raises(UsageError, match="20 published splits, asked for 20"):
        dataset.split(20)


@here("bike-sharing")
def test_the_leak_of_bike_sharing_is_found():
    frame = load("bike-sharing").frame
    said = find_leaks(frame, "cnt", infer_columns(frame.drop(columns="cnt")))
    assert any("'casual' and 'registered'" in sentence for sentence in said)
    honest = frame.drop(columns=list(load("bike-sharing").exclude))
    said = find_leaks(honest, "cnt", infer_columns(honest.drop(columns="cnt")), time="dteday")
    assert said == []


@here("wine")
def test_a_quarter_of_wine_test_rows_are_duplicates():
    dataset = load("wine")
    keys = row_keys(dataset.frame)
    shares = [find_duplicates(keys[a], keys[b]).mean() for a, b in dataset.splits]
    assert np.mean(shares) == pytest.approx(0.27, abs=0.02)


@here("whas")
def test_most_whas_test_rows_are_duplicates():
    dataset = load("whas")
    train, test = dataset.split()
    keys = row_keys(dataset.frame.drop(columns=["time", "event"]))
    assert find_duplicates(keys[train], keys[test]).mean() == pytest.approx(0.70, abs=0.03)


def test_a_wrong_name_suggests_the_nearest():
    with pytest.raises(UsageError, match="Did you mean 'abalone'"):
        load("abalon")
    with pytest.raises(UsageError, match="unknown data set"):
        fetch("nothing")


CONTENT = b"a,b\n1,2\n"
MINE = Bundle("mine", ("a.csv",), hashlib.sha256(CONTENT).hexdigest(), 8, "https://example.org/d/")


class Reply(io.BytesIO):
    address = "https://example.org/d/a.csv"

    def geturl(self):
        return self.address


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """An empty cache and a network that the test provides."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "cache"))
    monkeypatch.setenv("ANSATZ_DATA", str(tmp_path / "local"))
    asked = []

    def network(reply):
        def urlopen(address, timeout):
            asked.append(address)
            if isinstance(reply, Exception):
                raise reply
            return reply

        monkeypatch.setattr(download.urllib.request, "urlopen", urlopen)
        return asked

    return network


def test_without_files_and_address_the_missing_files_are_named(offline):
    said = r"'mine' is not here and no address for it is known. Put a.csv \(SHA-256 \w+\) into"
    with pytest.raises(DataError, match=said):
        download.find_bundle("mine", MINE._replace(address=""))


def test_a_download_is_verified_and_kept(offline, tmp_path):
    asked = offline(Reply(CONTENT))
    (path,) = download.find_bundle("mine", MINE)
    assert path.read_bytes() == CONTENT and path.is_relative_to(tmp_path / "cache")
    assert download.find_bundle("mine", MINE) == [path]
    assert asked == ["https://example.org/d/a.csv"]
    assert [p.name for p in path.parent.iterdir()] == ["a.csv"]


def test_a_local_copy_comes_first(offline, tmp_path):
    asked = offline(Reply(CONTENT))
    (tmp_path / "local" / "mine").mkdir(parents=True)
    (tmp_path / "local" / "mine" / "a.csv").write_bytes(CONTENT)
    (path,) = download.find_bundle("mine", MINE)
    assert path.is_relative_to(tmp_path / "local") and asked == []


def test_an_altered_copy_or_download_is_refused(offline, tmp_path):
    offline(Reply(b"a,b\n1,3\n"))
    with pytest.raises(DataError, match="is not the published one"):
        download.find_bundle("mine", MINE)
    assert not (tmp_path / "cache").exists()
    (tmp_path / "local" / "mine").mkdir(parents=True)
    (tmp_path / "local" / "mine" / "a.csv").write_bytes(b"x")
    with pytest.raises(DataError, match=r"local.mine is not the published one.*Remove that copy"):
        download.find_bundle("mine", MINE)


def test_a_download_without_end_is_cut(offline):
    offline(Reply(CONTENT * 1000))
    with pytest.raises(DataError, match="longer than the published file"):
        download.find_bundle("mine", MINE)


def test_a_redirect_away_from_https_is_refused(offline):
    reply = Reply(CONTENT)
    reply.address = "http://example.org/a.csv"
    offline(reply)
    with pytest.raises(DataError, match="without https"):
        download.find_bundle("mine", MINE)


def test_no_network_says_where_to_put_the_file(offline):
    offline(urllib.error.URLError("no route"))
    with pytest.raises(ResourceError, match=r"no route.*ANSATZ_DATA/mine/"):
        download.find_bundle("mine", MINE)


def test_a_user_without_a_home_is_noted(offline, monkeypatch):
    offline(Reply(CONTENT))
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("LOCALAPPDATA")

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(download.Path, "home", homeless)
    with pytest.raises(ResourceError, match="Set ANSATZ_DATA"):
        download.find_bundle("mine", MINE)


def test_a_relative_cache_variable_is_ignored(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("LOCALAPPDATA", "relative")
    folder = download.cache_folder()
    assert folder is None or folder.is_absolute()


def test_every_address_is_https():
    assert all(b.address.startswith("https://") for b in BUNDLES.values() if b.address)
