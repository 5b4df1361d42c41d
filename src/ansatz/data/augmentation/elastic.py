"""Elastic deformations: every place is moved, neighbours alike."""

import functools
from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from ansatz.data.augmentation.affine import Affine
from ansatz.data.augmentation.augmentation import Augmentation
from ansatz.data.augmentation.limits import (
    Interpolation,
    Padding,
    check_between,
    check_padding,
    check_whole,
)
from ansatz.data.augmentation.resampling import affine_places, resample, widened


@dataclass(frozen=True)
class Elastic(Augmentation):
    r"""Random elastic deformations, as tissue is deformed.

    .. math:: y(p) = x(A p + u(p)), \qquad u \text{ smooth through } u_k \sim N(0, \sigma^2)

    The displacements :math:`u_k` (one number per axis) are drawn on a coarse grid over x
    and joined by cubic interpolation; masks are deformed by the same field. A rotation and a
    scaling A may go with it in the same resampling: thin lines suffer each time they are read
    between pixels.

    Args:
        pixels: :math:`\sigma`, the typical displacement, in pixels of x.
        nodes: points of the coarse grid along each axis; fewer are smoother.
        degrees: of a rotation as by :class:`Affine`, of a volume within its slices.
        scale: of a scaling as by :class:`Affine`.
        padding: what is read outside: ``"reflect"`` (mirrored at the edge), ``"border"`` (the
            outermost pixel) or ``"zeros"``, whose labels are -1, unknown.
        interpolation: ``"linear"`` or ``"nearest"`` between pixels; labels are the nearest's.

    Shapes:
        - x: ``(B, C, *size)`` floats; of a signal ``(B, C, L)`` only the field and scale apply.
        - masks: ``(B, *size)`` or None; returns: the same.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import Elastic
        >>> Elastic(3.0, nodes=4)(torch.rand(2, 1, 32, 32))[0].shape
        torch.Size([2, 1, 32, 32])

    References:
        Ronneberger, Fischer and Brox (2015), U-Net, section 3.1 (3 nodes, 10 pixels of 512).
        https://arxiv.org/abs/1505.04597
    """

    pixels: float = 2.0
    _: KW_ONLY
    nodes: int = 3
    degrees: float = 0.0
    scale: float = 0.0
    padding: Padding = "reflect"
    interpolation: Interpolation = "linear"

    def __post_init__(self) -> None:
        check_between("pixels of Elastic", self.pixels, 0, 2**20)
        check_whole("nodes of Elastic", self.nodes, 2)
        check_padding("Elastic", self.padding, self.interpolation)
        self._affine()  # refuses what it would refuse

    def apply(
        self, x: Tensor, masks: Tensor | None, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor | None]:
        """Deforms each example by its own field."""
        if not self.pixels:
            return self._affine().apply(x, masks, generator)
        given, x = x.dtype, widened(x)
        matrices = self._affine().matrices(x, generator)
        size, axes = tuple(x.shape[2:]), x.ndim - 2
        shape = len(x), axes, *[self.nodes] * axes
        field = torch.randn(shape, generator=generator, dtype=x.dtype).to(x.device)
        *before, across = (_cubic(self.nodes, n, x.dtype, x.device) for n in size)
        for axis, curves in enumerate(before, 2):
            rest = field.shape[axis + 1 :]
            field = (curves @ field.flatten(axis + 1)).unflatten(-1, rest)
        field = field @ across.T  # (B, n, *size)
        # A pixel is 2 / N wide where the frame reaches from -1 to 1; the last axis comes first.
        width = torch.tensor([2 / n for n in reversed(size)], dtype=x.dtype, device=x.device)
        places = affine_places(x, matrices) + field * (self.pixels * width).view(-1, *[1] * axes)
        y, moved = resample(
            x, masks, places, padding=self.padding, interpolation=self.interpolation
        )
        return y.to(given), moved

    def _affine(self) -> Affine:
        return Affine(
            self.degrees,
            scale=self.scale,
            padding=self.padding,
            interpolation=self.interpolation,
        )


@functools.lru_cache(maxsize=8)
def _cubic(nodes: int, count: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """``(count, nodes)``: what each node weighs at each pixel, from the first node to the last."""
    pulses = torch.eye(nodes, dtype=dtype).view(1, nodes, nodes, 1)
    curves = F.interpolate(pulses, (count, 1), mode="bicubic", align_corners=True)
    return curves.view(nodes, count).T.contiguous().to(device)
