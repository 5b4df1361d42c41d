"""Terms that vary between groups: ``1|subject``, ``days|subject``, ``days||subject``."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ansatz.errors import UsageError

INTERCEPT = "Intercept"


class Term(NamedTuple):
    """Coefficients that every group has of its own, drawn from one normal distribution.

    Args:
        columns: ``"Intercept"`` and names of columns.
        group: the columns whose values together name a group.
        correlated: whether the coefficients of a group may be correlated.

    Example:
        >>> from ansatz.linear.terms import read_terms
        >>> read_terms(["days|subject"])
        [Term(columns=('Intercept', 'days'), group=('subject',), correlated=True)]
        >>> [str(term) for term in read_terms(["1|school/class"])]
        ['1|school', '1|school:class']
    """

    columns: tuple[str, ...]
    group: tuple[str, ...]
    correlated: bool

    @property
    def label(self) -> str:
        """The name of the grouping."""
        return ":".join(self.group)

    def __str__(self) -> str:
        named = [name for name in self.columns if name != INTERCEPT]
        left = [] if INTERCEPT in self.columns and named else ["0"] if named else ["1"]
        bar = "|" if self.correlated or len(self.columns) == 1 else "||"
        return f"{' + '.join([*left, *named])}{bar}{self.label}"


def read_terms(texts: str | Iterable[str] | None) -> list[Term]:
    """Reads terms; one that is not a term is an error that shows how terms look."""
    given = [texts] if isinstance(texts, str) else list(texts or ())
    return [term for text in given for term in _read(str(text))]


def _read(text: str) -> list[Term]:
    form = re.fullmatch(r"\s*\(?\s*([^|]*?)\s*(\|\|?)\s*([^|]+?)\s*\)?\s*", text)
    if form is None or not form[1]:
        raise UsageError(
            f"random: expected a term like '1|subject', 'days|subject' or 'days||subject', got "
            f"'{text}'."
        )
    named = [part.strip() for part in form[1].split("+")]
    columns = [part for part in named if part not in ("0", "1", "")]
    if "0" not in named:
        columns = [INTERCEPT, *columns]
    if not columns:
        raise UsageError(f"random: '{text}' has neither an intercept nor a column.")
    groups = [part.strip() for part in form[3].split("/")]
    nested = [tuple(":".join(groups[: k + 1]).split(":")) for k in range(len(groups))]
    correlated = form[2] == "|" and len(columns) > 1
    return [Term(tuple(columns), group, correlated) for group in nested]


def grouping_columns(terms: Sequence[Term]) -> list[str]:
    """The columns that name groups, each once."""
    return list(dict.fromkeys(name for term in terms for name in term.group))


def slope_columns(terms: Sequence[Term]) -> list[str]:
    """The columns whose coefficients vary between groups, each once."""
    named = [name for term in terms for name in term.columns if name != INTERCEPT]
    return list(dict.fromkeys(named))


class TermRows(NamedTuple):
    """The rows of one term: which group each belongs to, and its columns.

    Args:
        codes: ``(N,)``, the number of the row's group; -1 for one that the fit has not seen.
        values: ``(N, k)``, ones for the intercept.
    """

    codes: NDArray[np.intp]
    values: NDArray[np.float64]
