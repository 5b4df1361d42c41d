"""From stored bytes to what a network sees: floats, augmented, standardised."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ansatz.data.augmentation.augmentation import Augmentation
from ansatz.data.augmentation.compose import Compose
from ansatz.data.batch import Batch


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

    def __call__(self, batch: Batch, generator: torch.Generator | None = None) -> Batch:
        """The batch as the network sees it."""
        x, target, weight = batch.inputs[0], batch.target, batch.weight
        masks = target if self.masks else None
        for part in _parts(self.augment):
            if not part.takes_bytes:
                x = _scaled(x)
            x, masks = part(x, masks, generator)
        if masks is not None:
            target, weight = _known(masks, weight)
        return batch._replace(
            inputs=(self._standardised(_scaled(x)), *batch.inputs[1:]), target=target, weight=weight
        )

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
