"""Positions in a sequence: without them attention cannot see the order."""

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.limits import require_whole
from ansatz.layers.schemes import draw_normal

BASE = 10_000.0


def frequencies(features: int, *, base: float = BASE, like: Tensor | None = None) -> Tensor:
    r"""One :math:`\omega = C^{-2 i / D}` for each of the D/2 pairs of features."""
    if require_whole("features of positions", features) % 2:
        raise UsageError(f"positions need an even number of features, got {features}.")
    dtype, device = (None, None) if like is None else (like.dtype, like.device)
    return base ** (-torch.arange(0, features, 2, dtype=dtype, device=device) / features)


class SinusoidalPositions(nn.Module):
    r"""Adds sines and cosines of the position to each step.

    .. math:: \mathrm{PE}(t)_k = \begin{cases} \sin(t \omega_k) & k \text{ even} \\
        \cos(t \omega_k) & k \text{ odd} \end{cases}, \qquad
        \omega_k = 10000^{-2 \lfloor k/2 \rfloor / D}

    A sine and its cosine share a frequency, so that a shift is a rotation: PE(t + s) is a linear
    function of PE(t), the same for all t. Any length will do; there is nothing to train.

    Args:
        features: :math:`D`, even.

    Shapes:
        - x: ``(B, T, D)``; returns the same.
        - start: the position of the first step.

    Example:
        >>> import torch
        >>> from ansatz.layers import SinusoidalPositions
        >>> SinusoidalPositions(4)(torch.zeros(1, 2, 4))[0, 0]
        tensor([0., 1., 0., 1.])

    References:
        Vaswani et al. (2017), Attention is all you need, section 3.5.
        https://arxiv.org/abs/1706.03762
    """

    def __init__(self, features: int) -> None:
        super().__init__()
        frequencies(features)
        self.features = features

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        omega = frequencies(self.features, like=x)
        t = torch.arange(start, start + x.shape[-2], dtype=x.dtype, device=x.device)
        angle = t[:, None] * omega  # (T, D/2)
        return x + torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)


class LearnedPositions(nn.Module):
    """Adds a trained vector to each step, one for each position up to a greatest length.

    Args:
        length: the greatest number of steps.
        features: :math:`D`.
        generator: where the vectors are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, T, D)``; returns the same.
        - start: the position of the first step.

    Example:
        >>> import torch
        >>> from ansatz.layers import LearnedPositions
        >>> LearnedPositions(10, 4)(torch.zeros(1, 2, 4)).shape
        torch.Size([1, 2, 4])
    """

    def __init__(
        self, length: int, features: int, *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        weight = torch.empty(require_whole("length of LearnedPositions", length), features)
        self.weight = nn.Parameter(draw_normal(weight, 0.02, generator))

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        end = start + x.shape[-2]
        if end > len(self.weight):
            raise UsageError(
                f"there are learned positions for {len(self.weight)} steps, got {end}; shorten the "
                "sequence, or build the network for a greater length."
            )
        return x + self.weight[start:end]


class RotaryPositions(nn.Module):
    r"""Rotates each pair of features of a query or a key by an angle that grows with its position.

    .. math:: \begin{pmatrix} x_{2i}' \\ x_{2i+1}' \end{pmatrix} = \begin{pmatrix}
        \cos t\omega_i & -\sin t\omega_i \\ \sin t\omega_i & \cos t\omega_i \end{pmatrix}
        \begin{pmatrix} x_{2i} \\ x_{2i+1} \end{pmatrix}, \qquad \omega_i = 10000^{-2i/d}

    The product of a rotated query and a rotated key depends on their distance only.

    Args:
        features: :math:`d` of a head, even.
        base: 10000 in the formula.

    Shapes:
        - x: ``(..., T, d)``; returns the same.
        - start: the position of the first step.

    Example:
        >>> import torch
        >>> from ansatz.layers import RotaryPositions
        >>> RotaryPositions(2)(torch.tensor([[1.0, 0.0], [1.0, 0.0]]))[0]
        tensor([1., 0.])

    References:
        Su et al. (2021), RoFormer, eq. 34. https://arxiv.org/abs/2104.09864
    """

    def __init__(self, features: int, *, base: float = BASE) -> None:
        super().__init__()
        frequencies(features)
        self.features, self.base = features, base

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        omega = frequencies(self.features, base=self.base, like=x)
        t = torch.arange(start, start + x.shape[-2], dtype=x.dtype, device=x.device)
        angle = t[:, None] * omega  # (T, d/2)
        c, s = angle.cos(), angle.sin()
        even, odd = x[..., ::2], x[..., 1::2]
        return torch.stack([c * even - s * odd, s * even + c * odd], -1).flatten(-2)
