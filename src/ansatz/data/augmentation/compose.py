"""Augmentations in a row, at random, and on batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from ansatz.data.augmentation.augmentation import Augmentation, Pair, chances, check_between
from ansatz.data.augmentation.mixing import Mixing
from ansatz.data.batch import Batch
from ansatz.errors import UsageError


@dataclass(frozen=True)
class Compose(Augmentation):
    r"""Several augmentations, one after another.

    .. math:: \tau = \tau_n \circ \dots \circ \tau_1

    Args:
        parts: :math:`\tau_1, \dots, \tau_n`, the first one first.

    Shapes:
        - x, masks: what the parts take.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import Compose, Flip, Noise
        >>> augment = Compose([Flip(), Noise(0.1)])
        >>> augment(torch.rand(2, 3, 8, 8), None, torch.Generator().manual_seed(0)).shape
        torch.Size([2, 3, 8, 8])

    References:
        Chen, Dobriban and Lee (2020), A group-theoretic framework for data augmentation.
        https://arxiv.org/abs/1907.10905
    """

    parts: Sequence[Augmentation]

    moves_only: ClassVar[bool] = True  # each part says for itself what it takes

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        _check_parts("Compose", self.parts)

    @property
    def takes_bytes(self) -> bool:
        """Whether all parts do."""
        return all(part.takes_bytes for part in self.parts)

    def apply(self, x: Tensor, masks: Tensor | None, generator: Generator | None) -> Pair:
        """All parts in their order."""
        for part in self.parts:
            x, masks = part.pair(x, masks, generator)
        return x, masks


@dataclass(frozen=True)
class RandomApply(Augmentation):
    r"""An augmentation that each example meets with probability p only.

    .. math:: \tau' = \tau \text{ with probability } p, \quad \text{the identity otherwise}

    Args:
        p: probability.
        augment: :math:`\tau`, which must keep the size of the grid.

    Shapes:
        - x, masks: what the augmentation takes.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import Noise, RandomApply
        >>> x = torch.zeros(1000, 1, 2)
        >>> y = RandomApply(0.3, Noise())(x, None, torch.Generator().manual_seed(0))
        >>> 0.25 < float((y != x).any(2).float().mean()) < 0.35
        True

    References:
        Chen, Dobriban and Lee (2020), A group-theoretic framework for data augmentation.
        https://arxiv.org/abs/1907.10905
    """

    p: float
    augment: Augmentation

    moves_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_between("p of RandomApply", self.p, 0, 1)
        _check_parts("RandomApply", (self.augment,))

    @property
    def takes_bytes(self) -> bool:
        """Whether the augmentation does."""
        return self.augment.takes_bytes

    def apply(self, x: Tensor, masks: Tensor | None, generator: Generator | None) -> Pair:
        """The chosen examples augmented, the others as they are."""
        rows = chances(x, self.p, generator=generator).nonzero().squeeze(1)
        chosen = None if masks is None else masks[rows]
        y, moved = self.augment.pair(x[rows], chosen, generator)
        if y.shape[1:] != x.shape[1:]:
            raise UsageError(
                f"RandomApply needs an augmentation that keeps the size {tuple(x.shape[2:])}, "
                f"got {tuple(y.shape[2:])}."
            )
        x = x.index_copy(0, rows, y)
        return x, masks if masks is None or moved is None else masks.index_copy(0, rows, moved)


def _check_parts(name: str, parts: Sequence[object]) -> None:
    for part in parts:
        if not isinstance(part, Augmentation):
            raise UsageError(f"{name} is made of augmentations, got {part!r:.60}.")


class OnBatches:
    r"""A transform of batches: bytes to [0, 1], then an augmentation, then standardised.

    .. math:: z = \frac{\tau(x) - m}{s}

    For :class:`ansatz.data.Transformed`. Pixels whose label is unknown (-1: not annotated, or from
    outside the frame) get the label 0 and the weight 0: they take no part in the loss.

    Args:
        augment: :math:`\tau`; None for none.
        masks: the batch's target labels the pixels of x and moves with them.
        mean: :math:`m` of each channel, of values in [0, 1] where x is bytes.
        scale: :math:`s` of each channel.

    Shapes:
        - inputs: ``((B, C, *size), ...)``, bytes or floats; further inputs stay as they are.
        - target: ``(B, *size)`` with masks.

    Example:
        >>> import torch
        >>> from ansatz.data import Batch
        >>> from ansatz.data.augmentation import OnBatches, Shift
        >>> x = torch.randint(256, (4, 1, 8, 8), dtype=torch.uint8)
        >>> transform = OnBatches(Shift(1), mean=[0.5], scale=[0.25])
        >>> batch = transform(Batch.of(x, torch.zeros(4)), torch.Generator().manual_seed(0))
        >>> batch.inputs[0].dtype, batch.inputs[0].shape
        (torch.float32, torch.Size([4, 1, 8, 8]))
    """

    def __init__(
        self,
        augment: Augmentation | None = None,
        *,
        masks: bool = False,
        mean: Sequence[float] | Tensor | None = None,
        scale: Sequence[float] | Tensor | None = None,
    ) -> None:
        self.augment, self.masks = augment, masks
        self.mean = None if mean is None else torch.as_tensor(mean, dtype=torch.float32)
        self.scale = None if scale is None else torch.as_tensor(scale, dtype=torch.float32)

    def __call__(self, batch: Batch, generator: Generator | None = None) -> Batch:
        """The batch as the network sees it."""
        parts = [part for part in _parts(self.augment) if not isinstance(part, Mixing)]
        mixing = [part for part in _parts(self.augment) if isinstance(part, Mixing)]
        if mixing and self.masks:
            mixing[0].pair(batch.inputs[0], batch.target, generator)  # refuses them
        x, target, weight = batch.inputs[0], batch.target, batch.weight
        masks = target if self.masks else None
        for part in parts:
            if not part.takes_bytes:
                x = _scaled(x)
            x, masks = part.pair(x, masks, generator)
        if masks is not None:
            target, weight = _known(masks, weight)
        batch = batch._replace(
            inputs=(self._standardised(_scaled(x)), *batch.inputs[1:]), target=target, weight=weight
        )
        for each in mixing:  # of what the network sees, last
            batch = each.on_batch(batch, generator)
        return batch

    def _standardised(self, x: Tensor) -> Tensor:
        if self.mean is None and self.scale is None:
            return x
        shape = 1, -1, *(1,) * (x.ndim - 2)
        z = x - (0 if self.mean is None else self.mean.to(x).view(shape))
        return z if self.scale is None else z.div_(self.scale.to(x).view(shape))


def _parts(augment: Augmentation | None) -> Sequence[Augmentation]:
    if augment is None:
        return ()
    return augment.parts if isinstance(augment, Compose) else (augment,)


def _scaled(x: Tensor) -> Tensor:
    """Bytes as shares of 255. As late as can be: they move four times as fast as floats."""
    return x.to(torch.float32).div_(255) if x.dtype == torch.uint8 else x


def _known(masks: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Labels from 0 on, and weights of their shape that are 0 where nothing is known."""
    unknown = masks < 0
    if weight.ndim < masks.ndim:
        weight = weight.view(*weight.shape, *(1,) * (masks.ndim - weight.ndim))
    return masks.clamp(min=0), torch.where(unknown, 0, weight.expand(masks.shape))
