"""The base classes of augmentations: random maps of grids that keep their label."""

import math
import warnings
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, get_args, overload

import torch
from torch import Generator, Tensor

from ansatz.errors import UsageError

Padding = Literal["reflect", "border", "zeros"]
Interpolation = Literal["linear", "nearest"]
Pair = tuple[Tensor, Tensor | None]  # grids and their masks
_LOOKED_AT = 8  # examples of a batch that tell the range of its values
_CUT = 0.1  # noise may take x a little beyond; bytes as floats are far beyond


def check_between(name: str, value: object, low: float, high: float) -> None:
    """Refuses what is not a number in [low, high]."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not (low <= float(value) <= high and math.isfinite(value)):  # type: ignore[arg-type]
        raise UsageError(f"{name} must be a number in [{low:g}, {high:g}], got {value!r:.40}.")


def check_whole(name: str, value: object, low: int) -> None:
    """Refuses what is not a whole number from ``low`` on."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise UsageError(f"{name} must be a whole number from {low} on, got {value!r:.40}.")


def check_shares(x: Tensor, name: str) -> None:
    """Refuses images that cutting at 0 and 1 would ruin: bytes as floats, standardised ones."""
    few = x[:_LOOKED_AT]
    if float((few - few.clamp(0, 1)).abs().mean()) > _CUT:
        low, high = (float(each) for each in few.aminmax())
        raise UsageError(
            f"{name} cuts values at 0 and 1, and x has {low:.3g} to {high:.3g}. "
            "Scale x to [0, 1] first, or say clip=False."
        )


def check_padding(name: str, padding: object, interpolation: object = "linear") -> None:
    """Refuses an unknown rule for what lies outside the frame or between the pixels."""
    for option, value, known in (
        ("padding", padding, get_args(Padding)),
        ("interpolation", interpolation, get_args(Interpolation)),
    ):
        if value not in known:
            text = f"{option} of {name} must be one of {', '.join(known)}"
            raise UsageError(f"{text}, got {value!r:.40}.")


class Augmentation(ABC):
    r"""A random map :math:`\tau` of grids under which the label stays true.

    .. math:: \mathcal{S}' = \bigcup_k \{(\tau_k(x_i), y_i)\}

    A batch passes once and each of its examples gets a :math:`\tau` of its own; over the epochs the
    network sees the union above. A batch draws from ``generator`` at once: one state of the
    generator is one augmented batch.

    Shapes:
        - x: ``(B, C, *size)`` with one to three axes: a signal, an image, a volume. Images have
          values in [0, 1] (standardise them afterwards); ``uint8`` only where pixels are moved and
          not computed (flip, shift, crop, turn).
        - masks: ``(B, *size)`` whole numbers of a type with a sign, a label for each pixel, moved
          as x is (to the nearest pixel); a pixel from outside the frame is labelled -1, "unknown".
          Or None.
        - returns: x, or ``(x, masks)`` where masks were given: new tensors or the very same, never
          changed in place.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import Augmentation, Flip
        >>> x, masks = torch.rand(4, 3, 8, 8), torch.zeros(4, 8, 8, dtype=torch.long)
        >>> y, moved = Flip()(x, masks, torch.Generator().manual_seed(0))
        >>> y.shape, moved.shape, isinstance(Flip(), Augmentation)
        (torch.Size([4, 3, 8, 8]), torch.Size([4, 8, 8]), True)

    References:
        Chen, Dobriban and Lee (2020), A group-theoretic framework for data augmentation.
        https://arxiv.org/abs/1907.10905
    """

    grid_axes: ClassVar[tuple[int, ...]] = (1, 2, 3)  # how many axes a grid may have
    moves_only: ClassVar[bool] = False  # pixels are moved, not computed: any dtype will do
    colors: ClassVar[bool] = False  # the three channels red, green and blue are asked for

    @overload
    def __call__(
        self, x: Tensor, masks: None = None, generator: Generator | None = None
    ) -> Tensor: ...
    @overload
    def __call__(
        self, x: Tensor, masks: Tensor, generator: Generator | None = None
    ) -> tuple[Tensor, Tensor]: ...
    def __call__(
        self, x: Tensor, masks: Tensor | None = None, generator: Generator | None = None
    ) -> Any:
        """The augmented x; with masks ``(x, masks)``."""
        found = self.pair(x, masks, generator)
        return found[0] if masks is None else found

    def pair(self, x: Tensor, masks: Tensor | None, generator: Generator | None) -> Pair:
        """The augmented ``(x, masks)``, the masks being None where there are none."""
        self._check(x, masks)
        if len(x) == 0:
            return x, masks
        return self.apply(x, masks, generator)

    @abstractmethod
    def apply(self, x: Tensor, masks: Tensor | None, generator: Generator | None) -> Pair:
        """Augments a batch that has been checked."""

    @property
    def takes_bytes(self) -> bool:
        """Whether pixels are moved and not computed, so that ``uint8`` will do."""
        return self.moves_only

    def _check(self, x: Tensor, masks: Tensor | None) -> None:
        name = type(self).__name__
        if not isinstance(x, Tensor):
            raise UsageError(
                f"{name} needs x as a tensor, got {type(x).__name__}. Try torch.as_tensor(x)."
            )
        axes = x.ndim - 2
        if axes not in self.grid_axes:
            wanted = " or ".join(
                f"(B, C, {', '.join('DHW'[3 - n :] if n > 1 else 'L')})" for n in self.grid_axes
            )
            raise UsageError(
                f"{name} needs x of shape {wanted}, got {tuple(x.shape)}. "
                "A single example needs a batch axis: x[None]."
            )
        if _looks_like_one_image(x):
            warnings.warn(
                f"{name} takes x of shape {tuple(x.shape)} for {len(x)} signals of {x.shape[1]} "
                "channels. A single image needs a batch axis: x[None].",
                stacklevel=4,
            )
        if not self.moves_only and not x.is_floating_point():
            raise UsageError(
                f"{name} computes new values and needs floats, got {x.dtype}. "
                "For bytes: x.float() / 255."
            )
        if self.colors and x.shape[1] != 3:
            raise UsageError(f"{name} needs the channels red, green, blue, got {x.shape[1]}.")
        if masks is None:
            return
        if masks.shape != x.shape[:1] + x.shape[2:]:
            raise UsageError(
                f"masks of {name} must have shape {(len(x), *x.shape[2:])}, "
                f"got {tuple(masks.shape)}."
            )
        if not masks.dtype.is_signed:
            raise UsageError(
                f"masks of {name} need a type that has -1, unknown, got {masks.dtype}. "
                "Try masks.long()."
            )


