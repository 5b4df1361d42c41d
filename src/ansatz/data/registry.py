"""Data sets by name."""

from pathlib import Path
from typing import Any

from ansatz.data.bundles import BUNDLES
from ansatz.data.datasets import Dataset
from ansatz.data.download import find_bundle
from ansatz.data.image_bundles import IMAGE_BUNDLES
from ansatz.registry import Entry, Registry

_BUNDLED = ["breast-cancer", "diabetes", "digits", "iris", "wine-recognition"]


def _row(module: str, name: str) -> tuple[str, Any]:
    return name, f"ansatz.data.{module}:_{name.replace('-', '_')}"


registry = Registry(
    "data set",
    dict(
        [_row("published", name) for name in BUNDLES]
        + [_row("image_sets", name) for name in IMAGE_BUNDLES]
        + [_row("bundled", name) for name in _BUNDLED]
    ),
)
register = registry.register


def load(name: str) -> Dataset:
    """The data set called ``name``: from ``$ANSATZ_DATA``, the cache, or the network.

    Example:
        >>> from ansatz.data import load
        >>> load("diabetes").target
        'progression'
    """
    dataset: Dataset = registry.create(name)
    return dataset


def names() -> list[str]:
    """The names of all data sets.

    Example:
        >>> from ansatz.data import names
        >>> "abalone" in names()
        True
    """
    return registry.names()


def describe(name: str) -> Entry:
    """Name, summary and reference of a data set, without opening it.

    Example:
        >>> from ansatz.data import describe
        >>> describe("abalone").summary[:8]
        'Abalone:'
    """
    return registry.describe(name)


def fetch(name: str) -> Path:
    """The folder that holds a data set's files, downloaded and verified if need be.

    Example:
        >>> from ansatz.data import fetch
        >>> fetch("iris").name
        'data'
    """
    registry.get(name)  # a wrong name suggests the nearest right one
    bundle = {**BUNDLES, **IMAGE_BUNDLES}.get(name)
    if bundle is not None:
        first, *_ = find_bundle(name, bundle)
        return first.parents[bundle.files[0].count("/")]
    import sklearn.datasets

    return Path(sklearn.datasets.__file__).parent / "data"
