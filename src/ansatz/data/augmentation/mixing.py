"""Augmentations that mix two examples and their classes: mixup and CutMix."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor

from ansatz.data.augmentation.augmentation import Augmentation, Pair, check_between, per_example
from ansatz.data.batch import MixedTarget
from ansatz.errors import UsageError


@dataclass(frozen=True)
class Mixing(Augmentation):
    r"""Mixes each example with another one of its batch, and their classes in the same shares.

    .. math:: \ell = \lambda\, \ell(r, y_i) + (1 - \lambda)\, \ell(r, y_j)

    is the loss of a mixed example: for cross-entropy that of the soft label :math:`\lambda e_{y_i}
    + (1 - \lambda) e_{y_j}`, as it is linear in the label. It is not defined without classes, and
    masks are not mixed.
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        check_between(f"alpha of {type(self).__name__}", self.alpha, 1e-3, 1e3)

    def __call__(  # type: ignore[override]  # it needs the classes
        self, x: Tensor, y: Tensor | None = None, generator: Generator | None = None
    ) -> tuple[Tensor, MixedTarget]:
        """The mixed examples, and the classes of both parts with the share of the first."""
        self._check(x, None)
        if y is None or y.shape != x.shape[:1] or y.is_floating_point():
            raise UsageError(
                f"{type(self).__name__} mixes examples of classes: give whole numbers y of shape "
                f"({len(x)},), one class per example."
            )
        other = torch.randperm(len(x), generator=generator).to(x.device)
        alpha = torch.full((2, len(x)), float(self.alpha), dtype=torch.float64)
        # A beta number as the share of two gamma numbers, whose sampler takes a generator.
        gamma = torch._standard_gamma(alpha, generator=generator).clamp(min=1e-300)
        share = (gamma[0] / gamma.sum(0)).to(torch.float32).to(x.device)
        mixed, share = self.mix(x, x[other], share, generator)
        return mixed, MixedTarget(y, y[other], share)

    @abstractmethod
    def mix(
        self, x: Tensor, other: Tensor, share: Tensor, generator: Generator | None
    ) -> tuple[Tensor, Tensor]:
        """The mixed examples, and the share of the first that was reached, ``(B,)``."""

    def apply(self, x: Tensor, masks: Tensor | None, generator: Generator | None) -> Pair:
        """Refused: without classes there is nothing to train on."""
        raise UsageError(
            f"{type(self).__name__} mixes classes with the examples: it takes no masks, and stands "
            "in the list of augmentations by itself, not within another one."
        )

    def on_batch(self, batch: Any, generator: Generator | None) -> Any:
        """The mixed batch; the weights of both rows count by their share."""
        if batch.weight.ndim != 1 or not isinstance(batch.target, Tensor):
            raise UsageError(f"{type(self).__name__} mixes examples of classes once, not masks.")
        state = torch.arange(len(batch.weight))
        x, rows = self(batch.inputs[0], state, generator)
        one, two = batch.weight, batch.weight[rows.second]
        weight = rows.share * one + (1 - rows.share) * two
        share = rows.share * one / torch.where(weight > 0, weight, 1.0)
        if batch.target.is_floating_point() and not bool(
            (batch.target == batch.target.round()).all()
        ):
            raise UsageError(f"{type(self).__name__} mixes classes; the outcome is a number.")
        target = MixedTarget(batch.target, batch.target[rows.second], share.to(weight))
        return batch._replace(inputs=(x, *batch.inputs[1:]), target=target, weight=weight)


@dataclass(frozen=True)
class Mixup(Mixing):
    r"""Averages each example with another one, and their classes in the same shares.

    .. math:: x' = \lambda x_i + (1 - \lambda) x_j, \qquad \lambda \sim \text{Beta}(\alpha, \alpha)

    Args:
        alpha: :math:`\alpha`; small values mix little, 1 makes all shares alike.

    Shapes:
        - x: ``(B, C, *size)``; y: ``(B,)`` class codes.
        - returns: x, and ``(first, second, share)`` of the classes.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import Mixup
        >>> x, y = torch.eye(4).reshape(4, 1, 4), torch.tensor([0, 1, 2, 3])
        >>> mixed, target = Mixup(1.0)(x, y, torch.Generator().manual_seed(0))
        >>> bool(torch.allclose(mixed.sum((1, 2)), torch.ones(4)))
        True

    References:
        Zhang et al. (2018), mixup: beyond empirical risk minimization.
        https://arxiv.org/abs/1710.09412
    """

    alpha: float = 0.2

    def mix(
        self, x: Tensor, other: Tensor, share: Tensor, generator: Generator | None
    ) -> tuple[Tensor, Tensor]:
        """The weighted mean."""
        return torch.lerp(other, x, per_example(share.to(x.dtype), x)), share


@dataclass(frozen=True)
class CutMix(Mixing):
    r"""Puts a box of another example in each one; classes count by the pixels that they have.

    .. math:: x' = M \odot x_i + (1 - M) \odot x_j, \qquad
              \lambda = \text{mean of } M, \text{ near a number of Beta}(\alpha, \alpha)

    The box has the proportions of the grid and a centre anywhere in it; what lies outside is cut
    off. M is 0 in the box, so that :math:`\lambda` is the share of pixels that stay.

    Args:
        alpha: :math:`\alpha`; 1 makes all sizes alike.

    Shapes:
        - x: ``(B, C, *size)``; y: ``(B,)`` class codes.
        - returns: x, and ``(first, second, share)`` of the classes.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import CutMix
        >>> x, y = torch.arange(4.0).reshape(4, 1, 1, 1).expand(4, 1, 8, 8), torch.arange(4)
        >>> mixed, target = CutMix()(x, y, torch.Generator().manual_seed(0))
        >>> own = (mixed == x).float().mean((1, 2, 3))
        >>> bool((own >= target.share - 1e-6).all())
        True

    References:
        Yun et al. (2019), CutMix: regularization strategy to train strong classifiers with
        localizable features. https://arxiv.org/abs/1905.04899
    """

    alpha: float = 1.0

    def mix(
        self, x: Tensor, other: Tensor, share: Tensor, generator: Generator | None
    ) -> tuple[Tensor, Tensor]:
        """The examples with their boxes."""
        size = x.shape[2:]
        side = (1 - share.double()).clamp(min=0) ** (1 / len(size))  # of the box, (B,)
        inside = torch.ones(len(x), *size, dtype=torch.bool, device=x.device)
        for axis, n in enumerate(size):
            centre = torch.rand(len(x), generator=generator, dtype=torch.float64).to(x.device) * n
            low, high = centre - side * n / 2, centre + side * n / 2
            place = torch.arange(n, device=x.device) + 0.5
            along = (place >= low[:, None]) & (place < high[:, None])  # (B, n)
            shape = (len(x), *(n if k == axis else 1 for k in range(len(size))))
            inside = inside & along.reshape(shape)
        mixed = torch.where(inside.unsqueeze(1), other, x)
        return mixed, 1 - inside.flatten(1).sum(1).to(share) / math.prod(size)
