"""Random affine maps in one resampling: turn, stretch, slant and shift."""

import math
from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor

from ansatz.data.augmentation.augmentation import Augmentation, uniform
from ansatz.data.augmentation.limits import Interpolation, Padding, check_between, check_padding
from ansatz.data.augmentation.resampling import affine_resample, widened


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
        >>> augment(torch.rand(4, 1, 28, 28))[0].shape
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

    def apply(
        self, x: Tensor, masks: Tensor | None, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor | None]:
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

    def matrices(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
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
