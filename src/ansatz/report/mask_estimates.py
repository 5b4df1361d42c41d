"""The metrics of masks as means of images, with each image's influence."""

import torch
from torch import Tensor

from ansatz.metrics import Estimate, boundary_f1, dice, iou, mean_estimate, pixel_error
from ansatz.report.evidence import Evidence
from ansatz.report.mask_losses import labelled
from ansatz.report.rivals import Forecast


def estimate_masks(evidence: Evidence, forecast: Forecast) -> dict[str, Estimate]:
    """Dice, IoU, boundary F1, wrong cells and the log score of masks, image by image.

    An image is one unit: its cells are not independent of each other, and a standard error that
    counts cells would be far too small.

    Args:
        evidence: of a model of masks on its test images.
        forecast: of the model, or of a rival.

    Example:
        >>> import numpy as np
        >>> from ansatz import Segmenter
        >>> from ansatz.report import gather
        >>> from ansatz.report.mask_estimates import estimate_masks
        >>> from ansatz.report.rivals import rivals
        >>> images = np.random.default_rng(0).normal(size=(6, 8, 8)).astype(np.float32)
        >>> model = Segmenter(network="linear_pixels", epochs=1).fit(images, images > 0)
        >>> evidence = gather(model, images, images > 0)
        >>> list(estimate_masks(evidence, rivals(evidence).find("model")))
        ['dice', 'iou', 'boundary_f1', 'pixel_error', 'accuracy', 'nll']
    """
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
