"""Common slips in printed formulas: the slip, the right formula, and the check that decides."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ansatz.claims.catalog import Row, catalog
from ansatz.claims.claim import Erratum
from ansatz.claims.finding import Check
from ansatz.claims.outcome import Outcome
from ansatz.claims.registry import get, names
from ansatz.claims.verification import verify


@dataclass(frozen=True)
class Correction:
    """One common slip, and the check that the slip fails and the right formula passes.

    Args:
        row: of the catalog.
        claim: the name of the claim that decides; None if there is none yet.
        erratum: the slip and the right formula.
        check: None if the claim broke.
    """

    row: Row
    claim: str | None = None
    erratum: Erratum | None = None
    check: Check | None = None

    @property
    def refuted(self) -> bool:
        """Whether the right formula passes and the slip fails."""
        return self.check is not None and self.check.holds and self.check.rejects_wrong

    @property
    def is_measured_otherwise(self) -> bool:
        """Whether the slip is in what is computed, rather than in what is predicted."""
        wrong = self.check.wrong if self.check else None
        return wrong is not None and wrong.measured is not None

    @property
    def printed_gives(self) -> float | None:
        """The number of the slip: what it predicts, or what is measured when it is used."""
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
    """Pairs E1 to E67, in their order, with the checks that decide them.

    Args:
        outcomes: of the claims that were run; by default all claims with errata are run now. A
            slip whose claim is not among them has no check.
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
    for row in catalog():
        if row.kind != "erratum":
            continue
        pairs = [(name, e) for name in with_errata for e in get(name).errata if e.id == row.id]
        found += [Correction(row, name, e, checks.get((name, row.id))) for name, e in pairs]
        if not pairs:
            found.append(Correction(row))
    return found
