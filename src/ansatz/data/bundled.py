"""Small tables that come with scikit-learn: nothing to download."""

import inspect
from typing import Any

from ansatz.data.registry import Dataset

_LICENSE = "distributed with scikit-learn (BSD-3-Clause)"


def _iris() -> Dataset:
    """Iris: the species of 150 flowers from the length and width of petals and sepals.

    References:
        Fisher (1936), The use of multiple measurements in taxonomic problems.
    """
    return _classes(_iris, "iris", "load_iris", "species")


def _wine_recognition() -> Dataset:
    """Wine recognition: which of three cultivars 178 wines are made of, from 13 measurements.

    References:
        Aeberhard and Forina (1991), UCI. https://archive.ics.uci.edu/dataset/109/wine
    """
    return _classes(_wine_recognition, "wine-recognition", "load_wine", "cultivar")


def _breast_cancer() -> Dataset:
    """Breast cancer: is a tumour malignant or benign, from 30 features of 569 cell images.

    References:
        Street, Wolberg and Mangasarian (1993), Nuclear feature extraction for breast tumor
        diagnosis.
    """
    made = _classes(_breast_cancer, "breast-cancer", "load_breast_cancer", "diagnosis")
    return Dataset(**{**vars(made), "likelihood": "bernoulli"})


def _digits() -> Dataset:
    """Digits: 1,797 handwritten digits as 64 grey values of an 8 x 8 image.

    References:
        Alpaydin and Kaynak (1998), UCI. https://doi.org/10.24432/C50P49
    """
    return _classes(_digits, "digits", "load_digits", "digit")


def _diabetes() -> Dataset:
    """Diabetes: progression of the disease in 442 patients after a year, from ten measurements.

    References:
        Efron et al. (2004), Least angle regression. https://doi.org/10.1214/009053604000000067
    """
    frame = _load("load_diabetes", scaled=False).frame.rename(columns={"target": "progression"})
    return Dataset("diabetes", frame, "progression", _sentence(_diabetes), _LICENSE, "gamma")


def _classes(reader: Any, name: str, loader: str, target: str) -> Dataset:
    found = _load(loader)
    frame = found.frame.rename(columns={"target": target})
    frame[target] = [str(found.target_names[code]) for code in found.target]
    return Dataset(name, frame, target, _sentence(reader), _LICENSE, "categorical")


def _load(loader: str, **options: Any) -> Any:
    import sklearn.datasets

    return getattr(sklearn.datasets, loader)(as_frame=True, **options)


def _sentence(reader: Any) -> str:
    return (inspect.getdoc(reader) or "").split("\n\n")[0].replace("\n", " ")
