"""Agreement of the outlines of masks."""

from typing import Any

import numpy as np
import torch
from scipy import ndimage
from torch import Tensor

from ansatz.arrays import takes_arrays
from ansatz.metrics.segmentation import Reduction, overlap, reduce_classes

Array = np.ndarray[Any, Any]


@takes_arrays
def boundary_f1(
    y: Tensor,
    predicted: Tensor,
    weight: Tensor | None = None,
    *,
    tolerance: float = 2.0,
    classes: int | None = None,
    background: bool = True,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Computes the F1 score of boundary pixels: the share of outlines near each other.

    .. math:: F_1 = \frac{2 P R}{P + R}, \qquad
              P = \frac{|\{b \in \partial B : d(b, \partial A) \le \tau\}|}{|\partial B|}, \quad
              R = \frac{|\{a \in \partial A : d(a, \partial B) \le \tau\}|}{|\partial A|}

    with A the true and B the predicted mask, :math:`\tau` = ``tolerance`` and d Euclid's distance
    in pixels. A boundary pixel belongs to the mask and shares a face with a pixel outside it; the
    edge of the image is not a boundary, and neither is the edge of what is labelled. It sees thin
    structures and outlines where Dice sees area.

    *Two masks without an outline*, empty or full, have F1 = 1 if they are the same, else 0; where
    one of two has an outline, F1 = 0. Of two classes only class 1 is evaluated.

    Args:
        y: true labels, codes 0..K-1; anything where the weight is 0.
        predicted: labels of the same shape.
        weight: per image, or per pixel: there only 0 = not labelled matters within an image.
        tolerance: :math:`\tau` >= 0.
        classes: :math:`K`; from the labels when not given.
        background: False leaves class 0 of K > 2 out.
        reduction: ``"mean"``, ``"image"``, ``"class"`` or ``"none"``, as in :func:`dice`.

    Shapes:
        - y, predicted: ``(N, *size)``.
        - weight: ``(N,)`` or ``(N, *size)``.

    Example:
        >>> import torch
        >>> from ansatz.metrics import boundary_f1
        >>> y, moved = torch.zeros(2, 1, 9, 9, dtype=torch.long)
        >>> y[:, 3:6, 3:6] = 1
        >>> moved[:, 3:6, 4:7] = 1  # by one pixel
        >>> boundary_f1(y, moved, tolerance=1.0).item(), boundary_f1(y, moved, tolerance=0.0).item()
        (1.0, 0.5)

    References:
        Csurka, Larlus and Perronnin (2013), What is a good evaluation measure for semantic
        segmentation?, section 3. https://doi.org/10.5244/C.27.32
    """
    if not tolerance >= 0:
        raise ValueError(f"tolerance of boundary_f1 must be >= 0, got {tolerance}.")
    found = overlap(y, predicted, weight, classes=classes)
    seen = torch.ones_like(y, dtype=torch.bool)
    if weight is not None:
        seen = (weight > 0).reshape(*weight.shape, *(1,) * (y.ndim - weight.ndim)).expand_as(y)
    true, guess, known = (t.detach().cpu().numpy() for t in (y, predicted, seen))
    values = [
        [_f1(a == k, b == k, s, tolerance) for k in range(found.true.shape[1])]
        for a, b, s in zip(true, guess, known, strict=True)
    ]
    scores = torch.tensor(values, dtype=torch.float64, device=y.device).view_as(found.true)
    return reduce_classes(scores, found.weight, background=background, reduction=reduction)


def boundary(mask: Array, seen: Array | None = None) -> Array:
    """Finds the pixels of a mask that share a face with a pixel outside it.

    Args:
        mask: bool, any number of axes.
        seen: bool of that shape; what is not seen is neither in the mask nor outside it.

    Example:
        >>> import numpy as np
        >>> boundary(np.array([1, 1, 1, 0], dtype=bool))
        array([False, False,  True, False])
    """
    known = np.ones_like(mask) if seen is None else seen
    inner = ndimage.binary_erosion(mask | ~known, border_value=1)
    found: Array = mask & known & ~inner
    return found


def _f1(true: Array, predicted: Array, seen: Array, tolerance: float) -> float:
    a, b = boundary(true, seen), boundary(predicted, seen)
    if not a.any() and not b.any():  # each mask is empty or full
        return float(np.array_equal(true & seen, predicted & seen))
    if not a.any() or not b.any():
        return 0.0
    precision, recall = _near(b, a, tolerance), _near(a, b, tolerance)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _near(these: Array, those: Array, tolerance: float) -> float:
    """The share of these pixels within the tolerance of those."""
    distance = ndimage.distance_transform_edt(~those)
    return float((distance[these] <= tolerance).mean())
