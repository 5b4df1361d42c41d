"""A table read as a question: which columns are features, what kind of quantity is the target."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ansatz import data as ansatz_data
from ansatz import likelihoods
from ansatz.data import Column, as_frame, find_leaks, infer_columns, read_table
from ansatz.data.dates import as_dates, looks_like_dates
from ansatz.data.numeric import refuse_infinite
from ansatz.errors import DataError, UsageError
from ansatz.estimators.classifier import CLASS_LAWS
from ansatz.estimators.uses import Uses, near_columns


class Problem(NamedTuple):
    """A table with every column's part in it.

    Example:
        >>> import pandas as pd
        >>> from ansatz.estimators.problem import pose
        >>> frame = pd.DataFrame({"a": [1.5, 2.0, 3.0], "y": ["n", "y", "n"]})
        >>> pose(frame, Uses(target=["y"])).likelihood
        'bernoulli'
    """

    origin: str  # what errors call the table
    frame: pd.DataFrame  # rows whose outcome is known
    features: pd.DataFrame
    columns: list[Column]
    uses: Uses
    likelihood: str
    notes: list[str]
    fingerprint: str  # of the rows

    @property
    def is_classification(self) -> bool:
        """Whether the outcomes are classes."""
        return self.likelihood in CLASS_LAWS


def pose(
    data: Any,
    uses: Uses,
    *,
    likelihood: str | None = None,
    roles: Mapping[str, str] | None = None,
    drop: Sequence[str] = (),
    reader: Mapping[str, Any] | None = None,
) -> Problem:
    """Reads a table and decides what each column is for.

    Args:
        data: a path, the name of a data set, a frame, an Arrow table or a mapping of columns.
        uses: target, weights, offset and so on by name.
        likelihood: the law; None lets the values of the target choose.
        roles: what columns are, where the guess would be wrong.
        drop: columns to leave out.
        reader: options of :func:`ansatz.data.read_table`.

    Example:
        >>> from ansatz.estimators.problem import pose
        >>> from ansatz.estimators.uses import Uses
        >>> pose({"a": [1.0, 2.0, 4.0], "y": [0.5, 1.5, 2.5]}, Uses(target=["y"])).likelihood
        'normal'
    """
    words = {*drop, *(name for name, role in (roles or {}).items() if role != "numeric")}
    origin, frame, notes = _open(data, reader or {}, words)
    for name in drop:
        if name not in frame.columns:
            raise UsageError(f"{origin}: no column '{name}' to drop. {near_columns(name, frame)}")
    frame = frame.drop(columns=list(drop))
    uses.check(frame, origin)
    _refuse_infinite(origin, uses.features(frame))
    _check_time(origin, frame, uses)
    frame, more = _known_outcomes(origin, frame, uses)
    law, why = (likelihood, "") if likelihood else _propose(origin, frame, uses)
    _check_outcomes(origin, frame, uses, law)
    features = uses.features(frame)
    columns = infer_columns(features, roles=roles or {})
    notes += [*more, *([why] if why else []), *_warnings(frame, uses, columns, law)]
    return Problem(origin, frame, features, columns, uses, law, notes, _fingerprint(frame))


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
    names = [name for name in features.columns if _is_numeric(features[name])]
    try:
        refuse_infinite(features[names].to_numpy(dtype=np.float64), names)
    except DataError as error:
        raise DataError(f"{origin}: {error}") from None


def _check_time(origin: str, frame: pd.DataFrame, uses: Uses) -> None:
    if uses.time is None or _is_numeric(frame[uses.time]):
        return
    try:
        as_dates(frame[uses.time])
    except DataError as error:
        raise DataError(f"{origin}: --time: {error}") from None


def _known_outcomes(origin: str, frame: pd.DataFrame, uses: Uses) -> tuple[pd.DataFrame, list[str]]:
    known = frame[uses.target].notna().all(axis=1).to_numpy()
    name = ", ".join(uses.target)
    if not known.any():
        raise DataError(f"{origin}: the target '{name}' is missing in every row.")
    if known.all():
        return frame, []
    gone = int((~known).sum())
    return frame[known], [f"{gone} rows without a value of '{name}' were left out."]


def _propose(origin: str, frame: pd.DataFrame, uses: Uses) -> tuple[str, str]:
    """A law by the support of the values, never by the file's type."""
    y = frame[uses.target]
    name = ", ".join(uses.target)
    if all(_is_numeric(y[column]) for column in y):
        if len(uses.target) == 1 and set(pd.unique(y.iloc[:, 0])) == {0, 1}:
            return "bernoulli", f"likelihood bernoulli: '{name}' is 0 or 1."
        if uses.exposure is not None and ((y >= 0) & (y % 1 == 0)).all(axis=None):
            return "poisson", f"likelihood poisson: '{name}' holds counts beside an exposure."
        return "normal", f"likelihood normal: '{name}' holds numbers; --likelihood chooses another."
    if len(uses.target) > 1:
        raise DataError(f"{origin}: several targets must all be numbers: '{name}'.")
    if looks_like_dates([str(value) for value in y.iloc[:, 0].unique()]):
        raise DataError(
            f"{origin}: the target '{name}' holds dates. Predict a number, like the days since a "
            "first date, or name classes with --likelihood categorical."
        )
    levels = y.iloc[:, 0].nunique()
    law = "bernoulli" if levels == 2 else "categorical"
    return law, f"likelihood {law}: '{name}' has {levels} classes."


