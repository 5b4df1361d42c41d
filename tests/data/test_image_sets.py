import gzip
import hashlib
import io
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest

from ansatz.data import describe, download, fetch, is_grids, load
from ansatz.data.bundles import IMAGE_BUNDLES, Bundle
from ansatz.data.grids import read_grids
from ansatz.errors import DataError

LOCAL = Path(os.environ.get("ANSATZ_DATA", "/nowhere"))


def here(name):
    missing = not (LOCAL / IMAGE_BUNDLES[name].folder).is_dir()
    return pytest.mark.skipif(missing, reason=f"{name} is not in $ANSATZ_DATA")


@pytest.mark.parametrize("name", IMAGE_BUNDLES)
def test_every_image_set_is_described_and_known_for_one(name):
    assert describe(name).summary and describe(name).reference and is_grids(name)


CLASSES = {  # name: test images per class as published, mean of the training images
    "mnist": ([980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009], 0.1307),
    "fashion-mnist": ([1000] * 10, 0.2860),
    "cifar10": ([196, 198, 195, 199, 198, 185, 216, 193, 217, 203], None),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=here(name)) for name in CLASSES])
def test_counts_and_means_are_the_published_ones(name):
    dataset = load(name)
    train, test = dataset.split()
    counts, mean = CLASSES[name]
    found = dataset.frame["class"].iloc[test].value_counts()
    assert sorted(found) == sorted(counts) and len(found) == 10
    if mean is not None:
        pixels = dataset.grids[train].load().float().mean().item() / 255
        assert pixels == pytest.approx(mean, abs=5e-5)
        assert dataset.grids.shape == (1, 28, 28)
    assert len(set(dataset.grids[test[:500]].content_keys())) == 500


@here("isbi2012")
def test_a_fifth_of_isbi_is_membrane():
    dataset = load("isbi2012")
    assert dataset.grids.shape == (1, 512, 512) and len(dataset.masks) == 30
    assert dataset.masks.classes == ("cell", "membrane") and dataset.target == "mask"
    masks = dataset.masks.load([0, 29])
    assert masks.double().mean().item() == pytest.approx(0.22, abs=0.03)
    dark = dataset.grids.load([0, 29])[:, 0].double()
    assert dark[masks == 1].mean() < dark[masks == 0].mean()  # membranes are stained
    assert dataset.frame["image"].tolist() == [f"train/image/{k}.png" for k in range(30)]
    assert fetch("isbi2012").name == "isbi2012"


@pytest.mark.slow
@here("mni152")
def test_a_volume_has_the_counted_tissue():
    dataset = load("mni152")
    counts = dataset.masks.load().flatten().bincount().tolist()
    assert counts == [6963686, 1079599, 632004] and dataset.grids.shape == (1, 197, 233, 189)


CONTENT = bytes(1000)
PACKED = Bundle(
    "mine", ("a-idx1",), hashlib.sha256(CONTENT).hexdigest(), 1000, "https://a.org/", packed=True
)


class Reply(io.BytesIO):
    def geturl(self):
        return "https://a.org/a-idx1.gz"


@pytest.mark.parametrize(
    "content, said",
    [
        (gzip.compress(CONTENT), None),
        (gzip.compress(bytes(1001)), "unpacks to another length"),
        (gzip.compress(np.random.default_rng(0).bytes(900))[:-20], "unpacks to another length"),
        (b"not gzip", "damaged download"),
    ],
    ids=["whole", "long", "cut", "foreign"],
)
def test_a_packed_download_is_unpacked_within_its_length(tmp_path, monkeypatch, content, said):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "cache"))
    monkeypatch.setenv("ANSATZ_DATA", str(tmp_path / "local"))
    asked = []

    def urlopen(address, timeout):
        asked.append(address)
        return Reply(content)

    monkeypatch.setattr(download.urllib.request, "urlopen", urlopen)
    if said is None:
        (path,) = download.find_bundle("mine", PACKED)
        assert path.read_bytes() == CONTENT and asked == ["https://a.org/a-idx1.gz"]
        return
    with pytest.raises(DataError, match=said):
        download.find_bundle("mine", PACKED)


def batch(count, seed):
    rng = np.random.default_rng(seed)
    records = rng.integers(0, 256, (count, 3073), dtype=np.uint8)
    records[:, 0] = rng.permutation(np.arange(count) % 10)
    return records


def test_batches_of_cifar_are_read_alone_and_from_the_archive(tmp_path, monkeypatch):
    folder = tmp_path / "cifar10"
    folder.mkdir()
    batches = {f"data_batch_{k}.bin": batch(20, k) for k in range(1, 6)}
    batches["test_batch.bin"] = batch(10, 6)
    with tarfile.open(folder / "cifar-10-binary.tar.gz", "w:gz") as archive:
        for name, records in batches.items():
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            info.size = records.nbytes
            archive.addfile(info, io.BytesIO(records.tobytes()))
    packed = (folder / "cifar-10-binary.tar.gz").read_bytes()
    whole = IMAGE_BUNDLES["cifar10-full"]._replace(
        sha256=hashlib.sha256(packed).hexdigest(), size=len(packed)
    )
    monkeypatch.setenv("ANSATZ_DATA", str(tmp_path))
    monkeypatch.setitem(IMAGE_BUNDLES, "cifar10-full", whole)
    dataset = load("cifar10-full")
    train, test = dataset.split()
    assert (len(train), len(test), dataset.grids.shape) == (100, 10, (3, 32, 32))
    last = batches["test_batch.bin"]
    np.testing.assert_array_equal(
        dataset.grids[test].load().numpy(), last[:, 1:].reshape(-1, 3, 32, 32)
    )
    (tmp_path / "test_batch.bin").write_bytes(last.tobytes())
    alone = read_grids(tmp_path / "test_batch.bin")
    assert is_grids(str(tmp_path / "test_batch.bin"))
    assert alone.frame["class"].tolist() == dataset.frame["class"].iloc[test].tolist()
    (tmp_path / "test_batch.bin").write_bytes(last.tobytes()[:-1])
    with pytest.raises(DataError, match="not a batch of CIFAR-10"):
        read_grids(tmp_path / "test_batch.bin")
