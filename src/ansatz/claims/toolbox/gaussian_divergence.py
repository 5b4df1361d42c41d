"""Entropy and divergence of normal vectors in closed form."""

import numpy as np
import torch
from torch import Tensor
from torch.distributions import MultivariateNormal, kl_divergence

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.style import INK, LINEAR, MODEL


def measure(
    generator: torch.Generator, *, pairs: int = 20, d: int = 3, draws: int = 5_000
) -> Finding:
    """Random pairs of distributions: the formula, torch's own, and the mean over draws."""
    A, B = torch.randn(2, pairs, d, d, generator=generator, dtype=torch.float64)
    one, two = (C @ C.mT + torch.eye(d, dtype=torch.float64) for C in (A, B))
    mu, nu = torch.randn(2, pairs, d, generator=generator, dtype=torch.float64)
    p, q = MultivariateNormal(mu, one), MultivariateNormal(nu, two)
    z = torch.randn(draws, pairs, d, generator=generator, dtype=torch.float64)
    x = mu + (torch.linalg.cholesky(one) @ z.unsqueeze(-1)).squeeze(-1)
    log_p = p.log_prob(x)
    ratio = log_p - q.log_prob(x)
    formula, torchs = divergence(mu, one, nu, two), kl_divergence(p, q)
    entropy = 0.5 * (d * np.log(2 * np.pi * np.e) + torch.logdet(one))
    condition = float(torch.linalg.cond(two).max())
    rounding = d**2 * EPS * condition * (1 + float(formula.max()))
    quantile = f"a normal quantile of 7e-6, for {pairs} pairs; standard errors over {draws} draws"
    checks = [
        Check(
            "divergence: largest deviation from simulation, in standard errors",
            deviations(ratio, formula),
            0.0,
            4.5,
            quantile,
            wrong=Wrong("without - d", measured=deviations(ratio, formula + d / 2)),
        ),
        Check(
            "entropy: largest deviation from simulation, in standard errors",
            deviations(-log_p, entropy),
            0.0,
            4.5,
            quantile,
            wrong=Wrong("without the e", measured=deviations(-log_p, entropy - d / 2)),
        ),
        Check(
            "largest difference to torch's divergence",
            float((formula - torchs).abs().max()),
            0.0,
            rounding,
            "rounding: d² eps × condition × size",
            wrong=Wrong(
                "the arguments swapped",
                measured=float((divergence(nu, two, mu, one) - torchs).abs().max()),
            ),
        ),
        Check(
            "largest divergence of a distribution from itself",
            float(divergence(mu, one, mu, one).abs().max()),
            0.0,
            d**2 * EPS * float(torch.linalg.cond(one).max()),
            "rounding: d² eps × condition",
        ),
    ]
    return Finding(checks, data=scales(generator, draws))


def divergence(mu: Tensor, one: Tensor, nu: Tensor, two: Tensor) -> Tensor:
    """½ [log |Σ₂|/|Σ₁| - d + tr(Σ₂⁻¹Σ₁) + Δᵀ Σ₂⁻¹ Δ]."""
    gap = (nu - mu).unsqueeze(-1)
    trace = torch.linalg.solve(two, one).diagonal(dim1=-2, dim2=-1).sum(-1)
    form = (gap * torch.linalg.solve(two, gap)).sum((-2, -1))
    return 0.5 * (torch.logdet(two) - torch.logdet(one) - mu.shape[-1] + trace + form)


def deviations(values: Tensor, expected: Tensor) -> float:
    """The largest difference of the means over draws to the distribution, in standard errors."""
    error = values.std(0) / len(values) ** 0.5
    return float(((values.mean(0) - expected) / error).abs().max())


def scales(generator: torch.Generator, draws: int) -> dict[str, Tensor]:
    """For the figure: N(0, 1) against N(0, s²), by simulation and by the formula."""
    s = torch.linspace(0.4, 3, 14, dtype=torch.float64)
    x = torch.randn(draws, 1, generator=generator, dtype=torch.float64)
    ratio = s.log() + x**2 / (2 * s**2) - x**2 / 2
    return {"s": s, "mean": ratio.mean(0), "error": ratio.std(0) / draws**0.5}


def draw(paper: Figure, finding: Finding) -> None:
    """The divergence of N(0, 1) from N(0, s²)."""
    axes = paper.subplots()
    s, mean, error = (finding.data[key] for key in ("s", "mean", "error"))
    line = torch.linspace(0.38, 3, 200, dtype=torch.float64)
    expected = line.log() - 0.5 + 0.5 / line**2
    axes.errorbar(s, mean, 2 * error, fmt="o", color=MODEL, label="simulated, ± 2 standard errors")
    axes.plot(line, expected, color=LINEAR, label="½ [log s² − 1 + 1/s²]")
    axes.plot(line, expected + 0.5, "--", color=INK, lw=0.8, label="without the − d: wrong")
    axes.set(
        xlabel="standard deviation s of the second distribution",
        ylabel="KL(N(0, 1) ‖ N(0, s²)) (nats)",
    )
    axes.set_title("too narrow costs more than too wide, and equal distributions nothing")
    axes.legend(loc="upper right")


claim = Claim(
    id="gaussian-divergence",
    title="Entropy and divergence of normal distributions",
    statement=(
        "The entropy of a normal distribution grows with the logarithm of its determinant. The "
        "divergence of two normal distributions is a sum of a log ratio of determinants, a trace "
        "and a squared distance of means; it is zero for equal distributions."
    ),
    formula=(
        r"\mathrm{KL} = \tfrac12 \left[ \log \tfrac{|\Sigma_2|}{|\Sigma_1|} - d + "
        r"\mathrm{tr}(\Sigma_2^{-1} \Sigma_1) + \Delta^\top \Sigma_2^{-1} \Delta \right], \qquad "
        r"H = \tfrac12 \log\left( (2 \pi e)^d |\Sigma| \right)"
    ),
    sources=("M031",),
    measure=measure,
    reference="Cover and Thomas (2006), Elements of Information Theory, section 8.4.",
    full={"pairs": 100, "d": 10, "draws": 50_000},
    draw=draw,
)
