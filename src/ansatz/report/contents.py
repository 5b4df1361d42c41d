"""The chapters of a report: those of any structure, then those that the structure adds."""

from ansatz.figures.section import Chapter
from ansatz.report.evidence import Evidence

_ALWAYS = [
    Chapter(10, "what was fitted", "ansatz.report.what_was_fitted:section"),
    Chapter(20, "scores beside other models", "ansatz.report.scores:section"),
]
# Of one outcome per row; each is None where it does not apply.
_OF_ROWS = [
    Chapter(30, "probability integral transform", "ansatz.report.pit:section"),
    Chapter(31, "laws of vectors", "ansatz.report.vectors:section"),
    Chapter(32, "errors of direction", "ansatz.report.directions:section"),
    Chapter(33, "first places of rankings", "ansatz.report.rankings:section"),
    Chapter(34, "coverage of intervals", "ansatz.report.coverage:section"),
    Chapter(35, "reliability of probabilities", "ansatz.report.reliability:section"),
    Chapter(36, "calibration of survival", "ansatz.report.survival_calibration:section"),
    Chapter(37, "quantile residuals", "ansatz.report.quantile_residuals:section"),
    Chapter(38, "residual panels", "ansatz.report.residual_panels:section"),
    Chapter(39, "recalibration", "ansatz.report.recalibration:section"),
    Chapter(80, "decisions from costs", "ansatz.report.costs:section"),
]


def chapters(evidence: Evidence) -> list[Chapter]:
    """Lists the chapters of a report in the order of the page.

    Structures place theirs from 40 to 79, before decisions, and from 90 on, after them.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.report import gather
        >>> from ansatz.report.contents import chapters
        >>> x = np.arange(9.0).reshape(-1, 1)
        >>> evidence = gather(Regressor(network="linear").fit(x, x[:, 0]), x, x[:, 0])
        >>> chapters(evidence)[-1].words
        'the data'
    """
    general = _ALWAYS + (_OF_ROWS if evidence.axis == "row" else [])
    return sorted(general + evidence.contribution.chapters(evidence.axis))
