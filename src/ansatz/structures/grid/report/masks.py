"""Scores of masks: losses, metrics as means of examples, two models example by example."""

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data.unlabelled import UNLABELLED
from ansatz.likelihoods import Likelihood
from ansatz.metrics import Estimate, boundary_f1, dice, iou, mean_estimate, pixel_error
from ansatz.report.evidence import Evidence
from ansatz.report.paired_scores import ScorePair
from ansatz.structures.grid.baselines import constant_masks
from ansatz.structures.grid.report.mask_reliability import of_cells

if TYPE_CHECKING:
    from ansatz.fitting.job import Job
    from ansatz.report.judged import Judged
    from ansatz.report.rivals import Forecast


class Masks:
    """Scores a class for every cell, example by example.

    An example is one unit: its cells are not independent of each other, and a standard error that
    counts cells would be far too small.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Categorical
        >>> from ansatz.structures.grid.report.masks import Masks
        >>> Masks().losses(Categorical(), torch.zeros(1, 2, 2), torch.tensor([[0, -1]]))
        tensor([0.6931], dtype=torch.float64)
    """

    def losses(self, law: Likelihood, raw: Tensor, y: Tensor) -> Tensor:
        """The mean negative log-likelihood of the labelled cells of each example, ``(N,)``.

        Args:
            law: of a cell's class.
            raw: its parameters at every cell, ``(N, *size, P)``.
            y: codes of the classes, ``(N, *size)``; -1 where there is no label.
        """
        seen = labelled(y).flatten(1)
        with torch.no_grad():
            cells = law.loss(raw, y.clamp(min=0)).double().flatten(1)
        return (cells * seen).sum(1) / seen.sum(1).clamp(min=1)

    def estimates(self, evidence: Evidence, forecast: "Forecast") -> dict[str, Estimate]:
        """Dice, IoU, boundary F1, wrong cells and the log score, with each example's influence."""
        y, codes, weight = evidence.outcome.clamp(min=0), forecast.point, evidence.weight
        cells = labelled(evidence.outcome)
        classes = [] if evidence.classes is None else list(evidence.classes)
        count = len(classes)
        found: dict[str, Estimate] = {}
        for name, metric in (("dice", dice), ("iou", iou), ("boundary_f1", boundary_f1)):
            values = metric(y, codes, cells, classes=count, reduction="none")  # (N, K)
            found[name] = _mean_of_classes(values, weight)
            if name == "dice" and count > 2:
                for k, label in enumerate(classes):
                    found[f"dice_{label}"] = _mean_of_classes(values[:, k : k + 1], weight)
        share = cells.flatten(1).mean(1)  # labelled cells of each image
        wrong = pixel_error(y, codes, cells, reduction="image").nan_to_num()
        found["pixel_error"] = _mean_of_cells(wrong, share, weight)
        found["accuracy"] = _mean_of_cells(1 - wrong, share, weight)
        if forecast.losses is not None:
            found["nll"] = _mean_of_cells(forecast.losses, share, weight)
        return found

    def calibration(self, evidence: Evidence) -> str:
        """Whether predicted classes are as often right as their probabilities say."""
        return of_cells(evidence)

    def constant(self, law: Likelihood, learn: "Job", test: "Job") -> tuple[Likelihood, Tensor]:
        """The shares of the labels at every cell."""
        return constant_masks(law, learn, test)

    def score_pair(self, a: "Judged", b: "Judged") -> ScorePair:
        """Dice's coefficient of each example, the mean over its classes."""
        return ScorePair("dice", _dice(a), _dice(b), higher=True)

    def score_beside(self, a: "Judged", b: "Judged") -> ScorePair:
        """The log score of the cells of each example; the share of wrong cells without a law."""
        if a.law.is_law and b.law.is_law:
            return ScorePair("log score", a.log_scores.numpy(), b.log_scores.numpy(), higher=True)
        return ScorePair("pixel_error", _wrong(a), _wrong(b), higher=False)


def labelled(y: Tensor) -> Tensor:
    """1 where a cell has a label, ``(N, *size)`` in double.

    Example:
        >>> import torch
        >>> from ansatz.structures.grid.report.masks import labelled
        >>> labelled(torch.tensor([[0, -1]])).tolist()
        [[1.0, 0.0]]
    """
    return (y != UNLABELLED).double()


def _mean_of_classes(values: Tensor, weight: Tensor) -> Estimate:
    """The mean over images and then over classes; a number that is not defined has no say."""
    means, influences = [], []
    for column in values.T:
        there = column.isfinite() & (weight > 0)
        if not bool(there.any()):
            continue
        value = float((column[there] * weight[there]).sum() / weight[there].sum())
        share = float(weight[there].sum() / weight.sum())
        means.append(value)
        influences.append(torch.where(there, column.nan_to_num() - value, 0.0) / share)
    if not means:
        return Estimate(float("nan"), torch.zeros(len(values), dtype=torch.float64))
    return Estimate(sum(means) / len(means), torch.stack(influences).mean(0))


def _mean_of_cells(values: Tensor, share: Tensor, weight: Tensor) -> Estimate:
    """The mean over labelled cells: a ratio of means of images."""
    size = mean_estimate(share, weight).value
    value = mean_estimate(values * share, weight).value / size
    return Estimate(value, share * (values - value) / size)


def _codes(judged: "Judged") -> torch.Tensor:
    found: torch.Tensor = judged.model._codes(judged.raw)
    return found


def _dice(judged: "Judged") -> NDArray[np.float64]:
    y, count = judged.job.y, len(judged.model.classes_)
    found = dice(y.clamp(min=0), _codes(judged), labelled(y), classes=count, reduction="image")
    return found.nan_to_num().numpy()


def _wrong(judged: "Judged") -> NDArray[np.float64]:
    y = judged.job.y
    wrong = pixel_error(y.clamp(min=0), _codes(judged), labelled(y), reduction="image")
    return wrong.nan_to_num().numpy()
