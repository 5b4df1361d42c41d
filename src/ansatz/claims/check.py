"""One comparison: what was measured beside what the claim predicts, and what would be wrong."""

import math
from dataclasses import dataclass
from typing import Any, Literal

Relation = Literal["=", "<=", ">="]


@dataclass(frozen=True)
class Wrong:
    """A prediction that must fail: a textbook's slip, or a changed exponent or constant.

    Args:
        name: what is wrong about it, in a few words.
        predicted: the number it predicts; by default the claim's own.
        measured: what is measured under it, where the slip is in what is computed; by default what
            the claim measured.
        erratum: the row of the errata that prints it, as ``"E17"``.

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
    r"""Whether a measured number is what the claim predicts, within a tolerance that is derived.

    .. math:: |m - p| \le \tau \quad (=), \qquad m \le p + \tau \quad (\le), \qquad
        m \ge p - \tau \quad (\ge)

    Args:
        what: the quantity.
        measured: :math:`m`.
        predicted: :math:`p`.
        tolerance: :math:`\tau`.
        because: where the tolerance comes from: standard errors, a rate, machine precision.
        relation: what the claim says of the two.
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
        """Whether the measurement is as predicted; what is not finite never holds."""
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
