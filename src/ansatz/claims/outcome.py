"""How the run of one claim ended."""

from dataclasses import dataclass
from typing import Any

from ansatz.claims.finding import Finding


@dataclass(frozen=True)
class Outcome:
    """What a claim found, or what it broke on.

    Args:
        id: the claim.
        seconds: how long it took.
        finding: what it found, without what its figure needs; None if it broke.
        error: what it broke on, in one line.
        figure: the drawing, where one was asked for.
        trace: where it broke.

    Example:
        >>> from ansatz.claims import Outcome
        >>> Outcome("xor", 0.1, None, "ValueError: no").holds
        False
    """

    id: str
    seconds: float
    finding: Finding | None
    error: str = ""
    figure: bytes | None = None
    trace: str = ""

    @property
    def holds(self) -> bool:
        """Whether every check holds and every wrong prediction fails."""
        return self.finding is not None and self.finding.holds and self.finding.tells_apart

    @property
    def verdict(self) -> str:
        """``holds``, or what is the matter, in a few words."""
        if self.finding is None:
            return "BROKEN"
        if not self.finding.holds:
            return "DOES NOT HOLD"
        if not self.finding.tells_apart:
            return "WRONG ONE PASSES"
        return "holds"

    def to_dict(self) -> dict[str, Any]:
        """As ``ansatz verify --json`` prints it."""
        from ansatz.claims.registry import get

        found = self.finding
        return {
            "id": self.id,
            "statement": get(self.id).statement,
            "holds": self.holds,
            "measured": found.measured if found else None,
            "predicted": found.predicted if found else None,
            "seconds": round(self.seconds, 3),
            "error": self.error or None,
            "checks": [check.to_dict() for check in found.checks] if found else [],
        }
