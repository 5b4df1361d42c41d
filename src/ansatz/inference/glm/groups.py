"""The groups of rows: their codes, the columns of their terms, and groups that are new."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data.categorical import sort_levels, spelled
from ansatz.errors import DataError, UsageError
from ansatz.fitting.column_roles import is_numeric
from ansatz.inference.glm.target import Grouping
from ansatz.linear.terms import INTERCEPT, Term, TermRows
from ansatz.seeds import derive

Array = NDArray[np.float64]
SEPARATOR = ":"


class TermLevels(NamedTuple):
    """A term with what the training rows showed: the groups, and the columns' means and sds."""

    term: Term
    levels: tuple[str, ...]
    mean: tuple[float, ...]
    sd: tuple[float, ...]

    @classmethod
    def of(cls, term: Term, frame: Any) -> Self:
        """What rows show; a term that they cannot tell anything about is refused."""
        _, names = group_names(term, frame)
        levels = tuple(sort_levels(sorted(set(names) - {""})))
        if len(levels) < 2:
            raise UsageError(
                f"random: '{term}' has {len(levels)} group; what varies between groups needs two "
                "or more."
            )
        values = np.stack([_column(name, frame) for name in term.columns], 1)
        mean, sd = np.nanmean(values, 0), np.nanstd(values, 0)
        missing = np.flatnonzero(np.isnan(values).any(0))
        if len(missing):
            raise DataError(
                f"column '{term.columns[missing[0]]}' of '{term}' has missing values: impute them "
                "or drop the rows."
            )
        found = cls(term, levels, tuple(mean.tolist()), tuple(np.where(sd > 0, sd, 1.0).tolist()))
        found._refuse_constant(values, names)
        return found

    def _refuse_constant(self, values: Array, names: Sequence[str]) -> None:
        """A slope is seen only where a column varies within groups."""
        codes = np.unique(np.asarray(names), return_inverse=True)[1]
        counts = np.bincount(codes)
        for k, name in enumerate(self.term.columns):
            if name == INTERCEPT:
                continue
            means = np.bincount(codes, values[:, k]) / counts
            if np.abs(values[:, k] - means[codes]).max() <= 1e-9 * max(1.0, np.abs(values).max()):
                raise UsageError(
                    f"random: '{name}' is constant within each group of '{self.term.label}', so "
                    f"that its slope cannot vary between them: take '1|{self.term.label}'."
                )

    def rows(self, frame: Any) -> TermRows:
        """The groups and columns of rows; a missing number is read as the training rows' mean."""
        place = {level: k for k, level in enumerate(self.levels)}
        _, names = group_names(self.term, frame)
        codes = np.array([place.get(name, -1) for name in names], dtype=np.intp)
        values = np.stack([_column(name, frame) for name in self.term.columns], 1)
        return TermRows(codes, np.where(np.isnan(values), self.mean, values))

    def grouping(self, frame: Any) -> Grouping:
        """The term of training rows."""
        return Grouping(self.term, self.rows(frame), self.levels, self.sd)

    def record(self) -> dict[str, Any]:
        """Everything as JSON."""
        term = {
            "columns": list(self.term.columns),
            "group": list(self.term.group),
            "correlated": self.term.correlated,
        }
        return {
            "term": term,
            "levels": list(self.levels),
            "mean": list(self.mean),
            "sd": list(self.sd),
        }

    @classmethod
    def load(cls, record: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`record`."""
        own = record["term"]
        term = Term(tuple(own["columns"]), tuple(own["group"]), bool(own["correlated"]))
        return cls(term, tuple(record["levels"]), tuple(record["mean"]), tuple(record["sd"]))


def group_names(term: Term, frame: Any) -> tuple[NDArray[np.bool_], list[str]]:
    """Which rows name a group, and its name; empty where a part of it is missing."""
    parts = []
    for name in term.group:
        if name not in frame.columns:
            raise DataError(f"the table lacks the column '{name}', which names groups.")
        codes, levels = spelled(frame[name])
        parts.append(np.array([*levels, ""], dtype=object)[codes])
    known = np.all([part != "" for part in parts], axis=0)
    joined = [SEPARATOR.join(each) for each in zip(*parts, strict=True)]
    return known, [name if is_known else "" for name, is_known in zip(joined, known, strict=True)]


def _column(name: str, frame: Any) -> Array:
    if name == INTERCEPT:
        return np.ones(len(frame))
    if name not in frame.columns:
        raise DataError(f"the table lacks the column '{name}', whose slope varies between groups.")
    if not (is_numeric(frame[name]) or frame[name].dtype.kind == "b"):
        raise UsageError(f"random: '{name}' does not hold numbers: only those have slopes.")
    found: Array = frame[name].to_numpy(dtype=np.float64)
    return found


def new_group(name: str, lower: Tensor, seed: int) -> Tensor:
    r"""The coefficients of a group that the fit has not seen, one for each draw, ``(S, k)``.

    .. math:: u_s = L_s z_s, \qquad z_s \sim N(0, I)

    with noise that is a function of the seed and the group's name: its rows share it, and it is the
    same in every call.
    """
    text = hashlib.sha256(name.encode()).hexdigest()
    noise = torch.Generator().manual_seed(derive(seed, "group", text) % 2**63)
    z = torch.randn(*lower.shape[:2], generator=noise, dtype=lower.dtype)
    return (lower @ z.unsqueeze(-1)).squeeze(-1)
