"""Reads the images that ``datasets.csv`` describes."""

import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ansatz.data.bundles import IMAGE_BUNDLES
from ansatz.data.download import find_bundle
from ansatz.data.files import LIMIT_BYTES, load_npz
from ansatz.data.grids.arrays import CIFAR10, read_cifar, read_idx
from ansatz.data.grids.assemble import assemble
from ansatz.data.grids.grids import Grids
from ansatz.data.grids.listing import Listing
from ansatz.data.grids.masks import Masks
from ansatz.data.grids.options import GridReading
from ansatz.data.published import split_at

_CLASSES = {
    "mnist": "0,1,2,3,4,5,6,7,8,9",
    "fashion-mnist": (
        "T-shirt/top,Trouser,Pullover,Dress,Coat,Sandal,Shirt,Sneaker,Bag,Ankle boot"
    ),
}


def read(row: dict[str, str]) -> dict[str, Any]:
    """The frame of a data set, its grids, and its masks or splits."""
    name = row["name"]
    paths = find_bundle(name, IMAGE_BUNDLES[name])
    special = {"cifar10": _cifar10, "isbi2012": _isbi2012, "mni152": _mni152}
    special["cifar10-full"] = _cifar10_full
    return special[name](paths) if name in special else _idx(paths, _CLASSES[name].split(","))


def _cifar10(paths: list[Path]) -> dict[str, Any]:
    arrays = load_npz(paths[0], LIMIT_BYTES)
    x, y = (np.concatenate([arrays[f"{k}_train"], arrays[f"{k}_test"]]) for k in "xy")
    classes, cut = arrays["class_names"].astype(object), len(arrays["x_train"])
    return _of_classes(Grids.of(x, "last"), classes[y.astype(np.int64)], cut)


def _cifar10_full(paths: list[Path]) -> dict[str, Any]:
    names = [*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin"]
    parts = []
    with tarfile.open(paths[0]) as archive:
        for name in names:
            file = archive.extractfile(f"cifar-10-batches-bin/{name}")
            assert file is not None
            parts.append(read_cifar(file.read(), f"{paths[0]}: {name}"))
    x, y = (np.concatenate(each) for each in zip(*parts, strict=True))
    cut = sum(len(labels) for _, labels in parts[:-1])
    return _of_classes(Grids.of(x, "first"), np.array(CIFAR10, dtype=object)[y], cut)


def _isbi2012(paths: list[Path]) -> dict[str, Any]:
    names = [f"train/image/{path.name}" for path in paths[:30]]
    listing = Listing("isbi2012", paths[:30], names, {"image": list(names)}, masks=paths[30:60])
    table = assemble(listing, GridReading(memory_limit=2**40))
    assert table.masks is not None
    membrane = (table.masks.load() == 0).to(torch.uint8).unsqueeze(1)
    masks = Masks(membrane, names, ("cell", "membrane"))
    return {"frame": table.frame, "grids": table.grids, "masks": masks}


def _mni152(paths: list[Path]) -> dict[str, Any]:
    import pandas as pd

    arrays = load_npz(paths[0], LIMIT_BYTES)
    classes = ("other", "grey matter", "white matter")
    return {
        "frame": pd.DataFrame({"image": ["t1"]}),
        "grids": Grids.of(arrays["t1"][None], None),
        "masks": Masks.coded(arrays["label"][None], "mni152", classes=classes),
    }


def _idx(paths: list[Path], classes: list[str]) -> dict[str, Any]:
    images, labels, *test = (read_idx(path) for path in paths)
    both, codes = np.concatenate([images, test[0]]), np.concatenate([labels, test[1]])
    return _of_classes(Grids.of(both), np.array(classes, dtype=object)[codes], len(images))


def _of_classes(grids: Grids, classes: np.ndarray, cut: int) -> dict[str, Any]:
    import pandas as pd

    frame = pd.DataFrame({"class": classes})
    return {"frame": frame, "grids": grids, "splits": split_at(cut, len(frame))}
