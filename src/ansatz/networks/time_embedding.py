"""The time of a diffusion as features: sines and cosines, and a perceptron of them."""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import silu

from ansatz.layers.init import affine


def waves(t: Tensor, width: int, *, shift: float = 0, cosine_first: bool = True) -> Tensor:
    r"""Computes cosines and sines of the time at geometric frequencies.

    .. math:: \cos(\omega_k t), \sin(\omega_k t), \qquad
              \omega_k = 10000^{-k / (m - \text{shift})}, \quad k = 0, \dots, m - 1

    Args:
        t: ``(B,)``.
        width: features, 2m; one of zeros at the end makes an odd number.
        shift: 0 or 1.
        cosine_first: which of the two come first.

    Returns:
        ``(B, width)``.
    """
    half = width // 2
    powers = torch.arange(half, dtype=torch.float32, device=t.device) / (half - shift)
    angle = t.to(torch.promote_types(t.dtype, torch.float32)).unsqueeze(1)
    angle = angle * torch.exp(-math.log(10_000) * powers)
    parts = [angle.cos(), angle.sin()] if cosine_first else [angle.sin(), angle.cos()]
    parts += [torch.zeros_like(angle[:, :1])] * (width % 2)
    return torch.cat(parts, 1)


class TimeEmbedding(nn.Module):
    """A perceptron of one hidden layer with swish, under the names of checkpoints."""

    def __init__(self, width: int, size: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.linear_1 = affine(width, size, init="lecun_normal", generator=generator)
        self.linear_2 = affine(size, size, init="lecun_normal", generator=generator)

    def forward(self, features: Tensor) -> Tensor:
        return self.linear_2(silu(self.linear_1(features)))
