"""The readers of published tables; each docstring is what ``ansatz show`` prints."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ansatz.data.bundles import BUNDLES, ROWS
from ansatz.data.download import find_bundle
from ansatz.data.registry import Dataset, first_sentence
from ansatz.data.table import read_table
from ansatz.errors import DataError

_SKLEARN = "distributed with scikit-learn (BSD-3-Clause)"


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
    frame = _load_sklearn("load_diabetes", scaled=False).frame.rename(
        columns={"target": "progression"}
    )
    return Dataset("diabetes", frame, "progression", first_sentence(_diabetes), _SKLEARN, "gamma")


def _classes(reader: Any, name: str, loader: str, target: str) -> Dataset:
    found = _load_sklearn(loader)
    frame = found.frame.rename(columns={"target": target})
    frame[target] = [str(found.target_names[code]) for code in found.target]
    return Dataset(name, frame, target, first_sentence(reader), _SKLEARN, "categorical")


def _load_sklearn(loader: str, **options: Any) -> Any:
    import sklearn.datasets

    return getattr(sklearn.datasets, loader)(as_frame=True, **options)


_UNSTATED = "not stated"
_UCI_SPLITS = "data: UCI; split files: CC BY-NC 4.0 (Yarin Gal), non-commercial"


def _abalone() -> Dataset:
    """Abalone: the age of 4,177 sea snails by their rings, from sex and seven measurements.

    Columns: sex, length, diameter, height, whole, shucked, viscera, shell, rings. No split.

    References:
        Nash et al. (1994), UCI. https://archive.ics.uci.edu/dataset/1/abalone
    """
    names = "sex length diameter height whole shucked viscera shell rings".split()
    (path,) = _files("abalone")
    frame = read_table(path, header=False, names=names).frame
    return _dataset(_abalone, "abalone", frame, "rings", _UNSTATED, "gamma")


def _adult() -> Dataset:
    """Adult: does a person earn more than 50,000 dollars a year, from 14 census columns.

    32,561 rows to train and 16,281 to test, as published; "?" is missing. ``fnlwgt`` says how many
    people a row stands for: a sampling weight, not a property.

    References:
        Becker and Kohavi (1996), UCI. https://archive.ics.uci.edu/dataset/2/adult
    """
    import pandas as pd

    names = (
        "age workclass fnlwgt education education_num marital_status occupation relationship "
        "race sex capital_gain capital_loss hours_per_week native_country income"
    ).split()
    parts = [
        read_table(path, header=False, names=names, missing=["?"], comment="|").frame
        for path in _files("adult")
    ]
    frame = pd.concat(parts, ignore_index=True)
    frame["income"] = frame["income"].str.rstrip(".")  # the test file ends its labels with a stop
    cut = len(parts[0])
    split = (np.arange(cut), np.arange(cut, len(frame)))
    return _dataset(_adult, "adult", frame, "income", _UNSTATED, "bernoulli", splits=(split,))


def _bike_sharing() -> Dataset:
    """Bike sharing: rented bicycles per hour in Washington, 2011 and 2012, from time and weather.

    17,379 hours. ``casual`` and ``registered`` add up to the target. Split by time (``dteday``).

    References:
        Fanaee-T and Gama (2013), Event labeling combining ensemble detectors and background
        knowledge. https://archive.ics.uci.edu/dataset/275/bike+sharing+dataset
    """
    (path,) = _files("bike-sharing")
    frame = read_table(path).frame
    return _dataset(
        _bike_sharing,
        "bike-sharing",
        frame,
        "cnt",
        "not stated; cite Fanaee-T and Gama (2013)",
        "poisson",
        exclude=("casual", "registered", "instant"),
    )


def _diamonds() -> Dataset:
    """Diamonds: the price of 53,940 round-cut diamonds from weight, cut, colour, clarity and size.

    References:
        Wickham (2016), ggplot2. https://ggplot2.tidyverse.org/reference/diamonds.html
    """
    (path,) = _files("diamonds")
    return _dataset(_diamonds, "diamonds", read_table(path).frame, "price", _UNSTATED, "gamma")


def _boston() -> Dataset:
    """Boston housing: median house value of 506 districts; 20 published splits.

    Its column B is built on race: use it only to compare with published numbers.

    References:
        Harrison and Rubinfeld (1978), Hedonic housing prices and the demand for clean air;
        splits of Gal and Ghahramani (2016). https://arxiv.org/abs/1506.02142
    """
    names = "crim zn indus chas nox rm age dis rad tax ptratio b lstat medv".split()
    return _uci(_boston, "boston", names)


def _concrete() -> Dataset:
    """Concrete: the compressive strength of 1,030 mixtures from eight amounts; 20 splits.

    References:
        Yeh (1998), Modeling of strength of high-performance concrete;
        splits of Gal and Ghahramani (2016). https://arxiv.org/abs/1506.02142
    """
    names = "cement slag fly_ash water superplasticizer coarse fine age strength".split()
    return _uci(_concrete, "concrete", names)


def _energy() -> Dataset:
    """Energy: the heating load of 768 simulated buildings from eight properties; 20 splits.

    References:
        Tsanas and Xifara (2012), Accurate quantitative estimation of energy performance of
        residential buildings; splits of Gal and Ghahramani (2016). https://arxiv.org/abs/1506.02142
    """
    names = (
        "compactness surface_area wall_area roof_area height orientation glazing_area "
        "glazing_distribution heating_load"
    ).split()
    return _uci(_energy, "energy", names)


def _kin8nm() -> Dataset:
    """kin8nm: how far the hand of a simulated eight-link robot arm is from a target; 20 splits.

    References:
        Delve; splits of Gal and Ghahramani (2016). https://arxiv.org/abs/1506.02142
    """
    return _uci(_kin8nm, "kin8nm", [f"theta{k}" for k in range(1, 9)] + ["distance"])


def _wine() -> Dataset:
    """Red wine: a taste score from 3 to 8 of 1,599 wines from eleven measurements; 20 splits.

    27 % of the test rows duplicate a training row of their split.

    References:
        Cortez et al. (2009), Modeling wine preferences by data mining from physicochemical
        properties; splits of Gal and Ghahramani (2016). https://arxiv.org/abs/1506.02142
    """
    names = (
        "fixed_acidity volatile_acidity citric_acid residual_sugar chlorides free_sulfur "
        "total_sulfur density ph sulphates alcohol quality"
    ).split()
    return _uci(_wine, "wine", names)


def _files(name: str) -> list[Path]:
    return find_bundle(name, BUNDLES[name])


def _dataset(
    reader: Callable[[], Dataset],
    name: str,
    frame: Any,
    target: str | tuple[str, ...],
    license: str,
    likelihood: str = "",
    exclude: tuple[str, ...] = (),
    splits: tuple[tuple[np.ndarray, np.ndarray], ...] = (),
) -> Dataset:
    return Dataset(
        name, frame, target, first_sentence(reader), license, likelihood, exclude, splits
    )


def _uci(reader: Callable[[], Dataset], name: str, names: list[str]) -> Dataset:
    """A table of numbers, the target last, with 20 splits given as row numbers."""
    data, features, target, *parts = _files(name)
    frame = read_table(data, delimiter="whitespace", header=False, names=names).frame
    expected = [*range(len(names) - 1)], [len(names) - 1]
    if (_numbers(features).tolist(), _numbers(target).tolist()) != expected:
        raise DataError(f"data set '{name}' has its target in an unexpected column.")
    rows = [_numbers(path) for path in parts]
    splits = tuple(zip(rows[0::2], rows[1::2], strict=True))
    return _dataset(reader, name, frame, names[-1], _UCI_SPLITS, "normal", splits=splits)


def _numbers(path: Path) -> np.ndarray:
    return np.loadtxt(path, ndmin=1).astype(np.int64)


def __getattr__(name: str) -> Callable[[], Dataset]:
    """The reader of a set that ``datasets.csv`` describes in full."""
    row = ROWS.get(name.removeprefix("_").replace("_", "-"))
    if row is None or not row["summary"]:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def read() -> Dataset:
        return _described(row)

    parts = [row["summary"], row["note"], f"References:\n    {row['reference']}"]
    read.__doc__ = "\n\n".join(part for part in parts if part)
    return read


def _described(row: dict[str, str]) -> Dataset:
    (path,), splits = _files(row["name"]), []
    if path.suffix == ".npz":
        frame, *splits = _survival(path)
    else:
        frame = read_table(path).frame
    stem, _, last = row["target"].partition("1-")
    numbered = [f"{stem}{k}" for k in range(1, int(last) + 1)] if last else stem.split()
    target = numbered[0] if len(numbered) == 1 else tuple(numbered)
    return Dataset(row["name"], frame, target, row["summary"], row["license"], splits=tuple(splits))


def _survival(path: Path) -> tuple[Any, tuple[np.ndarray, np.ndarray]]:
    import pandas as pd

    with np.load(path, allow_pickle=False) as arrays:
        x, time, event = (
            np.concatenate([arrays[f"train_{k}"], arrays[f"test_{k}"]]) for k in ("x", "t", "e")
        )
        cut = len(arrays["train_t"])
    frame = pd.DataFrame(x, columns=[f"x{k}" for k in range(1, x.shape[1] + 1)])
    frame["time"], frame["event"] = time, event
    return frame, (np.arange(cut), np.arange(cut, len(frame)))
