"""Agreement of objects in masks, each found or not."""

from typing import NamedTuple

import torch
from torch import Tensor

from ansatz.arrays import takes_arrays


class PanopticQuality(NamedTuple):
    """How well objects are found: ``quality`` is ``recognition`` times ``segmentation``.

    Args:
        quality: PQ.
        segmentation: the mean IoU of the objects that were found.
        recognition: the F1 score of finding an object.
        found: objects that were found.
        missed: true objects without a predicted one.
        invented: predicted objects without a true one.

    Example:
        >>> import numpy as np
        >>> from ansatz.metrics import panoptic_quality
        >>> panoptic_quality(np.array([[1, 0, 2]]), np.array([[1, 0, 0]])).missed
        1
    """

    quality: float
    segmentation: float
    recognition: float
    found: int
    missed: int
    invented: int


@takes_arrays
def panoptic_quality(y: Tensor, predicted: Tensor) -> PanopticQuality:
    r"""Compares objects: those that overlap by more than half of their union are one.

    .. math:: \mathrm{PQ} = \frac{\sum_{(a, b)} \mathrm{IoU}(a, b)}
              {|\mathrm{TP}| + \frac12 |\mathrm{FP}| + \frac12 |\mathrm{FN}|}

    over the pairs (a, b) of a true and a predicted object with IoU > 1/2: an object has at most one
    such partner, so nothing is chosen. PQ is the F1 score of objects times the mean IoU of those
    that were found. Masks without any object agree: PQ = 1.

    Args:
        y: true objects, numbered 1, 2, ... in each image, 0 for none; see
            :func:`ansatz.data.instances`.
        predicted: predicted ones.

    Shapes:
        - y, predicted: ``(N, *size)``, whole numbers.

    Example:
        >>> import numpy as np
        >>> from ansatz.metrics import panoptic_quality
        >>> y = np.array([[1, 1, 1, 0, 2, 2, 0]])
        >>> found = panoptic_quality(y, np.array([[1, 1, 0, 0, 2, 2, 3]]))  # one is too many
        >>> round(found.quality, 3), round(found.segmentation, 3), found.recognition
        (0.667, 0.833, 0.8)

    References:
        Kirillov et al. (2019), Panoptic segmentation. https://arxiv.org/abs/1801.00868
    """
    if y.shape != predicted.shape:
        raise ValueError(f"y has the shape {tuple(y.shape)}, predicted {tuple(predicted.shape)}.")
    total, found, true, mine = 0.0, 0, 0, 0
    for a, b in zip(y.flatten(1), predicted.flatten(1), strict=True):
        _, first = torch.unique(torch.cat([a.new_zeros(1), a]), return_inverse=True)
        _, second = torch.unique(torch.cat([b.new_zeros(1), b]), return_inverse=True)
        columns = int(second.max()) + 1
        shared = torch.bincount(
            first[1:] * columns + second[1:], minlength=(int(first.max()) + 1) * columns
        ).reshape(-1, columns)
        union = shared.sum(1, keepdim=True) + shared.sum(0, keepdim=True) - shared
        iou = (shared.double() / union.clamp(min=1))[1:, 1:]
        pairs = iou[iou > 0.5]
        total, found = total + float(pairs.sum()), found + len(pairs)
        true, mine = true + iou.shape[0], mine + iou.shape[1]
    if not true + mine:
        return PanopticQuality(1.0, 1.0, 1.0, 0, 0, 0)
    recognition = 2 * found / (true + mine)
    mean = total / found if found else 0.0
    return PanopticQuality(recognition * mean, mean, recognition, found, true - found, mine - found)
