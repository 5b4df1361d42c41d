"""The readers of published tables; each docstring is what ``ansatz show`` prints."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ansatz.data.bundles import BUNDLES
from ansatz.data.download import find_bundle
from ansatz.data.registry import Dataset
from ansatz.data.table import read_table
from ansatz.errors import DataError

_UNSTATED = "not stated"
_UCI_SPLITS = "data: UCI; split files: CC BY-NC 4.0 (Yarin Gal), non-commercial"
_GPL = "not stated for the data; distributed in an R package under the GPL"
_LIFELINES = "not stated for the data; distributed with lifelines (MIT)"
_DEEPSURV = "not stated for the data; distributed with DeepSurv (MIT)"


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

    27 % of the test rows have a copy in the training rows of their split.

    References:
        Cortez et al. (2009), Modeling wine preferences by data mining from physicochemical
        properties; splits of Gal and Ghahramani (2016). https://arxiv.org/abs/1506.02142
    """
    names = (
        "fixed_acidity volatile_acidity citric_acid residual_sugar chlorides free_sulfur "
        "total_sulfur density ph sulphates alcohol quality"
    ).split()
    return _uci(_wine, "wine", names)


def _arctic_lake() -> Dataset:
    """Arctic lake: shares of sand, silt and clay in 39 sediments by depth of water.

    The three shares sum to 0.997 .. 1.005: renormalise.

    References:
        Aitchison (1986), The statistical analysis of compositional data.
    """
    return _csv(_arctic_lake, "arctic-lake", ("sand", "silt", "clay"), _GPL)


def _food_expenditure() -> Dataset:
    """Food expenditure: the share of income that 38 households spend on food.

    The outcome of interest is the proportion food / income.

    References:
        Griffiths et al. (1993); betareg. https://doi.org/10.18637/jss.v034.i02
    """
    return _csv(_food_expenditure, "food-expenditure", "food", _GPL)


def _gasoline_yield() -> Dataset:
    """Gasoline yield: the share of crude oil that became gasoline in 32 distillations.

    Beta regression of yield on batch and temp has log-likelihood 84.798.

    References:
        Cribari-Neto and Zeileis (2010), Beta regression in R. https://doi.org/10.18637/jss.v034.i02
    """
    return _csv(_gasoline_yield, "gasoline-yield", "yield", _GPL)


def _reading_skills() -> Dataset:
    """Reading skills: the reading accuracy of 44 children by dyslexia and intelligence.

    References:
        Smithson and Verkuilen (2006), A better lemon squeezer?
    """
    return _csv(_reading_skills, "reading-skills", "accuracy", _GPL)


def _wind_direction() -> Dataset:
    """Wind direction: 310 directions in radians at Col de la Roa, Italian Alps, early 2001.

    References:
        Agostinelli (2007), Robust estimation for circular data.
    """
    return _csv(_wind_direction, "wind-direction", "direction_radians", "GPL-2")


def _apa_election() -> Dataset:
    """APA election: 5,738 complete rankings of five candidates, 1980; placeK is who came K-th.

    References:
        Diaconis (1989), A generalization of spectral analysis with application to ranked data.
    """
    target = tuple(f"place{k}" for k in range(1, 6))
    return _csv(_apa_election, "apa-election", target, "GPL >= 2")


def _nascar2002() -> Dataset:
    """NASCAR 2002: the order in which 43 of 87 drivers finished each of 36 races.

    References:
        Hunter (2004), MM algorithms for generalized Bradley-Terry models.
    """
    return _csv(_nascar2002, "nascar2002", tuple(f"rank{k}" for k in range(1, 44)), "GPL-3")


def _gbsg2() -> Dataset:
    """GBSG-2: 686 breast-cancer patients; ``time`` to recurrence, ``cens`` 1 where observed.

    References:
        Schumacher et al. (1994), Randomized 2 x 2 trial in node-positive breast cancer.
    """
    return _csv(_gbsg2, "gbsg2", ("time", "cens"), _LIFELINES)


def _interval_diabetes() -> Dataset:
    """Interval diabetes: 731 patients whose nephropathy began between ``left`` and ``right``.

    References:
        Borch-Johnsen et al. (1985), via lifelines. https://lifelines.readthedocs.io
    """
    return _csv(_interval_diabetes, "interval-diabetes", ("left", "right"), _LIFELINES)


def _lung() -> Dataset:
    """Lung: survival of 228 patients with advanced lung cancer; ``status`` 1 = dead; has gaps.

    References:
        Loprinzi et al. (1994), Prospective evaluation of prognostic variables.
    """
    return _csv(_lung, "lung", ("time", "status"), _LIFELINES)


def _lymphoma() -> Dataset:
    """Lymphoma: survival of 80 patients in two stage groups; ``Censor`` 1 = event.

    References:
        Matthews and Farewell (1985), Using and understanding medical statistics.
    """
    return _csv(_lymphoma, "lymphoma", ("Time", "Censor"), _LIFELINES)


def _rossi() -> Dataset:
    """Rossi: weeks until arrest of 432 released prisoners; ``arrest`` 1 where it happened.

    References:
        Rossi, Berk and Lenihan (1980), Money, work and crime.
    """
    return _csv(_rossi, "rossi", ("week", "arrest"), _LIFELINES)


def _stanford_heart() -> Dataset:
    """Stanford heart: 172 intervals (start, stop] of patients waiting for a heart transplant.

    References:
        Crowley and Hu (1977), Covariance analysis of heart transplant survival data.
    """
    return _csv(_stanford_heart, "stanford-heart", ("start", "stop", "event"), _LIFELINES)


def _metabric() -> Dataset:
    """METABRIC: survival of 1,904 breast-cancer patients by nine features; one split.

    References:
        Katzman et al. (2018), DeepSurv. https://arxiv.org/abs/1606.00931
    """
    return _survival_npz(_metabric, "metabric")


def _gbsg() -> Dataset:
    """Rotterdam and GBSG: survival, 1,546 patients to train and 686 of another study to test.

    References:
        Katzman et al. (2018), DeepSurv. https://arxiv.org/abs/1606.00931
    """
    return _survival_npz(_gbsg, "gbsg")


def _whas() -> Dataset:
    """WHAS: survival of 1,638 patients after a heart attack by six features; one split.

    70 % of the test rows have a copy in the training rows.

    References:
        Katzman et al. (2018), DeepSurv. https://arxiv.org/abs/1606.00931
    """
    return _survival_npz(_whas, "whas")


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
    sentence = (inspect.getdoc(reader) or "").split("\n\n")[0].replace("\n", " ")
    return Dataset(name, frame, target, sentence, license, likelihood, exclude, splits)


def _csv(
    reader: Callable[[], Dataset], name: str, target: str | tuple[str, ...], license: str
) -> Dataset:
    (path,) = _files(name)
    return _dataset(reader, name, read_table(path).frame, target, license)


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


def _survival_npz(reader: Callable[[], Dataset], name: str) -> Dataset:
    import pandas as pd

    (path,) = _files(name)
    with np.load(path, allow_pickle=False) as arrays:
        x, time, event = (
            np.concatenate([arrays[f"train_{k}"], arrays[f"test_{k}"]]) for k in ("x", "t", "e")
        )
        cut = len(arrays["train_t"])
    frame = pd.DataFrame(x, columns=[f"x{k}" for k in range(1, x.shape[1] + 1)])
    frame["time"], frame["event"] = time, event
    split = (np.arange(cut), np.arange(cut, len(frame)))
    return _dataset(reader, name, frame, ("time", "event"), _DEEPSURV, splits=(split,))
