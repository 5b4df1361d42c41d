"""An integral operator with a kernel of u - t is a convolution; with exp(-2πiut), Fourier's."""

import numpy as np
import torch

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS

REACH = 8.0  # beyond it exp(-πt²) is below 1e-87


def measure(generator: torch.Generator, *, points: int = 801) -> Finding:
    """Operators (Tf)(u) = ∫ H(u, t) f(t) dt as sums over an even grid."""
    t = np.linspace(-REACH, REACH, points)
    step = t[1] - t[0]
    u = np.linspace(-2, 2, 81)
    f = np.exp(-np.pi * t**2)
    waves = np.exp(-2j * np.pi * u[:, None] * t)
    transform = waves @ f * step
    width = 0.5 + float(torch.rand((), generator=generator, dtype=torch.float64))
    scaled = waves @ np.exp(-np.pi * (t / width) ** 2) * step
    moved = waves @ np.exp(-np.pi * (t - 1) ** 2) * step
    middle = np.abs(t) <= REACH / 2
    shift = round(1 / step)
    along, ramp = (np.exp(-((t[:, None] - t) ** 2)), np.exp(-((t[:, None] - t) ** 2) * (1 + t**2)))
    commutes, fails = (
        float(abs(np.roll(H @ f, shift) - H @ np.roll(f, shift))[middle].max() * step)
        for H in (along, ramp)
    )
    wave = np.cos(2 * np.pi * 0.7 * t)
    eigenvalue = np.sqrt(np.pi) * np.exp(-((np.pi * 0.7) ** 2))
    rounding = 8 * points * EPS
    because = "rounding of a sum; for such functions an even grid has no other error"
    checks = [
        Check(
            "largest error of the transform of exp(-πt²), which is itself",
            float(abs(transform - np.exp(-np.pi * u**2)).max()),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "without the 2π in the exponent",
                measured=float(abs(np.exp(-1j * u[:, None] * t) @ f * step
                                   - np.exp(-np.pi * u**2)).max()),
            ),
        ),
        Check(
            "largest error of a stretched Gaussian's transform, which is narrow",
            float(abs(scaled - width * np.exp(-np.pi * (width * u) ** 2)).max()),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "as wide as before",
                measured=float(abs(scaled - width * np.exp(-np.pi * (u / width) ** 2)).max()),
            ),
        ),
        Check(
            "largest error of a shifted Gaussian's transform, which turns",
            float(abs(moved - np.exp(-2j * np.pi * u) * transform).max()),
            0.0,
            rounding,
            because,
            wrong=Wrong("it did not change", measured=float(abs(moved - transform).max())),
        ),
        Check(
            "change of T f if f is shifted before instead of after, kernel of u - t",
            commutes,
            0.0,
            rounding,
            because,
            wrong=Wrong("a kernel that is not of u - t", measured=fails),
        ),
        Check(
            "largest error of cos(1.4πt) as eigenfunction of the kernel exp(-(u - t)²)",
            float(abs(along @ wave * step - eigenvalue * wave)[middle].max()),
            0.0,
            rounding + float(np.exp(-((REACH / 2) ** 2))),
            "rounding, and the kernel beyond the grid",
            wrong=Wrong(
                "another eigenvalue, ∫ H",
                measured=float(abs(along @ wave * step - np.sqrt(np.pi) * wave)[middle].max()),
            ),
        ),
    ]  # fmt: skip
    return Finding(checks, None, {"u": u, "transform": transform.real, "scaled": scaled.real})


def draw(paper: Figure, finding: Finding) -> None:
    """Two Gaussians' transforms."""
    from ansatz.figures.style import INK, LINEAR, MODEL

    axes, u = paper.subplots(), finding.data["u"]
    axes.plot(u, np.exp(-np.pi * u**2), color=INK, label="exp(-πu²)")
    axes.plot(u[::4], finding.data["transform"][::4], "o", color=MODEL, label="transform of itself")
    axes.plot(u, finding.data["scaled"], color=LINEAR, label="transform of a stretched one")
    axes.set(xlabel="frequency u", ylabel="(Tf)(u)")
    axes.set_title("the Fourier transform as an integral operator")
    axes.legend()


claim = Claim(
    id="integral-operator",
    title="Convolution and Fourier transform are integral operators",
    statement=(
        "An integral operator maps f to ∫ H(u, t) f(t) dt. With H = exp(-2πiut) it is the Fourier "
        "transform: exp(-πt²) stays as it is, stretching narrows, shifting turns the phase. With H "
        "a function of u - t it is a convolution: it commutes with shifts, and waves are its "
        "eigenfunctions."
    ),
    formula=(
        r"(Tf)(u) = \int H(u, t) f(t)\, dt, \qquad "
        r"H(u, t) = e^{-2 \pi i u t} \text{ or } h(u - t)"
    ),
    sources=("M179",),
    measure=measure,
    reference="Stein and Shakarchi (2003), Fourier Analysis, chapters 2 and 5.",
    full={"points": 4_001},
    draw=draw,
)
