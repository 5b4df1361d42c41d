"""Sinusoidal positions: the product of two depends on their distance only."""

import numpy as np
import torch

from ansatz.claims import Check, Claim, Erratum, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.layers import SinusoidalPositions

BASE = 10_000.0


def measure(generator: torch.Generator, *, size: int = 16, positions: int = 200) -> Finding:
    """Products at a fixed distance over all positions, and the best linear map between shifts."""
    shift = int(torch.randint(1, 20, (), generator=generator))
    blank = torch.zeros(positions + shift, size, dtype=torch.float64)
    right: np.ndarray = SinusoidalPositions(size)(blank).numpy()
    # The printed exponent needs a base below 1 to be of use; it is given one.
    printed = encode(positions + shift, (1 / BASE) ** (np.arange(size) / size))
    apart = np.cos(shift * frequencies(size)[::2]).sum()  # sin sin + cos cos in each pair
    products, wrong = ((e[:-shift] * e[shift:]).sum(1) for e in (right, printed))
    rotation = rotate(size, shift)
    rounding = 16 * positions * 2.0**-52
    checks = [
        Check(
            f"largest change of PE(t)·PE(t+{shift}) over t",
            float(np.abs(products - apart).max()),
            0.0,
            rounding * size,
            "rounding: eps times the largest argument of a sine, for each feature",
            wrong=Wrong(
                "ω_k = C^(k/d), another one in each feature",
                measured=float(np.abs(wrong - wrong.mean()).max()),
                erratum="E47",
            ),
        ),
        Check(
            "largest error of PE(t+s) = R_s PE(t)",
            float(np.abs(right[:-shift] @ rotation.T - right[shift:]).max()),
            0.0,
            rounding,
            "rounding: eps times the largest argument of a sine",
            wrong=Wrong(
                "ω_k = C^(k/d), with the best linear map there is",
                measured=best_linear(printed[:-shift], printed[shift:]),
                erratum="E47",
            ),
        ),
        Check(
            "largest frequency",
            float(frequencies(size).max()),
            1.0,
            0.0,
            "10000 to the power 0",
            "<=",
            Wrong(
                "C^(k/d) with C = 10000",
                measured=float((BASE ** (np.arange(size) / size)).max()),
                erratum="E47",
            ),
        ),
    ]
    data = {"right": products, "printed": wrong, "shift": shift, "heat": right}
    return Finding(checks, data=data)


def frequencies(size: int) -> np.ndarray:
    """10000^(-2⌊k/2⌋/d): one for each sine and its cosine."""
    found: np.ndarray = BASE ** (-2 * (np.arange(size) // 2) / size)
    return found


def encode(positions: int, omega: np.ndarray) -> np.ndarray:
    """Sines in the even features, cosines in the odd ones, ``(T, D)``."""
    angle = np.arange(positions)[:, None] * omega
    return np.where(np.arange(len(omega)) % 2 == 0, np.sin(angle), np.cos(angle))


def rotate(size: int, shift: int) -> np.ndarray:
    """The block-diagonal rotation that moves all positions by ``shift``."""
    found = np.zeros((size, size))
    for k, omega in zip(range(0, size, 2), frequencies(size)[::2], strict=True):
        c, s = np.cos(shift * omega), np.sin(shift * omega)
        found[k : k + 2, k : k + 2] = [[c, s], [-s, c]]
    return found


def best_linear(before: np.ndarray, after: np.ndarray) -> float:
    """The largest error of the least-squares map."""
    found = np.linalg.lstsq(before, after, rcond=None)[0]
    return float(np.abs(before @ found - after).max())


def draw(paper: Figure, finding: Finding) -> None:
    """The encodings, and products over the position."""
    from ansatz.figures.style import LINEAR, MODEL

    data = finding.data
    heat, axes = paper.subplots(1, 2, width_ratios=[1, 1.5])
    image = heat.imshow(data["heat"], aspect="auto", cmap="RdBu_r", interpolation="nearest")
    paper.colorbar(image, ax=heat)
    heat.set(xlabel="feature k", ylabel="position t", title="PE(t)")
    axes.plot(data["printed"], "--", color=LINEAR, lw=1, label="own ω in each feature (printed)")
    axes.plot(data["right"], color=MODEL, label="ω shared by sine and cosine")
    axes.set(xlabel="position t", ylabel=f"PE(t) · PE(t + {data['shift']})")
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.35 * (high - low))
    axes.set_title("pairs see the distance only, not the place")
    axes.legend(loc="upper right")


claim = Claim(
    id="positional-encoding",
    title="The product of two sinusoidal positions depends on their distance only",
    statement=(
        "When sine and cosine share the frequency 10000^(-2⌊k/2⌋/d), a shift is a rotation of the "
        "encoding, and PE(t)·PE(t+s) depends on s only. Often printed as ω_k = C^(k/d), with a "
        "frequency of its own in each feature that grows for C > 1; then neither is true."
    ),
    formula=(
        r"\mathrm{PE}(t+s) = R_s \mathrm{PE}(t), \qquad \mathrm{PE}(t)^\top \mathrm{PE}(t+s) = "
        r"\sum_{k\ \mathrm{even}} \cos(s \omega_k), \qquad \omega_k = 10000^{-2 \lfloor k/2 "
        r"\rfloor / d}"
    ),
    sources=("E47", "M266", "M441"),
    measure=measure,
    reference=(
        "Vaswani et al. (2017), Attention is all you need, section 3.5. "
        "https://arxiv.org/abs/1706.03762"
    ),
    full={"size": 128, "positions": 2_000},
    errata=(Erratum("E47", "ω_k = C^(k/d)", "ω_k = 10000^(-2⌊k/2⌋/d)"),),
    draw=draw,
)
