"""A table read as a question: which columns are features, what kind of quantity is the target."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from ansatz import data as ansatz_data
from ansatz import likelihoods
from ansatz.data import Column, as_frame, find_leaks, infer_columns, read_table
from ansatz.data.dates import as_dates
from ansatz.data.grids import Grids, Masks
from ansatz.data.grids.path_table import image_columns
from ansatz.data.numeric import refuse_infinite
from ansatz.errors import DataError, UsageError
from ansatz.estimators.classifier import CLASS_LAWS
from ansatz.fitting.outcome_checks import check_outcomes
from ansatz.fitting.proposal import Proposal, is_numeric, propose
from ansatz.outcomes.survival_law import SURVIVAL_LAWS
from ansatz.fitting.uses import Uses, near_columns

Kind = Literal["number", "class", "survival", "ranking", "mask"]
MASK = "mask"  # what the target is called where it is a label for every cell


def kind_of(law: str, uses: Uses) -> Kind:
    """What outcomes of a law are, given the columns that tell them.

    Example:
        >>> from ansatz.fitting.problem import kind_of
        >>> from ansatz.fitting.uses import Uses
        >>> kind_of("weibull", Uses(target=["week"], event="arrest"))
        'survival'
    """
    if uses.is_survival or law in SURVIVAL_LAWS:
        return "survival"
    if law == "plackett_luce":
        return "ranking"
    return "class" if law in CLASS_LAWS else "number"


class Problem(NamedTuple):
    """A table with every column's part in it.

    Example:
        >>> import pandas as pd
        >>> from ansatz.fitting.problem import pose
        >>> frame = pd.DataFrame({"a": [1.5, 2.0, 3.0], "y": ["n", "y", "n"]})
        >>> pose(frame, Uses(target=["y"])).likelihood
        'bernoulli'
    """

    origin: str  # what errors call the table
    frame: pd.DataFrame  # rows whose outcome is known
    features: Any  # a frame, or grids
    columns: list[Column]
    uses: Uses
    laws: list[str]  # one, or the candidates among which the rows will choose
    law_options: dict[str, Any]
    notes: list[str]
    fingerprint: str  # of the rows
    masks: Masks | None = None  # the outcomes, where they are labels of cells
    part: str | None = None  # the column that says which rows are for training and which for tests

    @property
    def likelihood(self) -> str:
        """The law, or the first of the candidates."""
        return self.laws[0]

    @property
    def kind(self) -> Kind:
        """What the outcomes are: it decides the estimator."""
        return "mask" if self.masks is not None else kind_of(self.likelihood, self.uses)

    @property
    def is_grid(self) -> bool:
        """Whether x are signals, images or volumes."""
        return isinstance(self.features, Grids)

    @property
    def has_features(self) -> bool:
        """Whether there is anything to predict from."""
        return self.is_grid or bool(self.columns)

    @property
    def outcomes(self) -> Any:
        """What is to be predicted, as an estimator takes it."""
        return self.uses.outcomes(self.frame) if self.masks is None else self.masks


def pose(
    data: Any,
    uses: Uses,
    *,
    likelihood: str | None = None,
    options: Mapping[str, Any] | None = None,
    roles: Mapping[str, str] | None = None,
    drop: Sequence[str] = (),
    reader: Mapping[str, Any] | None = None,
) -> Problem:
    """Reads a table and decides what each column is for.

    Args:
        data: a path, the name of a data set, a frame, an Arrow table or a mapping of columns.
        uses: target, weights, offset and so on by name.
        likelihood: the law; None lets the values of the target choose.
        options: of the law.
        roles: what columns are, where the guess would be wrong.
        drop: columns to leave out.
        reader: options of :func:`ansatz.data.read_table`.

    Example:
        >>> from ansatz.fitting.problem import pose
        >>> from ansatz.fitting.uses import Uses
        >>> pose({"a": [1.0, 2.0, 4.0], "y": [0.5, 1.5, 2.5]}, Uses(target=["y"])).likelihood
        'normal'
    """
    words = {*drop, *(name for name, role in (roles or {}).items() if role != "numeric")}
    origin, frame, notes = _open(data, reader or {}, words)
    for name in drop:
        if name not in frame.columns:
            raise UsageError(f"{origin}: no column '{name}' to drop. {near_columns(name, frame)}")
    frame = frame.drop(columns=list(drop))
    uses = uses.expand(frame)
    uses.check(frame, origin)
    _refuse_infinite(origin, uses.features(frame))
    _check_time(origin, frame, uses)
    frame, more = _known_outcomes(origin, frame, uses, likelihood)
    given = dict(options or {})
    proposal = Proposal([likelihood]) if likelihood else propose(origin, frame, uses)
    laws, given = proposal.laws, {**proposal.options, **given}
    check_outcomes(origin, frame, uses, laws[0], given, named=likelihood is not None)
    features = uses.features(frame)
    columns = infer_columns(features, roles=roles or {})
    why = [proposal.why] if proposal.why else []
    if uses.entry is not None and frame[uses.entry].isna().any():
        early = int(frame[uses.entry].isna().sum())
        why.append(f"rows without a value of '{uses.entry}', watched from the start: {early}.")
    notes += [*more, *why, *_warnings(frame, uses, columns, laws[0])]
    return Problem(origin, frame, features, columns, uses, laws, given, notes, _fingerprint(frame))


def _open(
    data: Any, reader: Mapping[str, Any], words: Collection[str]
) -> tuple[str, pd.DataFrame, list[str]]:
    """The table; columns among ``words`` need not hold numbers even if they begin like that."""
    named = isinstance(data, str) and data in ansatz_data.names() and not Path(data).exists()
    if reader and (named or not isinstance(data, str | Path)):
        raise UsageError(f"{', '.join(reader)}: only for files that are read; these data are not.")
    if isinstance(data, str | Path):
        if named:
            return str(data), ansatz_data.load(str(data)).frame, []
        table = read_table(data, **{"text": words, **reader})
        return table.origin, table.frame, list(table.notes)
    frame = as_frame(data)
    frame.columns = [str(name) for name in frame.columns]
    return "the table", frame, []


def _refuse_infinite(origin: str, features: pd.DataFrame) -> None:
    """Before rows are left out or split: the error counts them as the file does."""
    names = [name for name in features.columns if is_numeric(features[name])]
    try:
        refuse_infinite(features[names].to_numpy(dtype=np.float64), names)
    except DataError as error:
        raise DataError(f"{origin}: {error}") from None


def _check_time(origin: str, frame: pd.DataFrame, uses: Uses) -> None:
    if uses.time is None or is_numeric(frame[uses.time]):
        return
    try:
        as_dates(frame[uses.time])
    except DataError as error:
        raise DataError(f"{origin}: --time: {error}") from None


def _known_outcomes(
    origin: str, frame: pd.DataFrame, uses: Uses, law: str | None
) -> tuple[pd.DataFrame, list[str]]:
    known = uses.known(frame)
    if law == "plackett_luce":  # the first places are a ranking too
        known = frame[uses.target].notna().any(axis=1).to_numpy()
    name = uses.outcome_name
    if not known.any():
        raise DataError(f"{origin}: the target '{name}' is missing in every row.")
    if known.all():
        return frame, []
    gone = int((~known).sum())
    left_out = "1 row" if gone == 1 else f"{gone} rows"
    was = "was" if gone == 1 else "were"
    return frame[known], [f"{left_out} without a value of '{name}' {was} left out."]


def _warnings(frame: pd.DataFrame, uses: Uses, columns: list[Column], law: str) -> list[str]:
    said = [
        f"column '{name}' names images, which take no part: to learn from them, --image {name}."
        for name in image_columns(frame)
    ]
    if law != "plackett_luce":
        said += find_leaks(frame, uses.target, columns, group=uses.group, time=uses.time)
    link = likelihoods.registry.get(law).link_name
    if uses.exposure is not None and link == "identity":
        said.append(
            f"the exposure '{uses.exposure}' adds its logarithm to the mean, as the link of {law} "
            "is the identity; for rates take a law with a log link, like poisson or gamma."
        )
    for name in uses.target:
        single = law not in (*CLASS_LAWS, "plackett_luce") and is_numeric(frame[name])
        if single and len(frame) > 1 and frame[name].nunique() == 1:
            value = frame[name].iloc[0]
            said.append(f"the target '{name}' is {value:g} in every row: nothing to explain.")
    return said


def _fingerprint(frame: pd.DataFrame) -> str:
    digest = hashlib.sha256()
    digest.update("\x1f".join(f"{name}:{frame[name].dtype}" for name in frame.columns).encode())
    digest.update(pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes())
    return digest.hexdigest()
