"""Reports test rows outside the range of the training rows."""

import warnings
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.figures.number_format import number, percent, with_error
from ansatz.figures.section import Cell, Figure, Section, Table, Text
from ansatz.linear import leverage
from ansatz.metrics import mean_estimate
from ansatz.report.baselines import row_error
from ansatz.report.evidence import Evidence, Novelty
from ansatz.structures.vector.report.boosting import encode_columns, level_codes

Numbers = NDArray[np.float64]
_KEPT = 5_000  # most training rows to search


def nearest_distance(x: Tensor, learned: Tensor, neighbours: int = 5) -> Numbers:
    r"""Computes the mean distance to the nearest training rows, relative to typical ones."""
    from sklearn.neighbors import NearestNeighbors

    rows = learned.double().numpy()
    if len(rows) > _KEPT:
        chosen = np.random.default_rng(0).choice(len(rows), _KEPT, replace=False)
        rows = rows[np.sort(chosen)]
    near = min(neighbours, len(rows) - 1)
    if near < 1:
        return np.zeros(len(x))
    search = NearestNeighbors().fit(rows)
    own, _ = search.kneighbors(rows, near + 1)  # the nearest of each is the row itself
    typical = float(np.median(own[:, 1:].mean(1)))
    found, _ = search.kneighbors(x.double().numpy(), near)
    distance: Numbers = found.mean(1)
    return distance / typical if typical > 0 else distance


def novelty(evidence: Evidence) -> Novelty | None:
    """Computes leverage for a linear model, else the distance to the training rows.

    None without columns or training rows.
    """
    if not len(evidence.X.columns):
        return None
    preprocessor = evidence.model.encoder.preprocessor  # type: ignore[attr-defined]  # of a table
    x = _inputs(preprocessor, evidence.job.rows)
    if len(evidence.model.linear) == 1 and not evidence.model.several:
        (fit,) = evidence.model.linear
        try:
            pull = leverage(fit, x[:, : len(preprocessor.feature_names)])
            meaning = "Leverage is the influence of a row on its own fitted value."
            return Novelty(pull.numpy(), "leverage", "leverage", meaning)
        except UsageError:  # not an exponential family: distance, as for a network
            pass
    if evidence.training is None:
        return None
    learned = _inputs(preprocessor, evidence.training.job.rows)
    scale = learned.std(0).clamp(min=1e-12)
    value = nearest_distance(x / scale, learned / scale)
    meaning = (
        "The distance is that to the five nearest training rows in standardised features, relative "
        "to the median among training rows."
    )
    return Novelty(value, "distance to training rows", "extrapolation", meaning)


def _inputs(preprocessor: Any, rows: Any) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        numbers, *codes = preprocessor.transform(rows.values, notes=[])
    levels = preprocessor.spec.cardinalities if codes else ()
    parts = [numbers.double()]
    for k, size in enumerate(levels):  # embedded columns as indicators
        parts.append(torch.nn.functional.one_hot(codes[0][:, k], size + 1).double())
    return torch.cat(parts, 1)


SHOWN = 15


class Beyond(NamedTuple):
    """The test rows outside the training range of a column."""

    column: str
    known: str  # range or number of levels
    below: int
    above: int
    unseen: int  # levels, or missing values where training had none

    @property
    def rows(self) -> int:
        """The number of rows in total."""
        return self.below + self.above + self.unseen


def extrapolated(evidence: Evidence) -> tuple[list[Beyond], NDArray[np.bool_]]:
    """Counts the test rows outside the training range by column, and marks them."""
    assert evidence.training is not None
    named = evidence.model.columns is not None
    columns = [column for column in evidence.columns if column.used]
    learned, _ = encode_columns(evidence.training.X, columns if named else None)
    test, _ = encode_columns(evidence.X, columns if named else None)
    flagged = np.zeros(len(evidence.X), dtype=bool)
    found = []
    for j, column in enumerate(columns):
        then, now = learned[:, j], test[:, j]
        novel = np.isnan(now) & ~np.isnan(then).any()
        if column.role in ("categorical", "ordered"):
            before = level_codes(evidence.training.X[column.name], column.levels)
            codes = level_codes(evidence.X[column.name], column.levels)
            cells = evidence.X[column.name].notna().to_numpy()
            novel = (cells & ~np.isin(codes, before[before >= 0])) | (novel & ~cells)
            low = high = np.zeros(len(now), dtype=bool)
            known = f"{len(np.unique(before[before >= 0]))} levels"
        elif np.isnan(then).all():
            low = high = np.zeros(len(now), dtype=bool)
            novel, known = ~np.isnan(now), "nothing"
        else:
            least, most = float(np.nanmin(then)), float(np.nanmax(then))
            low, high = now < least, now > most
            known = f"{number(least)} to {number(most)}"
            known = "dates" if column.role == "date" else known
        flagged |= low | high | novel
        found.append(Beyond(column.name, known, int(low.sum()), int(high.sum()), int(novel.sum())))
    return sorted(found, key=lambda item: -item.rows), flagged


def section(evidence: Evidence) -> Section | None:
    """Reports rows outside the training range, and how well they are predicted."""
    if not any(column.used for column in evidence.columns):
        return None
    if evidence.training is None:
        sentence = "The training rows were not given: their ranges are unknown."
        return Section("Extrapolation", sentence)
    found, flagged = extrapolated(evidence)
    count, total = int(flagged.sum()), len(flagged)
    if not count:
        return Section(
            "Extrapolation",
            f"None of the {total} test rows is outside the training range or has an unseen level.",
        )
    rows: list[list[Cell]] = [
        [b.column, b.known, b.below, b.above, b.unseen, percent(b.rows / total)]
        for b in found[:SHOWN]
        if b.rows
    ]
    parts: list[Text | Table | Figure] = [
        Table(
            ["column", "training rows", "below", "above", "unseen", "share of rows"],
            rows,
            "Test rows outside the training range, by column. Networks clip numbers at six "
            "standard deviations; unseen levels count as unknown.",
        )
    ]
    parts += _losses(evidence, flagged)
    numbers = ", ".join(str(int(row)) for row in evidence.rows[flagged][:30])
    more = f" and {count - 30} more" if count > 30 else ""
    parts.append(Text(f"Rows of the table: {numbers}{more}.", "note"))
    lead = (
        f"{count} of {total} test rows ({percent(count / total)}) are outside the training range."
    )
    return Section("Extrapolation", lead, parts)


def _losses(evidence: Evidence, flagged: NDArray[np.bool_]) -> list[Text]:
    inside, outside = (torch.from_numpy(np.flatnonzero(mask)) for mask in (~flagged, flagged))
    if min(len(inside), len(outside)) < 10 or not evidence.likelihood.additive:
        return []
    losses = evidence.row_losses()
    means = []
    for rows in (outside, inside):
        value, influence = mean_estimate(losses[rows], evidence.weight[rows])
        means.append(with_error(value, row_error(evidence, influence, rows)))
    return [Text(f"Mean loss of these rows {means[0]}, of the others {means[1]}.")]