def _looks_like_one_image(x: Tensor) -> bool:
    """Three axes, the first grey or colours, the others alike: hardly a batch of signals."""
    if x.ndim != 3 or x.shape[0] not in (1, 3, 4) or min(x.shape[1:]) < 8:
        return False
    return max(x.shape[1:]) <= 4 * min(x.shape[1:])


class Photometric(Augmentation):
    """An augmentation of values: every pixel stays where it is, and so do its labels.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import Noise, Photometric
        >>> masks = torch.ones(2, 4, 4, dtype=torch.long)
        >>> isinstance(Noise(), Photometric), Noise()(torch.rand(2, 1, 4, 4), masks)[1] is masks
        (True, True)
    """

    def apply(self, x: Tensor, masks: Tensor | None, generator: Generator | None) -> Pair:
        """New values, the same masks."""
        return self.adjust(x, generator), masks

    @abstractmethod
    def adjust(self, x: Tensor, generator: Generator | None) -> Tensor:
        """The new values of a batch that has been checked."""


def uniform(x: Tensor, *shape: int, generator: Generator | None) -> Tensor:
    """``(B, *shape)`` numbers, uniform on [-1, 1), of the type and on the device of x.

    Drawn on the processor, so that every device gets the same ones.
    """
    dtype = x.dtype if x.is_floating_point() else torch.float32
    drawn = torch.rand(len(x), *shape, generator=generator, dtype=dtype)
    return drawn.mul_(2).sub_(1).to(x.device)


def chances(x: Tensor, p: float, *shape: int, generator: Generator | None) -> Tensor:
    """``(B, *shape)`` booleans, each True with probability p."""
    drawn = torch.rand(len(x), *shape, generator=generator, dtype=torch.float32)
    return (drawn < p).to(x.device)


def per_example(values: Tensor, x: Tensor) -> Tensor:
    """``(B,)`` as ``(B, 1, ..., 1)``, to be broadcast against x or masks."""
    return values.reshape(-1, *(1,) * (x.ndim - 1))
