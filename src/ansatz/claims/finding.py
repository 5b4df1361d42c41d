"""Findings of claims: checks, each beside a wrong prediction that must fail, and a table."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Relation = Literal["=", "<=", ">="]
EPS = 2.0**-52  # of float64


@dataclass(frozen=True)
class Wrong:
    """A prediction that must fail: a common slip, or a changed exponent or constant.

    Args:
        name: the mistake, in a few words.
        predicted: the number it predicts; by default the claim's own.
        measured: what is measured with the mistake, where it is in the computation; by default
            what the claim measured.
        erratum: its row of the errata, as ``"E17"``.

    Example:
        >>> from ansatz.claims import Wrong
        >>> Wrong("the logarithm to base 2", predicted=50.2, erratum="E17").erratum
        'E17'
    """

    name: str
    predicted: float | None = None
    measured: float | None = None
    erratum: str = ""

    def __post_init__(self) -> None:
        for name in ("predicted", "measured"):
            given = getattr(self, name)
            object.__setattr__(self, name, None if given is None else float(given))


@dataclass(frozen=True)
class Check:
    r"""A comparison of a measured number with the claim's prediction, within a derived tolerance.

    .. math:: |m - p| \le \tau \quad (=), \qquad m \le p + \tau \quad (\le), \qquad
        m \ge p - \tau \quad (\ge)

    Args:
        what: the quantity.
        measured: :math:`m`.
        predicted: :math:`p`.
        tolerance: :math:`\tau`.
        because: the reason for the tolerance: standard errors, a rate, machine precision.
        relation: how measured and predicted compare.
        wrong: a prediction that must not pass this check.

    Example:
        >>> from ansatz.claims import Check, Wrong
        >>> wrong = Wrong("twice as many", predicted=2.0)
        >>> check = Check("area", 0.99, 1.0, 0.03, "3 standard errors", wrong=wrong)
        >>> check.holds, check.rejects_wrong
        (True, True)
    """

    what: str
    measured: float
    predicted: float
    tolerance: float
    because: str
    relation: Relation = "="
    wrong: Wrong | None = None

    def __post_init__(self) -> None:
        for name in ("measured", "predicted", "tolerance"):  # NumPy's and torch's numbers too
            object.__setattr__(self, name, float(getattr(self, name)))

    @property
    def holds(self) -> bool:
        """Whether the measurement is as predicted; nan and infinity never hold."""
        return self._agree(self.measured, self.predicted)

    @property
    def rejects_wrong(self) -> bool:
        """Whether the wrong prediction fails, as it must; True if none is named."""
        if self.wrong is None:
            return True
        measured = self.measured if self.wrong.measured is None else self.wrong.measured
        predicted = self.predicted if self.wrong.predicted is None else self.wrong.predicted
        return not self._agree(measured, predicted)

    def _agree(self, measured: float, predicted: float) -> bool:
        if not (math.isfinite(measured) and math.isfinite(predicted)):
            return False
        excess = measured - predicted
        if self.relation == "=":
            excess = abs(excess)
        elif self.relation == ">=":
            excess = -excess
        return bool(excess <= self.tolerance)

    def to_dict(self) -> dict[str, Any]:
        """As ``ansatz verify --json`` prints it."""
        found: dict[str, Any] = {
            "what": self.what,
            "measured": self.measured,
            "relation": self.relation,
            "predicted": self.predicted,
            "tolerance": self.tolerance,
            "because": self.because,
            "holds": self.holds,
        }
        if self.wrong is not None:
            found["wrong"] = {
                "name": self.wrong.name,
                "erratum": self.wrong.erratum or None,
                "predicted": self.predicted
                if self.wrong.predicted is None
                else self.wrong.predicted,
                "measured": self.measured if self.wrong.measured is None else self.wrong.measured,
                "refuted": self.rejects_wrong,
            }
        return found


@dataclass(frozen=True)
class Table:
    """The numbers behind a finding, as a table to print.

    Args:
        head: names of the columns.
        rows: one sequence per row, as long as ``head``.

    Example:
        >>> from ansatz.claims import Table
        >>> len(Table(["n", "error"], [[10, 0.1], [100, 0.01]]).rows)
        2
    """

    head: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Finding:
    """The result of a run: measurements beside predictions.

    Args:
        checks: the comparisons; the first is the headline.
        table: the numbers behind them.
        data: arrays and numbers for the figure, by name.

    Example:
        >>> from ansatz.claims import Check, Finding
        >>> finding = Finding([Check("two and two", 4.0, 4.0, 0.0, "exact")])
        >>> finding.holds, finding.measured
        (True, 4.0)
    """

    checks: Sequence[Check]
    table: Table | None = None
    data: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.checks:
            raise ValueError("a finding needs at least one check, got none.")

    @property
    def holds(self) -> bool:
        """Whether every check holds."""
        return all(check.holds for check in self.checks)

    @property
    def rejects_wrong(self) -> bool:
        """Whether the claim names a wrong prediction, and every one of them fails."""
        named = [check for check in self.checks if check.wrong is not None]
        return bool(named) and all(check.rejects_wrong for check in named)

    @property
    def measured(self) -> float:
        """That of the first check."""
        return self.checks[0].measured

    @property
    def predicted(self) -> float:
        """That of the first check."""
        return self.checks[0].predicted

    @property
    def tolerance(self) -> float:
        """That of the first check."""
        return self.checks[0].tolerance
