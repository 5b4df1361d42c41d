"""Dice loss: the overlap of two masks."""

import math

import torch
from torch import Tensor

from ansatz.likelihoods.likelihood import (
    Likelihood,
    expand_weight,
    refuse_where,
    require_same_shape,
)
from ansatz.spec import TargetSpec


class Dice(Likelihood):
    r"""Masks of a few pixels among many: one minus the overlap of mask and prediction.

    .. math:: \ell = 1 - \frac{2 \sum_j p_j y_j + s}{\sum_j p_j + \sum_j y_j + s},
              \qquad p = \sigma(\eta)

    with :math:`\eta` = raw, one logit per pixel, the sums over the pixels of one image, and s =
    ``smooth``. One loss per image, which a large background does not drown. For hard masks and
    s = 0, Dice = 2 IoU / (1 + IoU).

    *Empty masks*: with s > 0 an empty mask costs m / (m + s), m being the predicted pixels: 0 for
    an empty prediction, with a gradient towards it. With s = 0 it costs 1 for any prediction above
    0, without a gradient, and 0 where every p is 0: 0 / 0 counts as full overlap.

    It is no law: it estimates no P(y | x), and its best p are nearly 0 or 1. Its best *constant* is
    the full or the empty mask, where the logits would be infinite, so the constant model is instead
    the share of mask pixels.

    Args:
        smooth: s >= 0, in pixels.
        axes: trailing axes of y that make up one mask: 2 for images, 3 for volumes.

    Shapes:
        - raw: ``(B, H, W, 1)``.
        - y: ``(B, H, W)``, 0 or 1, or shares between them.
        - loss: ``(B,)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Dice
        >>> mask = torch.eye(4).unsqueeze(0)
        >>> Dice().loss(100 * (2 * mask - 1).unsqueeze(-1), mask)  # the same mask
        tensor([0.])

    References:
        Milletari, Navab and Ahmadi (2016), V-Net. https://arxiv.org/abs/1606.04797 (there with
        squares in the denominator; here without, so that hard masks give Dice's coefficient).
    """

    name = "dice"
    is_law = False
    link_name = "logit"

    def __init__(self, *, smooth: float = 1.0, axes: int = 2) -> None:
        super().__init__()
        if not 0 <= smooth < math.inf:
            raise ValueError(f"smooth of Dice must be >= 0 and finite, got {smooth}.")
        if axes < 1:
            raise ValueError(f"axes of Dice must be at least 1, got {axes}.")
        self.smooth, self.axes = smooth, axes
        self.event_ndim = axes  # type: ignore[misc]  # of images or volumes, by its options

    def outputs(self, target: TargetSpec) -> int:
        """1 logit per pixel."""
        return 1

    def check(self, y: Tensor) -> None:
        """Numbers between 0 and 1."""
        refuse_where(
            ~((y >= 0) & (y <= 1)),
            y,
            "Masks must be 0 or 1, or shares between them",
            "A mask of 0 and 255 may be divided by 255.",
        )

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The log odds of the share of mask pixels, half a pixel away from none and from all."""
        rows = expand_weight(weight, y)
        y = y.to(weight.dtype)
        over = tuple({0, *range(y.ndim - self.axes, y.ndim)})  # rows and pixels, not targets
        count = rows.sum(over)
        some = torch.where(rows > 0, rows * y, 0.0).sum(over).clamp(min=0.5)
        shift = torch.logit(torch.minimum(some, count - 0.5) / count).unsqueeze(-1)
        return shift, torch.ones_like(shift)

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """One minus Dice's coefficient, one number per image."""
        require_same_shape(self.name, raw, y)
        y = y.to(raw.dtype)
        p, rest = (torch.sigmoid(s * raw[..., 0]).flatten(-self.axes) for s in (1, -1))
        y = y.flatten(-self.axes)
        # p + y - 2 p y = p (1 - y) + (1 - p) y: the part that does not overlap, without 1 - 1.
        apart = (p * (1 - y) + rest * y).sum(-1)
        total = (p + y).sum(-1) + self.smooth
        return apart / total.clamp(min=torch.finfo(raw.dtype).tiny)

    def probs(self, raw: Tensor) -> Tensor:
        """``(B, H, W)``: p."""
        return torch.sigmoid(raw[..., 0])

    def point(self, raw: Tensor) -> Tensor:
        """``(B, H, W)``: the mask, 1 where p > 1/2."""
        return (raw[..., 0] > 0).to(raw.dtype)
