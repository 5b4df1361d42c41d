"""What the run of a claim found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansatz.claims.check import Check


@dataclass(frozen=True)
class Table:
    """Numbers behind a finding, to be printed.

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
    """What was measured, beside what was predicted.

    Args:
        checks: the comparisons; the first is the headline.
        table: the numbers behind them.
        data: whatever the figure needs: arrays and numbers by name.

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
        """Whether a wrong prediction is named, and every one that is named fails."""
        named = [check for check in self.checks if check.wrong is not None]
        return bool(named) and all(check.rejects_wrong for check in named)

    @property
    def measured(self) -> float:
        """Of the headline."""
        return self.checks[0].measured

    @property
    def predicted(self) -> float:
        """Of the headline."""
        return self.checks[0].predicted

    @property
    def tolerance(self) -> float:
        """Of the headline."""
        return self.checks[0].tolerance
