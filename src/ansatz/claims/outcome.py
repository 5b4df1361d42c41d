"""Outcomes of runs, here and as messages between processes."""

import base64
from dataclasses import asdict, dataclass
from typing import Any

from ansatz.claims.finding import Check, Finding, Table, Wrong
from ansatz.claims.registry import get


@dataclass(frozen=True)
class Outcome:
    """The outcome of one run of a claim: a finding, or an error.

    Args:
        id: the claim.
        seconds: how long the run took.
        finding: without the data for its figure; None if the claim broke.
        error: the error in one line.
        figure: the content of the figure's file, if one was requested.
        trace: the traceback.

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
        return self.finding is not None and self.finding.holds and self.finding.rejects_wrong

    @property
    def verdict(self) -> str:
        """``holds``, ``DOES NOT HOLD``, ``WRONG ONE PASSES`` or ``BROKEN``."""
        if self.finding is None:
            return "BROKEN"
        if not self.finding.holds:
            return "DOES NOT HOLD"
        if not self.finding.rejects_wrong:
            return "WRONG ONE PASSES"
        return "holds"

    def to_dict(self) -> dict[str, Any]:
        """As ``ansatz verify --json`` prints it."""
        found = self.finding
        return {
            "id": self.id,
            "statement": get(self.id).statement if found else None,
            "holds": self.holds,
            "measured": found.measured if found else None,
            "predicted": found.predicted if found else None,
            "seconds": round(self.seconds, 3),
            "error": self.error or None,
            "checks": [check.to_dict() for check in found.checks] if found else [],
        }

    def to_message(self) -> dict[str, Any]:
        """The outcome as JSON for another process."""
        found = self.finding
        checks = [asdict(check) for check in found.checks] if found else []
        table = found.table if found else None
        return {
            "id": self.id,
            "seconds": self.seconds,
            "error": self.error,
            "trace": self.trace,
            "figure": base64.b64encode(self.figure).decode() if self.figure else None,
            "checks": [_plain(check) for check in checks],
            "table": _plain({"head": table.head, "rows": table.rows}) if table else None,
        }

    @classmethod
    def of_message(cls, message: dict[str, Any]) -> "Outcome":
        """Reads the outcome that another process found."""
        checks = [
            Check(**{**check, "wrong": Wrong(**check["wrong"]) if check["wrong"] else None})
            for check in message["checks"]
        ]
        table = Table(**message["table"]) if message["table"] else None
        return cls(
            message["id"],
            message["seconds"],
            Finding(checks, table) if checks else None,
            message["error"],
            base64.b64decode(message["figure"]) if message["figure"] else None,
            message["trace"],
        )


def _plain(value: Any) -> Any:
    """Converts numbers of NumPy and torch to Python's own, and other objects to text."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)
