"""Weights that reach inside a mask: some pixels count less, or are not labelled at all."""

import torch
from torch import Tensor

from ansatz.likelihoods.categorical import class_counts
from ansatz.likelihoods.likelihood import expand_weight


def pixel_shares(weight: Tensor, axes: int) -> tuple[Tensor, Tensor]:
    r"""The weight of each pixel beside that of its image: :math:`w_j = \bar w\, u_j`.

    :math:`\bar w` is the mean weight of the pixels that are observed (:math:`w_j > 0`), and the
    weight of the image as a whole; it is 0 where none is. Equal weights thus give :math:`u_j = 1`:
    a weight per image is the same as that weight at each of its pixels.

    Args:
        weight: ``(B, ..., *size)``.
        axes: how many axes ``size`` has.

    Returns:
        u of the shape of ``weight``, and ``(B, ...)``, one weight per image.
    """
    flat = weight.flatten(-axes)  # (B, ..., J)
    mean = flat.sum(-1) / (flat > 0).sum(-1).clamp(min=1)
    wide = mean.reshape(*mean.shape, *(1,) * axes)
    return weight / torch.where(wide > 0, wide, 1), mean


def pixel_rows(y: Tensor, weight: Tensor, axes: int) -> tuple[Tensor, Tensor]:
    """Every pixel as a row of its own: ``(B * J, ...)`` labels and as many weights."""
    weight = expand_weight(weight, y)
    rows, sizes = (t.flatten(-axes).movedim(-1, 1).flatten(0, 1) for t in (y, weight))
    return rows, sizes


def half_weight(weight: Tensor, over: tuple[int, ...] = (0,)) -> Tensor:
    """Half of the mean weight of what is observed: what a class without a row is given.

    Args:
        weight: ``(B, ...)``.
        over: the axes of the mean; the others are targets.

    Returns:
        ``(...)``; 1/2 where nothing is observed.
    """
    count = (weight > 0).sum(over)
    return torch.where(count > 0, weight.sum(over) / (2 * count.clamp(min=1)), 0.5)


def class_logits(y: Tensor, weight: Tensor, axes: int, classes: int) -> Tensor:
    """The logits of the classes' shares of all pixels; half a pixel for a class without one.

    The pixel that is halved has the mean weight, so that a factor of all weights changes nothing.

    Returns:
        ``(..., K)`` log shares, or ``(..., 1)`` log odds for two classes.
    """
    rows, sizes = pixel_rows(y, weight, axes)
    counts = class_counts(rows, sizes, classes)
    logits = torch.where(counts > 0, counts, half_weight(sizes).unsqueeze(-1)).log()
    return logits[..., 1:] - logits[..., :1] if classes == 2 else torch.log_softmax(logits, -1)