def _check_outcomes(origin: str, frame: pd.DataFrame, uses: Uses, law: str) -> None:
    """The support of the law, before anything is trained; rows are named as in the file."""
    likelihoods.registry.get(law)  # an unknown name is an error with a suggestion
    if law in CLASS_LAWS:
        _check_classes(origin, frame, uses)
        return
    import torch

    for name in uses.target:
        column = frame[name]
        if not _is_numeric(column):
            bad = pd.to_numeric(column.astype(str), errors="coerce").isna().to_numpy()
            row = int(np.flatnonzero(bad)[0]) if bad.any() else 0
            raise DataError(
                f"{origin}, row {_row(frame, row)}, column '{name}': {law} needs numbers, got "
                f"{str(column.iloc[row])[:60]!r}. For classes use bernoulli or categorical."
            )
        values = torch.from_numpy(column.to_numpy(dtype=np.float64, copy=True))
        try:
            likelihoods.create(law).check(values)
        except DataError as error:
            raise DataError(f"{origin}, column '{name}': {_name_row(str(error), frame)}") from None


def _check_classes(origin: str, frame: pd.DataFrame, uses: Uses) -> None:
    if len(uses.target) > 1:
        raise UsageError("one target at a time for classes; fit each column by itself.")
    column = frame[uses.target[0]]
    levels = column.nunique()
    if levels < 2:
        raise DataError(
            f"{origin}, column '{column.name}': only one class, {str(column.iloc[0])[:60]!r}. "
            "There is nothing to tell apart."
        )
    if levels > 1_000 or (levels > 20 and levels > len(column) / 2):
        raise DataError(
            f"{origin}, column '{column.name}': {levels} classes in {len(column)} rows. If it "
            "holds numbers or names rather than classes, choose another target or --likelihood."
        )


def _name_row(message: str, frame: pd.DataFrame) -> str:
    """Puts the table's row number in place of y[17]."""
    import re

    return re.sub(r"y\[(\d+)\]", lambda found: f"row {_row(frame, int(found[1]))}", message)


def _row(frame: pd.DataFrame, position: int) -> int:
    label = frame.index[position]
    return int(label) + 1 if isinstance(label, int | np.integer) else position + 1


def _is_numeric(column: pd.Series) -> bool:
    return getattr(column.dtype, "kind", "O") in "iuf"


def _warnings(frame: pd.DataFrame, uses: Uses, columns: list[Column], law: str) -> list[str]:
    said = list(find_leaks(frame, uses.target, columns, group=uses.group, time=uses.time))
    link = likelihoods.registry.get(law).link_name
    if uses.exposure is not None and link == "identity":
        said.append(
            f"the exposure '{uses.exposure}' adds its logarithm to the mean, as the link of {law} "
            "is the identity; for rates take a law with a log link, like poisson or gamma."
        )
    for name in uses.target:
        if law not in CLASS_LAWS and len(frame) > 1 and frame[name].nunique() == 1:
            value = frame[name].iloc[0]
            said.append(f"the target '{name}' is {value:g} in every row: nothing to explain.")
    return said


def _fingerprint(frame: pd.DataFrame) -> str:
    digest = hashlib.sha256()
    digest.update("\x1f".join(f"{name}:{frame[name].dtype}" for name in frame.columns).encode())
    digest.update(pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes())
    return digest.hexdigest()
