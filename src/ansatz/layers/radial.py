"""Functions of a distance that vanish smoothly at a cut-off."""

import math

import torch
from torch import Tensor, nn

POWER = 6


def switch(x: Tensor) -> tuple[Tensor, Tensor]:
    r"""A smooth step from 1 at x = 0 to 0 at x = 1, and its derivative.

    .. math:: f(x) = 1 - \frac{(p+1)(p+2)}{2} x^p + p (p+2) x^{p+1} - \frac{p (p+1)}{2} x^{p+2}

    with p = 6: value, slope and curvature are 0 at x = 1, and stay so beyond.

    Example:
        >>> import torch
        >>> from ansatz.layers.radial import switch
        >>> switch(torch.tensor([0.0, 0.5, 1.0]))[0]
        tensor([1.0000, 0.8555, 0.0000])

    References:
        Gasteiger et al. (2020), Directional message passing for molecular graphs, eq. 8.
        https://arxiv.org/abs/2003.03123
    """
    p, x = POWER, x.clamp(max=1.0)
    a, b, c = (p + 1) * (p + 2) / 2, p * (p + 2), p * (p + 1) / 2
    low = x ** (p - 1)
    value = 1 - low * x * (a - x * (b - c * x))
    slope = -low * (a * p - x * (b * (p + 1) - c * (p + 2) * x))
    return value, slope


class RadialBasis(nn.Module):
    r"""K waves of rising frequency under a smooth switch.

    .. math:: \phi_k(r) = \sqrt{\tfrac{2}{r_c}}\, \frac{\sin(k \pi r / r_c)}{r}\, f(r / r_c),
        \qquad k = 1, \dots, K

    with the cut-off :math:`r_c` and :func:`switch` f. The derivative comes with the value: forces
    need both.

    Args:
        cutoff: :math:`r_c`.
        count: K.

    Shapes:
        - r: ``(E,)``, positive; returns two ``(E, K)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import RadialBasis
        >>> value, slope = RadialBasis(4.0, 8)(torch.tensor([1.0, 4.0]))
        >>> value.shape, bool(value[1].abs().max() < 1e-6), bool(slope[1].abs().max() < 1e-6)
        (torch.Size([2, 8]), True, True)
    """

    def __init__(self, cutoff: float, count: int) -> None:
        super().__init__()
        self.cutoff, self.count = float(cutoff), count

    def forward(self, r: Tensor) -> tuple[Tensor, Tensor]:
        k = torch.arange(1, self.count + 1, dtype=r.dtype, device=r.device) * math.pi / self.cutoff
        value, slope = switch(r / self.cutoff)
        angle = r.unsqueeze(1) * k
        inverse = 1 / r
        factor = math.sqrt(2 / self.cutoff) * inverse
        sine, cosine = angle.sin(), angle.cos()
        gain = factor * value
        values = sine * gain.unsqueeze(1)
        loss = factor * slope / self.cutoff - gain * inverse
        slopes = cosine * k * gain.unsqueeze(1) + sine * loss.unsqueeze(1)
        return values, slopes
