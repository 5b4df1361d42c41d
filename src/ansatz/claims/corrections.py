"""The misprints of the course's documents: what they print, what is right, and what decides."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ansatz.claims.check import Check
from ansatz.claims.claim import Erratum
from ansatz.claims.course import Row, course
from ansatz.claims.outcome import Outcome
from ansatz.claims.registry import get, names
from ansatz.claims.verification import verify


@dataclass(frozen=True)
class Correction:
    """One misprint, and the measurement that tells it from the right formula.

    Args:
        row: of the course.
        claim: the name of the claim that decides; None if there is none yet.
        erratum: what is printed and what is right.
        check: the measurement; None if the claim broke.

    Example:
        >>> from ansatz import claims
        >>> claims.errata([])[16].row.id
        'E17'
    """

    row: Row
    claim: str | None = None
    erratum: Erratum | None = None
    check: Check | None = None

    @property
    def refuted(self) -> bool:
        """Whether the right formula passes where the printed one fails."""
        return self.check is not None and self.check.holds and self.check.rejects_wrong

    @property
    def is_measured_otherwise(self) -> bool:
        """Whether the slip is in what is computed, rather than in what is predicted."""
        wrong = self.check.wrong if self.check else None
        return wrong is not None and wrong.measured is not None

    @property
    def documents(self) -> tuple[str, ...]:
        """Which documents print it: letters."""
        return tuple(x for x in (self.erratum.documents if self.erratum else "") if x.isalpha())

    @property
    def printed_gives(self) -> float | None:
        """The number of the printed formula: what it predicts, or what is measured under it."""
        if self.check is None or self.check.wrong is None:
            return None
        wrong = self.check.wrong
        return wrong.measured if wrong.measured is not None else wrong.predicted

    @property
    def correct_gives(self) -> float | None:
        """The number of the right formula, of the same kind."""
        if self.check is None:
            return None
        return self.check.measured if self.is_measured_otherwise else self.check.predicted

    def to_dict(self) -> dict[str, Any]:
        """As ``ansatz verify --errata --json`` prints it."""
        erratum, check = self.erratum, self.check
        return {
            "id": self.row.id,
            "item": self.row.item,
            "claim": self.claim,
            "documents": self.documents,
            "printed": erratum.printed if erratum else None,
            "correct": erratum.correct if erratum else None,
            "what": check.what if check else None,
            "printed_gives": self.printed_gives,
            "correct_gives": self.correct_gives,
            "measured": check.measured if check else None,
            "tolerance": check.tolerance if check else None,
            "refuted": self.refuted if self.claim else None,
        }


def errata(outcomes: Sequence[Outcome] | None = None) -> list[Correction]:
    """E1 to E65 in their order, each with what decides it.

    Args:
        outcomes: of the claims that were run; by default all claims with errata are run now. A
            misprint whose claim is not among them stands without its measurement.

    Example:
        >>> from ansatz import claims
        >>> len(claims.errata([])) >= 65
        True
    """
    with_errata = [name for name in names() if get(name).errata]
    if outcomes is None:
        outcomes = verify(*with_errata) if with_errata else []
    checks = {
        (outcome.id, check.wrong.erratum): check
        for outcome in outcomes
        if outcome.finding is not None
        for check in reversed(outcome.finding.checks)  # the first one of an erratum stays
        if check.wrong is not None
    }
    found = []
    for row in course():
        if row.kind != "erratum":
            continue
        pairs = [(name, e) for name in with_errata for e in get(name).errata if e.id == row.id]
        found += [Correction(row, name, e, checks.get((name, row.id))) for name, e in pairs]
        if not pairs:
            found.append(Correction(row))
    return found
