"""Dice loss: the overlap of two masks, of which some pixels may not be labelled."""

import math
from numbers import Integral, Real
from typing import Literal

import torch
from torch import Tensor

from ansatz.likelihoods.categorical import class_counts, half_weight
from ansatz.likelihoods.likelihood import Likelihood, expand_weight, require_same_shape
from ansatz.likelihoods.support import refuse_where
from ansatz.spec import TargetSpec


class Dice(Likelihood):
    r"""Masks of a few pixels among many: one minus the overlap of mask and prediction.

    .. math:: \ell = 1 - \frac{2 \sum_j u_j p_j y_j + s}{\sum_j u_j p_j + \sum_j u_j y_j + s},
              \qquad p = \sigma(\eta)

    with :math:`\eta` = raw, one logit per pixel, the sums over the pixels of one image, s =
    ``smooth``, and :math:`u_j` the weight of a pixel: 1, or 0 where it is not labelled. One loss
    per image, which a large background does not drown. For hard masks and s = 0,
    Dice = 2 IoU / (1 + IoU).

    *K > 2 classes*: p = softmax(raw), y is coded 0..K-1, and the loss is the mean over the classes
    of the above with :math:`p_{jk}` and :math:`1[y_j = k]`: over ``"all"`` of them, as the metric
    :func:`ansatz.metrics.dice` has it, or over those ``"present"`` in the mask of the image.

    *Empty masks*: with s > 0 an empty mask costs m / (m + s), m being the predicted pixels: 0 for
    an empty prediction, with a gradient towards it. With s = 0 it costs 1 for any prediction above
    0, without a gradient, and 0 where every p is 0: 0 / 0 counts as full overlap, in the metric
    too.

    *Pixels that are not labelled*: weights per pixel go to ``partial_loss``; a pixel of weight 0
    is in none of the sums, and its y may be nan.

    It is not a likelihood: it estimates no P(y | x), and its best p are nearly 0 or 1. Its best
    *constant* is the full or the empty mask, where the logits would be infinite, so the constant
    model is instead the share of each class.

    Args:
        smooth: s >= 0, in pixels.
        axes: trailing axes of y that make up one mask: 2 for images, 3 for volumes.
        average: of K > 2 classes, over all or over those present in the mask of the image.
        background: False leaves class 0 of K > 2 out of the mean. (Of two classes only 1 counts.)

    Shapes:
        - raw: ``(B, H, W, 1)``, or ``(B, H, W, K)`` for K > 2 classes.
        - y: ``(B, H, W)``: 0 or 1, or shares between them; codes of K > 2 classes.
        - weight: ``(B, H, W)``, of ``partial_loss``.
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
    has_distribution = False
    link_name = "logit"

    def __init__(
        self,
        *,
        smooth: float = 1.0,
        axes: int = 2,
        average: Literal["all", "present"] = "all",
        background: bool = True,
    ) -> None:
        super().__init__()
        if not isinstance(smooth, (int, float, Real)) or not 0 <= smooth < math.inf:
            raise ValueError(f"smooth of Dice must be >= 0 and finite, got {smooth!r}.")
        if not isinstance(axes, (int, Integral)) or axes < 1:
            raise ValueError(f"axes of Dice must be a whole number, at least 1, got {axes!r}.")
        if average not in ("all", "present"):
            raise ValueError(f"average of Dice must be 'all' or 'present', got {average!r}.")
        self.smooth, self.axes, self.average, self.background = smooth, axes, average, background
        self.classes = 2
        self.event_ndim = axes  # type: ignore[misc]  # of images or volumes, by its options

    def outputs(self, target: TargetSpec) -> int:
        """1 logit per pixel, K for K > 2 classes."""
        self.classes = max(target.classes, 2)
        return 1 if self.classes == 2 else self.classes

    def check(self, y: Tensor) -> None:
        """Numbers between 0 and 1; codes of K > 2 classes."""
        if self.classes == 2:
            refuse_where(
                ~((y >= 0) & (y <= 1)),
                y,
                "Masks must be 0 or 1, or shares between them",
                "A mask of 0 and 255 may be divided by 255.",
            )
            return
        refuse_where(
            ~((y >= 0) & (y < self.classes) & (y == y.round())),
            y,
            f"Masks must hold class codes 0..{self.classes - 1}",
            "A mask may hold other codes only where its weight is 0.",
        )

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The log odds of the share of mask pixels, half a pixel away from none and from all.

        Of K > 2 classes the log of their shares.
        """
        if self.classes > 2:
            shift = class_logits(y, weight, self.axes, self.classes)
            return shift, torch.ones_like(shift)
        rows = expand_weight(weight, y)
        y = y.to(weight.dtype)
        over = tuple({0, *range(y.ndim - self.axes, y.ndim)})  # rows and pixels, not targets
        count, half = rows.sum(over), half_weight(rows, over)
        some = torch.where(rows > 0, rows * y, 0.0).sum(over).maximum(half)
        share = torch.where(count > 0, torch.minimum(some, count - half) / count, 0.5)
        shift = torch.logit(share).unsqueeze(-1)
        return shift, torch.ones_like(shift)

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """One minus Dice's coefficient, one number per image."""
        return self._loss(raw, y, None)

    def partial_loss(self, raw: Tensor, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The same over weighted pixels, and the weight of each image: see ``pixel_shares``."""
        shares, image = pixel_shares(expand_weight(weight, y), self.axes)
        # where, not multiplication: a pixel that is not labelled may be nan, and nan * 0 is nan.
        return self._loss(raw, torch.where(shares > 0, y, 0), shares.to(raw.dtype)), image

    def _loss(self, raw: Tensor, y: Tensor, shares: Tensor | None) -> Tensor:
        require_same_shape(self.name, raw, y)
        raw = raw.to(torch.promote_types(raw.dtype, torch.float32))  # halves end at 65,504 pixels
        apart, both = self._binary(raw, y) if raw.shape[-1] == 1 else self._classes(raw, y)
        if shares is not None:
            apart, both = shares.unsqueeze(-1) * apart, shares.unsqueeze(-1) * both
        over = tuple(range(-1 - self.axes, -1))
        total = both.sum(over) + self.smooth  # (B, 1) or (B, K)
        terms = apart.sum(over) / total.clamp(min=torch.finfo(raw.dtype).tiny)
        return self._average(terms, y, shares)

    def _binary(self, raw: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """p + y - 2 p y, the part that does not overlap, and p + y, ``(..., 1)`` each."""
        y = y.to(raw.dtype).unsqueeze(-1)
        p, rest = torch.sigmoid(raw), torch.sigmoid(-raw)
        return p * (1 - y) + rest * y, p + y  # without the 1 - 1 of 1 - p

    def _classes(self, raw: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The same per class, ``(..., K)`` each."""
        p, hit = torch.softmax(raw, -1), _one_hot(y, raw.shape[-1])
        return torch.where(hit, 1 - p, p), p + hit

    def _average(self, terms: Tensor, y: Tensor, shares: Tensor | None) -> Tensor:
        """The mean over the classes that count, ``(B,)``; 0 where none does."""
        if terms.shape[-1] == 1:
            return terms.squeeze(-1)
        counts = torch.ones_like(terms)
        if self.average == "present":
            hit = _one_hot(y, terms.shape[-1])
            seen = hit if shares is None else hit & (shares > 0).unsqueeze(-1)
            counts = seen.flatten(-1 - self.axes, -2).any(-2).to(terms.dtype)
        if not self.background:
            counts = torch.cat([torch.zeros_like(counts[..., :1]), counts[..., 1:]], -1)
        return (counts * terms).sum(-1) / counts.sum(-1).clamp(min=1)

    def probs(self, raw: Tensor) -> Tensor:
        """``(B, H, W)``: p; of K > 2 classes ``(B, H, W, K)``."""
        return torch.sigmoid(raw[..., 0]) if raw.shape[-1] == 1 else torch.softmax(raw, -1)

    def point(self, raw: Tensor) -> Tensor:
        """``(B, H, W)``: the mask, 1 where p > 1/2; of K > 2 classes the code of the largest p."""
        return (raw[..., 0] > 0).to(raw.dtype) if raw.shape[-1] == 1 else raw.argmax(-1)


def _one_hot(y: Tensor, classes: int) -> Tensor:
    return y.unsqueeze(-1) == torch.arange(classes, device=y.device)


def pixel_shares(weight: Tensor, axes: int) -> tuple[Tensor, Tensor]:
    r"""The weight of each pixel beside that of its image: :math:`w_j = \bar w\, u_j`.

    :math:`\bar w` is the mean weight of the pixels that are observed (:math:`w_j > 0`), and the
    weight of the image as a whole; it is 0 where none is. Equal weights thus give :math:`u_j = 1`:
    a weight per image is the same as that weight at each of its pixels.
    """
    flat = weight.flatten(-axes)  # (B, ..., J)
    mean = flat.sum(-1) / (flat > 0).sum(-1).clamp(min=1)
    wide = mean.reshape(*mean.shape, *(1,) * axes)
    return weight / torch.where(wide > 0, wide, 1), mean


def pixel_rows(y: Tensor, weight: Tensor, axes: int) -> tuple[Tensor, Tensor]:
    """Makes every pixel a row of its own: ``(B * J, ...)`` labels and as many weights."""
    weight = expand_weight(weight, y)
    rows, sizes = (t.flatten(-axes).movedim(-1, 1).flatten(0, 1) for t in (y, weight))
    return rows, sizes


def class_logits(y: Tensor, weight: Tensor, axes: int, classes: int) -> Tensor:
    """The logits of the classes' shares of all pixels; half a pixel for a class without one.

    The pixel that is halved has the mean weight, so that a factor of all weights changes nothing.
    """
    rows, sizes = pixel_rows(y, weight, axes)
    counts = class_counts(rows, sizes, classes)
    logits = torch.where(counts > 0, counts, half_weight(sizes).unsqueeze(-1)).log()
    return logits[..., 1:] - logits[..., :1] if classes == 2 else torch.log_softmax(logits, -1)
