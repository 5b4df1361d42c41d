"""Published files: where each comes from, and the SHA-256 sum that proves it."""

import csv
from pathlib import Path
from typing import NamedTuple

_LISTS = {  # names of files that are too many for a cell of the table
    "@splits": (
        "data.txt",
        "index_features.txt",
        "index_target.txt",
        *(f"index_{part}_{k}.txt" for k in range(20) for part in ("train", "test")),
    ),
    "@idx": tuple(
        f"{part}-{kind}-ubyte"
        for part in ("train", "t10k")
        for kind in ("images-idx3", "labels-idx1")
    ),
    "@isbi": tuple(
        f"{folder}/{k}.png"
        for folder in ("train/image", "train/label", "test/image")
        for k in range(30)
    ),
}


class Bundle(NamedTuple):
    """Files that belong together.

    Args:
        folder: below ``$ANSATZ_DATA`` or the cache.
        files: their names; each may also be there gzipped, with ``.gz`` at the end.
        sha256: of their unpacked contents, one after the other.
        size: of those contents, in bytes; no download is longer.
        address: the web folder that holds them; empty if none is known to hold these bytes.
        packed: whether they lie there gzipped, with ``.gz`` at the end of their names.
    """

    folder: str
    files: tuple[str, ...]
    sha256: str
    size: int
    address: str = ""
    packed: bool = False


def _bundle(row: dict[str, str]) -> Bundle:
    files = _LISTS.get(row["files"]) or tuple(row["files"].split())
    size, packed = int(row["size"]), row["packed"] == "yes"
    return Bundle(row["folder"], files, row["sha256"], size, row["address"], packed)


with Path(__file__).with_name("datasets.csv").open(newline="", encoding="utf-8") as _file:
    ROWS = {row["name"]: row for row in csv.DictReader(_file)}
BUNDLES = {name: _bundle(row) for name, row in ROWS.items() if row["folder"] and not row["images"]}
IMAGE_BUNDLES = {name: _bundle(row) for name, row in ROWS.items() if row["images"]}
