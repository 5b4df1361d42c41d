"""The chapters of a report: those of all models, of the outcomes, and of the structure."""

from ansatz.figures.section import Chapter
from ansatz.report.evidence import Evidence

_ALWAYS = [
    Chapter(10, "what was fitted", "ansatz.report.what_was_fitted:section"),
    Chapter(20, "scores beside other models", "ansatz.report.scores:section"),
]


def chapters(evidence: Evidence) -> list[Chapter]:
    """Lists the chapters of a report in the order of the page.

    Outcomes place theirs from 30 to 39, structures from 40 to 79, before decisions, and from 90
    on, after them.
    """
    general = _ALWAYS + evidence.outcome_report.chapters()
    return sorted(general + evidence.contribution.chapters(evidence.axis))
