"""Supplies what tables add to a report."""

from typing import TYPE_CHECKING, Any, cast

from ansatz.data import Column
from ansatz.figures.section import Chapter
from ansatz.report.baselines import Forecast
from ansatz.report.evidence import Contribution, Novelty
from ansatz.structures.vector.report.boosting import boosted
from ansatz.structures.vector.report.extrapolation import novelty
from ansatz.structures.vector.rows import TableRows

if TYPE_CHECKING:
    import pandas as pd

    from ansatz.fitting.job import Job
    from ansatz.fitting.model import Model
    from ansatz.report.evidence import Evidence

_HERE = "ansatz.structures.vector.report"
_CHAPTERS = [
    Chapter(15, "coefficients", f"{_HERE}.coefficients:section"),
    Chapter(16, "penalised coefficients", f"{_HERE}.penalty_path:section"),
    Chapter(40, "importance of columns", f"{_HERE}.importance:section"),
    Chapter(41, "effects of columns", f"{_HERE}.effects:section"),
    Chapter(42, "subgroups", f"{_HERE}.subgroups:subgroups_section"),
    Chapter(43, "extrapolation", f"{_HERE}.extrapolation:section"),
    Chapter(44, "worst-fitted rows", f"{_HERE}.subgroups:worst_rows_section"),
    Chapter(90, "the data", f"{_HERE}.data_summary:section"),
]


class VectorReport(Contribution):
    """The contribution of tables: chapters on columns, and boosted trees as a baseline."""

    caveat = "Importance and effects describe predictions, not causes."

    def chapters(self, axis: str) -> list[Chapter]:
        """Lists the chapters on columns."""
        return _CHAPTERS

    def features(self, rows: TableRows) -> "pd.DataFrame":
        """Returns features as a frame; columns of an array without names are x1, x2, ..."""
        return rows.frame

    def inputs(self, features: Any, job: "Job") -> TableRows:
        """Makes rows of the same columns."""
        return cast(TableRows, job.rows).like(features)

    def columns(self, model: "Model", features: "pd.DataFrame") -> list[Column]:
        """Lists the columns of the fit; those of an array are numbers."""
        if model.columns is not None:
            return model.columns
        missing = features.isna().sum()
        return [
            Column(name=str(name), role="numeric", missing=int(missing[name])) for name in features
        ]

    def has_features(self, evidence: "Evidence") -> bool:
        """Tests whether any column is used."""
        return any(column.used for column in evidence.columns)

    def baselines(self, evidence: "Evidence") -> tuple[list[Forecast], list[str]]:
        """Fits boosted trees."""
        try:
            trees, why = boosted(evidence)
        except (ValueError, RuntimeError) as error:
            trees, why = None, f"HistGradientBoosting could not be fitted: {error}"
        return [Forecast("boosted trees", *trees)] if trees else [], [why] if why else []

    def novelty(self, evidence: "Evidence") -> Novelty | None:
        """Computes leverage for a linear model, else the distance to the training rows."""
        return novelty(evidence)
