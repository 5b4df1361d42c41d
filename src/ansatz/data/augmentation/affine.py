"""Resampled geometry: affine maps, rotations, scalings, elastic deformations."""

import functools
import math
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from ansatz.data.augmentation.augmentation import (
    Augmentation,
    Interpolation,
    Padding,
    Pair,
    check_between,
    check_padding,
    check_whole,
    uniform,
)
from ansatz.data.augmentation.resampling import affine_places, affine_resample, resample, widened


@dataclass(frozen=True)
class Affine(Augmentation):
    r"""Random rotation, scaling, shearing and shift, read from the image in one go.

    .. math:: y(F p + t) = x(p), \qquad F = R_\varphi H_h \operatorname{diag}(z)

    with places p = (down, right) from the middle of the image: z stretches the axes, :math:`H_h`
    slants (h pixels to the right per pixel down), :math:`R_\varphi` turns against the clock, t
    shifts. One interpolation blurs once, where a rotation, a scaling and a shift after each other
    would blur three times.

    Args:
        degrees: the angle :math:`\varphi` is uniform between -degrees and degrees, in the plane of
            the last two axes (of a volume, those within a slice).
        scale: :math:`\log z` is uniform between :math:`\pm\log(1 + \text{scale})`: 0.1 gives
            factors from 1/1.1 to 1.1, enlarging as often as shrinking.
        each_axis: a factor of its own for each axis, so that things grow wider or taller; else
            one for all, which keeps their form.
        shear: the slant :math:`h` is uniform between -shear and shear: pixels to the side per pixel
            down.
        shift: each entry of :math:`t` is uniform between -shift and shift, in pixels.
        padding: what is read outside: ``"reflect"`` (mirrored at the edge), ``"border"`` (the
            outermost pixel) or ``"zeros"``, whose labels are -1, unknown.
        interpolation: ``"linear"`` or ``"nearest"`` between pixels; labels are the nearest's.

    Shapes:
        - x: ``(B, C, *size)`` floats; of a signal ``(B, C, L)`` only scale and shift apply.
        - masks: ``(B, *size)`` or None; returns: the same.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import Affine
        >>> augment = Affine(degrees=10, scale=0.1, shift=2)
        >>> augment(torch.rand(4, 1, 28, 28)).shape
        torch.Size([4, 1, 28, 28])

    References:
        Simard, Steinkraus and Platt (2003), Best practices for convolutional neural networks
        applied to visual document analysis, section 2.
    """

    degrees: float = 0.0
    _: KW_ONLY
    scale: float = 0.0
    each_axis: bool = False
    shear: float = 0.0
    shift: float = 0.0
    padding: Padding = "reflect"
    interpolation: Interpolation = "linear"

    def __post_init__(self) -> None:
        check_between("degrees of Affine", self.degrees, 0, 180)
        check_between("scale of Affine", self.scale, 0, 100)
        check_between("shear of Affine", self.shear, 0, 100)
        check_between("shift of Affine", self.shift, 0, 2**20)
        check_padding("Affine", self.padding, self.interpolation)

    def apply(self, x: Tensor, masks: Tensor | None, generator: Generator | None) -> Pair:
        """Maps each example by its own draw."""
        if not (self.degrees or self.scale or self.shear or self.shift):
            return x, masks
        return affine_resample(
            x,
            masks,
            self.matrices(widened(x), generator),
            padding=self.padding,
            interpolation=self.interpolation,
        )

    def matrices(self, x: Tensor, generator: Generator | None) -> Tensor:
        """``(B, n, n + 1)``: where each place of the result is read, the inverse of F and t."""
        axes = x.ndim - 2
        turn, grow = math.radians(self.degrees), math.log1p(self.scale)
        limits = [turn, self.shear, *[grow] * axes, *[self.shift] * axes]
        drawn = uniform(x, len(limits), generator=generator)
        drawn *= torch.tensor(limits).to(drawn)
        angle, slant, shift = drawn[:, 0], drawn[:, 1], drawn[:, 2 + axes :]
        shrink = drawn[:, 2 : 2 + axes].exp()  # 1 / z, which is as likely as z
        if not self.each_axis:
            shrink = shrink[:, :1].expand(-1, axes)
        if axes == 2:
            inverse = _unturned(angle, slant)
        else:
            inverse = torch.eye(axes).to(drawn).repeat(len(x), 1, 1)
            if axes == 3:
                inverse[:, 1:, 1:] = _unturned(angle, slant)
        inverse = inverse * shrink.unsqueeze(2)
        return torch.cat([inverse, -(inverse @ shift.unsqueeze(2))], dim=2)


