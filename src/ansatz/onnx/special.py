"""Functions that ONNX lacks or computes with too few digits, by those that it has."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

_SHIFT = 8  # Stirling's series with 5 terms has 15 digits from here on
_STIRLING = (12, -360, 1260, -1680, 1188)  # its coefficients are one over these


def log1p(x: Tensor) -> Tensor:
    """Log(1 + x) with all digits for small x, though 1 + x has lost them.

    References:
        Kahan (1982), see Higham (2002), Accuracy and Stability of Numerical Algorithms, 1.14.1.
    """
    u = 1 + x
    exact = (u == 1) | u.isinf()
    gap = torch.where(exact, 1.0, u - 1)
    return torch.where(exact, torch.where(u == 1, x, u), torch.log(u) * (x / gap))


def expm1(x: Tensor) -> Tensor:
    """Exp(x) - 1 with all digits for small x."""
    u = torch.exp(x)
    plain = (u == 1) | (u == 0) | u.isinf()
    log_u = torch.where(plain, 1.0, torch.log(torch.where(plain, 2.0, u)))
    value = (u - 1) * (x / log_u)
    return torch.where(plain, torch.where(u == 1, x, u - 1), value)


def lgamma(x: Tensor) -> Tensor:
    """Log Gamma(x) for x > 0: Stirling's series at x + 8, and the recurrence back."""
    kind, x = x.dtype, x.double()  # the two parts cancel
    product = torch.ones_like(x)
    for k in range(_SHIFT):
        product = product * (x + k)
    z = x + _SHIFT
    square, series = (1 / z) ** 2, torch.zeros_like(x)
    # Constants as quotients of whole numbers: torch writes others in single precision.
    for divisor in reversed(_STIRLING):
        series = series * square + torch.ones_like(x) / divisor
    half_log_circle = torch.log(4 * _quarter(x)) / 2  # of 2 pi
    stirling = (z - 0.5) * torch.log(z) - z + half_log_circle + series / z
    direct = (x - 0.5) * torch.log(x) - x + half_log_circle + 1 / (12 * x)
    return torch.where(x > 1e4, direct, stirling - torch.log(product)).to(kind)


def softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Log(1 + e^x), the larger part outside of the logarithm; runtimes lack it in doubles."""
    x = beta * x
    return (x.clamp(min=0) + log1p(torch.exp(-x.abs()))) / beta


def clamp(x: Tensor, min: float | None = None, max: float | None = None) -> Tensor:
    """Numbers cut at two bounds; torch writes its own only where both bounds are of one type."""
    if min is not None:
        x = torch.maximum(x, x.new_full((), min))
    return x if max is None else torch.minimum(x, x.new_full((), max))


def atan2(y: Tensor, x: Tensor) -> Tensor:
    """The angle of the point (x, y) in (-pi, pi].

    The angle is halved three times, by tan(a/2) = y / (r + x), then the series takes over.
    """
    t = torch.minimum(y.abs(), x.abs()) / torch.maximum(y.abs(), x.abs()).clamp(min=1e-30)
    for _ in range(3):
        t = t / (1 + torch.sqrt(1 + t * t))  # at most tan(pi / 32)
    square, series = t * t, torch.zeros_like(t)
    for k in range(8, -1, -1):
        series = series * -square + torch.ones_like(t) / (2 * k + 1)
    angle = 8 * t * series  # in [0, pi / 4]
    quarter = _quarter(t)
    angle = torch.where(y.abs() > x.abs(), quarter - angle, angle)
    angle = torch.where(x < 0, 2 * quarter - angle, angle)
    return torch.where(y < 0, -angle, angle)


def _quarter(like: Tensor) -> Tensor:
    """Half of pi: a whole number of 2^-23 steps, and the rest."""
    steps = int(math.pi / 2 * 2**23)
    rest = int((math.pi / 2 * 2**23 - steps) * 2**23)
    one = torch.ones_like(like)
    return one * steps / 2**23 + one * rest / 2**46


def adaptive_mean(x: Tensor, output_size: Sequence[int]) -> Tensor:
    """Means over so many blocks along each axis: one matrix of shares per axis.

    Block i of n is that of torch, from floor(i L / n) to ceil((i + 1) L / n) of L cells.
    """
    for axis, count in enumerate(output_size, x.ndim - len(output_size)):
        if count == 1:
            x = x.mean(axis, keepdim=True)
            continue
        length, block = x.shape[axis], torch.arange(count, device=x.device)
        cell = torch.arange(length, device=x.device).unsqueeze(1)
        begin = (block * length).div(count, rounding_mode="floor")
        end = ((block + 1) * length + count - 1).div(count, rounding_mode="floor")
        shares = ((cell >= begin) & (cell < end)).to(x.dtype) / (end - begin)  # (L, n)
        x = (x.movedim(axis, -1) @ shares).movedim(-1, axis)
    return x


def replacements() -> dict[Any, Callable[..., Tensor]]:
    """The operations that are replaced before a graph is written."""
    aten = torch.ops.aten
    return {
        aten.adaptive_avg_pool3d.default: adaptive_mean,
        aten.atan2.default: atan2,
        aten.clamp.default: clamp,
        aten.expm1.default: expm1,
        aten.lgamma.default: lgamma,
        aten.log1p.default: log1p,
        aten.softplus.default: softplus,
    }
