"""Augmentations one after another, and now and then."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ansatz.data.augmentation.augmentation import Augmentation, chances
from ansatz.data.augmentation.limits import check_between
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
        >>> augment(torch.rand(2, 3, 8, 8), None, torch.Generator().manual_seed(0))[0].shape
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

    def apply(
        self, x: Tensor, masks: Tensor | None, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor | None]:
        """All parts in their order."""
        for part in self.parts:
            x, masks = part(x, masks, generator)
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
        >>> y, _ = RandomApply(0.3, Noise())(x, None, torch.Generator().manual_seed(0))
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

    def apply(
        self, x: Tensor, masks: Tensor | None, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor | None]:
        """The chosen examples augmented, the others as they are."""
        rows = chances(x, self.p, generator=generator).nonzero().squeeze(1)
        chosen = None if masks is None else masks[rows]
        y, moved = self.augment(x[rows], chosen, generator)
        if y.shape[1:] != x.shape[1:]:
            raise UsageError(
                f"Sometimes needs an augmentation that keeps the size {tuple(x.shape[2:])}, "
                f"got {tuple(y.shape[2:])}."
            )
        x = x.index_copy(0, rows, y)
        return x, masks if masks is None or moved is None else masks.index_copy(0, rows, moved)


def _check_parts(name: str, parts: Sequence[object]) -> None:
    for part in parts:
        if not isinstance(part, Augmentation):
            raise UsageError(f"{name} is made of augmentations, got {part!r:.60}.")
