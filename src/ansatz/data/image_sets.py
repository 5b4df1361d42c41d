"""The readers of published images; each docstring is what ``ansatz show`` prints."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from ansatz.data.bundles import IMAGE_BUNDLES
from ansatz.data.download import find_bundle
from ansatz.data.files import LIMIT_BYTES, load_npz
from ansatz.data.grids.arrays import read_idx
from ansatz.data.grids.assemble import assemble
from ansatz.data.grids.grids import Grids
from ansatz.data.grids.listing import Listing
from ansatz.data.grids.masks import Masks
from ansatz.data.grids.options import Options
from ansatz.data.registry import Dataset, first_sentence

_UNSTATED = "not stated"
_DIGITS = tuple(str(k) for k in range(10))
_CLOTHES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)


def _mnist() -> Dataset:
    """MNIST: 70,000 handwritten digits, grey images of 28 x 28; 60,000 to train, 10,000 to test.

    References:
        LeCun, Bottou, Bengio and Haffner (1998), Gradient-based learning applied to document
        recognition. https://doi.org/10.1109/5.726791
    """
    return _idx(_mnist, "mnist", _DIGITS, _UNSTATED)


def _fashion_mnist() -> Dataset:
    """Fashion-MNIST: 70,000 pieces of clothing of ten kinds, grey images of 28 x 28.

    60,000 to train, 10,000 to test, as published.

    References:
        Xiao, Rasul and Vollgraf (2017), Fashion-MNIST. https://arxiv.org/abs/1708.07747
    """
    return _idx(_fashion_mnist, "fashion-mnist", _CLOTHES, "MIT")


def _cifar10() -> Dataset:
    """CIFAR-10, a part: 12,000 colour images of 32 x 32 of ten kinds of animals and vehicles.

    The 10,000 images of the first published training batch to train, the first 2,000 of the
    published test batch to test: numbers on the whole set are not comparable.

    References:
        Krizhevsky (2009), Learning multiple layers of features from tiny images.
    """
    import pandas as pd

    (path,) = _files("cifar10")
    arrays = load_npz(path, LIMIT_BYTES)
    images = np.concatenate([arrays["x_train"], arrays["x_test"]])
    codes = np.concatenate([arrays["y_train"], arrays["y_test"]]).astype(np.int64)
    frame = pd.DataFrame({"class": arrays["class_names"].astype(object)[codes]})
    splits = _split(len(arrays["x_train"]), len(images))
    return Dataset(
        "cifar10",
        frame,
        "class",
        first_sentence(_cifar10),
        _UNSTATED,
        "categorical",
        splits=splits,
        grids=Grids.of(images, "last"),
    )


def _isbi2012() -> Dataset:
    """ISBI 2012: which pixels of 30 electron micrographs of nerve tissue are membrane, 512 x 512.

    Class 1 is membrane (0 in the files), class 0 the inside of cells. The 30 test images have no
    published masks: hold out some of these, which are neighbours in one stack.

    References:
        Arganda-Carreras et al. (2015), Crowdsourcing the creation of image segmentation
        algorithms for connectomics. https://doi.org/10.3389/fnana.2015.00142
    """
    paths = _files("isbi2012")
    names = [f"train/image/{path.name}" for path in paths[:30]]
    listing = Listing("isbi2012", paths[:30], names, {"image": list(names)}, masks=paths[30:60])
    table = assemble(listing, Options(memory_limit=2**40))
    assert table.masks is not None
    membrane = (table.masks.load() == 0).to(torch.uint8).unsqueeze(1)
    return Dataset(
        "isbi2012",
        table.frame,
        "mask",
        first_sentence(_isbi2012),
        "MIT; the challenge's own terms are not stated",
        "bernoulli",
        grids=table.grids,
        masks=Masks(membrane, names, ("cell", "membrane")),
    )


def _mni152() -> Dataset:
    """MNI152: one volume of an average head at 1 mm, 197 x 233 x 189, with each voxel's tissue.

    Classes: other, grey matter, white matter. One volume: enough to try segmentation of crops of
    it, not to compare methods.

    References:
        Fonov et al. (2011), Unbiased average age-appropriate atlases for pediatric studies.
        https://doi.org/10.1016/j.neuroimage.2010.07.033
    """
    import pandas as pd

    (path,) = _files("mni152")
    arrays = load_npz(path, LIMIT_BYTES)
    classes = ("other", "grey matter", "white matter")
    return Dataset(
        "mni152",
        pd.DataFrame({"image": ["t1"]}),
        "mask",
        first_sentence(_mni152),
        "stated as unknown by nilearn (BSD-3-Clause), which distributes it",
        "categorical",
        grids=Grids.of(arrays["t1"][None], None),
        masks=Masks.coded(arrays["label"][None], "mni152", classes=classes),
    )


def _idx(
    reader: Callable[[], Dataset], name: str, classes: tuple[str, ...], license: str
) -> Dataset:
    import pandas as pd

    images, labels, *test = (read_idx(path) for path in _files(name))
    both, codes = np.concatenate([images, test[0]]), np.concatenate([labels, test[1]])
    frame = pd.DataFrame({"class": np.array(classes, dtype=object)[codes]})
    return Dataset(
        name,
        frame,
        "class",
        first_sentence(reader),
        license,
        "categorical",
        splits=_split(len(images), len(both)),
        grids=Grids.of(both),
    )


def _files(name: str) -> list[Path]:
    return find_bundle(name, IMAGE_BUNDLES[name])


def _split(cut: int, count: int) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    return ((np.arange(cut), np.arange(cut, count)),)
