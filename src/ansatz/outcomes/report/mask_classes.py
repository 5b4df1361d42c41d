"""How well each class of cells is found, beside the linear and the constant model."""

import math

import torch

from ansatz.figures.section import Cell, Section, Table
from ansatz.metrics import boundary_f1, overlap
from ansatz.metrics.segmentation import reduce_classes
from ansatz.outcomes.report.labelled import labelled
from ansatz.report.baselines import Forecast, baselines
from ansatz.report.evidence import Evidence

MOST = 20  # classes


def section(evidence: Evidence) -> Section | None:
    """Dice, IoU, boundary F1 and wrong cells of every class and model."""
    forecasts = baselines(evidence).forecasts
    classes = [] if evidence.classes is None else [str(name) for name in evidence.classes]
    rows: list[list[Cell]] = []
    found = {forecast.name: _by_class(evidence, forecast, len(classes)) for forecast in forecasts}
    for k, label in enumerate(classes[:MOST]):
        for name, values in found.items():
            numbers = (values[metric][k] for metric in values)
            rows.append([label, name, *(None if math.isnan(v) else f"{v:.3f}" for v in numbers)])
    mine = found["model"]["Dice"]
    order = sorted(range(len(classes)), key=lambda k: mine[k])
    lead = (
        f"The class that is found worst is “{classes[order[0]]}”, with a Dice coefficient of "
        f"{mine[order[0]]:.3f}; the best “{classes[order[-1]]}”, with {mine[order[-1]]:.3f}."
    )
    head = ["class", "model", *found["model"]]
    caption = (
        f"Means over the test {evidence.unit.many}. Dice, IoU and boundary F1 are 1 where a class "
        "is "
        "absent from both masks. Missed: cells of the class that are given another one; "
        "said wrongly: cells that are given the class and are of another."
    )
    return Section("Scores of each class", lead, [Table(head, rows, caption)])


def _by_class(evidence: Evidence, forecast: Forecast, count: int) -> dict[str, list[float]]:
    y, cells = evidence.outcome.clamp(min=0), labelled(evidence.outcome)
    found = overlap(y, forecast.point, cells, classes=count)
    weight = evidence.weight
    both, true, said = found.both, found.true, found.predicted
    union = true + said - both

    def mean(part: torch.Tensor, whole: torch.Tensor) -> list[float]:
        value = torch.where(whole > 0, part / whole.clamp(min=1e-300), 1.0)
        return [float(v) for v in (value * weight[:, None]).sum(0) / weight.sum()]

    def share(part: torch.Tensor, whole: torch.Tensor) -> list[float]:
        totals = ((t * weight[:, None]).sum(0) for t in (part, whole))
        return [float(a / b) if b > 0 else math.nan for a, b in zip(*totals, strict=True)]

    edges = _edges(y, forecast.point, cells, weight, count)
    return {
        "Dice": mean(2 * both, true + said),
        "IoU": mean(both, union),
        "boundary F1": edges,
        "missed": share(true - both, true),
        "said wrongly": share(said - both, said),
    }


def _edges(
    y: torch.Tensor, codes: torch.Tensor, cells: torch.Tensor, weight: torch.Tensor, count: int
) -> list[float]:
    """Boundary F1 of each class; of two classes the metric is that of the second alone."""
    whole = cells * weight.reshape(-1, *(1,) * (y.ndim - 1))
    values = boundary_f1(y, codes, whole, classes=count, reduction="none")  # (N, K) or (N, 1)
    padded = torch.cat([torch.full((len(values), count - values.shape[1]), torch.nan), values], 1)
    means = reduce_classes(padded, weight, reduction="class")  # of two classes the second alone
    return [math.nan] * (count - len(means)) + [float(value) for value in means]
