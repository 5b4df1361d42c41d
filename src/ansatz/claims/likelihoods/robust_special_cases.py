"""Charbonnier, Cauchy, Geman-McClure and Welsch losses are Barron's with one shape each."""

import numpy as np
import torch
from scipy.optimize import least_squares

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.likelihoods import Cauchy, Charbonnier, GemanMcClure, Welsch

LOSSES = {
    "Charbonnier": (Charbonnier, 1.0, lambda z: np.sqrt(1 + z**2) - 1),
    "Cauchy": (Cauchy, 0.0, lambda z: np.log1p(z**2 / 2)),
    "Geman-McClure": (GemanMcClure, -2.0, lambda z: 2 * z**2 / (z**2 + 4)),
    "Welsch": (Welsch, -np.inf, lambda z: -np.expm1(-(z**2) / 2)),
}


def measure(generator: torch.Generator, *, points: int = 201) -> Finding:
    """Each loss beside its own formula, Barron's at its shape, and scipy's where it has it."""
    z = np.linspace(-20, 20, points)
    y, raw = torch.as_tensor(z), torch.zeros(points, 1, dtype=torch.float64)
    values = {
        name: kind(scale=1.0).double().loss(raw, y).numpy() for name, (kind, _, _) in LOSSES.items()
    }
    own = max(abs(values[name] - formula(z)).max() for name, (_, _, formula) in LOSSES.items())
    shaped = max(
        abs(values[name] - barron(z, alpha)).max() for name, (_, alpha, _) in LOSSES.items()
    )
    theirs = {
        "Charbonnier": scipy_loss(z, "soft_l1", 1.0),
        "Cauchy": scipy_loss(z, "cauchy", 2**0.5),
    }
    apart = max(abs(values[name] - found).max() for name, found in theirs.items())
    rounding = 64 * EPS * 20
    because = "rounding of values below 20"
    checks = [
        Check(
            "largest error of the four losses by their formulas", float(own), 0.0, rounding,
            because,
            wrong=Wrong("Cauchy's with z² for z²/2",
                        measured=float(abs(values["Cauchy"] - np.log1p(z**2)).max())),
        ),
        Check(
            "largest difference from Barron's loss at α = 1, 0, -2, -∞", float(shaped), 0.0,
            rounding, because,
            wrong=Wrong("Charbonnier's at α = 2",
                        measured=float(abs(values["Charbonnier"] - barron(z, 2.0)).max())),
        ),
        Check(
            "largest difference from scipy's soft_l1 and cauchy", float(apart), 0.0, rounding,
            because,
            wrong=Wrong(
                "cauchy without its scale √2",
                measured=float(abs(values["Cauchy"] - scipy_loss(z, "cauchy", 1.0)).max()),
            ),
        ),
    ]  # fmt: skip
    rows = [[name, alpha, values[name][-1]] for name, (_, alpha, _) in LOSSES.items()]
    return Finding(checks, Table(["loss", "α", "loss at z = 20"], rows), {"z": z, "values": values})


def barron(z: np.ndarray, alpha: float) -> np.ndarray:
    """|α - 2| / α ((z² / |α - 2| + 1)^(α/2) - 1) and its limits."""
    if alpha == 2:
        return np.asarray(z**2 / 2)
    if alpha == 0:
        return np.asarray(np.log(z**2 / 2 + 1))
    if alpha == -np.inf:
        return np.asarray(1 - np.exp(-(z**2) / 2))
    scale = abs(alpha - 2)
    return np.asarray(scale / alpha * ((z**2 / scale + 1) ** (alpha / 2) - 1))


def scipy_loss(z: np.ndarray, loss: str, scale: float) -> np.ndarray:
    """The cost that scipy has for one residual at a time."""

    def cost(residual: float) -> float:
        start = least_squares(
            lambda p: residual + 0 * p, [0.0], loss=loss, f_scale=scale, max_nfev=1
        )
        return float(start.cost)

    return np.array([cost(residual) for residual in z])


def draw(paper: Figure, finding: Finding) -> None:
    """The four losses."""
    from ansatz.figures.style import PALETTE

    axes = paper.subplots()
    z = finding.data["z"]
    for (name, values), colour in zip(finding.data["values"].items(), PALETTE, strict=False):
        axes.plot(z, values, color=colour, label=f"{name}, α = {LOSSES[name][1]:g}")
    axes.set(xlabel="residual z, in units of the scale", ylabel="loss", xlim=(-8, 8), ylim=(0, 7))
    axes.set_title("four robust losses, one family")
    axes.legend(loc="upper center")


claim = Claim(
    id="robust-special-cases",
    title="Four robust losses are one family",
    statement=(
        "The losses of Charbonnier, Cauchy, Geman and McClure, and Welsch are Barron's general "
        "loss at α = 1, 0, -2 and in the limit -∞. scipy's cauchy has another scale: its residuals "
        "are divided by √2 to agree."
    ),
    formula=(
        r"\rho(z; \alpha) = \frac{|\alpha - 2|}{\alpha} \left( \Bigl( \frac{z^2}{|\alpha - 2|} + 1 "
        r"\Bigr)^{\alpha / 2} - 1 \right)"
    ),
    sources=("M113",),
    measure=measure,
    reference=(
        "Barron (2019), A general and adaptive robust loss function. "
        "https://arxiv.org/abs/1701.03077"
    ),
    full={"points": 2_001},
    draw=draw,
)