def _unturned(angle: Tensor, slant: Tensor) -> Tensor:
    """``(B, 2, 2)``: the shear undone, of the rotation undone."""
    cos, sin = angle.cos(), angle.sin()
    rows = [cos, sin, -sin - slant * cos, cos - slant * sin]
    return torch.stack(rows, 1).view(-1, 2, 2)


class _AffineLike(Augmentation):
    """An affine map with fewer options."""

    def __post_init__(self) -> None:
        self._affine()  # refuses what it would refuse

    def apply(self, x: Tensor, masks: Tensor | None, generator: Generator | None) -> Pair:
        """Maps each example by its own draw."""
        return self._affine().apply(x, masks, generator)

    @abstractmethod
    def _affine(self) -> Affine: ...


@dataclass(frozen=True)
class Rotate(_AffineLike):
    r"""Random rotations around the middle of the image.

    .. math:: y(R_\varphi p) = x(p), \qquad \varphi \sim \mathrm{Uniform}(-\theta, \theta)

    A volume is turned in the plane of its last two axes. For quarter turns see :class:`Rotate90`,
    and where there is more to do than to rotate, :class:`Affine` does it in one resampling.

    Args:
        degrees: :math:`\theta`.
        padding, interpolation: as of :class:`Affine`.

    Shapes:
        - x: ``(B, C, H, W)`` or ``(B, C, D, H, W)`` floats; masks: without C, or None; returns: the
          same.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import Rotate
        >>> Rotate(15)(torch.rand(2, 3, 8, 8)).shape
        torch.Size([2, 3, 8, 8])

    References:
        Simard, Steinkraus and Platt (2003), Best practices for convolutional neural networks
        applied to visual document analysis, section 2.
    """

    degrees: float = 10.0
    _: KW_ONLY
    padding: Padding = "reflect"
    interpolation: Interpolation = "linear"

    grid_axes: ClassVar[tuple[int, ...]] = (2, 3)

    def _affine(self) -> Affine:
        return Affine(self.degrees, padding=self.padding, interpolation=self.interpolation)


@dataclass(frozen=True)
class Scale(_AffineLike):
    r"""Random enlarging and shrinking around the middle of the grid.

    .. math:: y(z p) = x(p), \qquad \log z \sim \mathrm{Uniform}(-\log(1 + s), \log(1 + s))

    A factor and its inverse are as likely as each other. Of a signal it is a change of tempo.

    Args:
        scale: :math:`s`: 0.1 gives factors from 1/1.1 to 1.1.
        padding, interpolation: as of :class:`Affine`.

    Shapes:
        - x: ``(B, C, *size)`` floats; masks: ``(B, *size)`` or None; returns: the same.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import Scale
        >>> Scale(0.2)(torch.rand(2, 1, 100)).shape
        torch.Size([2, 1, 100])

    References:
        Simard, Steinkraus and Platt (2003), Best practices for convolutional neural networks
        applied to visual document analysis, section 2.
    """

    scale: float = 0.1
    _: KW_ONLY
    padding: Padding = "reflect"
    interpolation: Interpolation = "linear"

    def _affine(self) -> Affine:
        return Affine(scale=self.scale, padding=self.padding, interpolation=self.interpolation)


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
        padding, interpolation: as of :class:`Affine`.

    Shapes:
        - x: ``(B, C, *size)`` floats; of a signal ``(B, C, L)`` only the field and scale apply.
        - masks: ``(B, *size)`` or None; returns: the same.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import Elastic
        >>> Elastic(3.0, nodes=4)(torch.rand(2, 1, 32, 32)).shape
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

    def apply(self, x: Tensor, masks: Tensor | None, generator: Generator | None) -> Pair:
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
