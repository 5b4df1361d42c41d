"""Linear maps and sums of normal vectors are normal, with known moments."""

import numpy as np
import torch
from scipy.stats import kstest, multivariate_normal
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.style import INK, LINEAR, MODEL


def measure(generator: torch.Generator, *, draws: int = 20_000) -> Finding:
    """Moments of samples in standard errors, and the density by scipy."""
    M = torch.randn(2, 3, generator=generator, dtype=torch.float64)
    S, T = covariance(3, generator), covariance(2, generator)
    mu, nu = (torch.randn(d, generator=generator, dtype=torch.float64) for d in (3, 2))
    x = normal(mu, S, draws, generator)
    mapped = x @ M.T
    mean, sigma = M @ mu, M @ S @ M.T
    y = normal(nu, T, draws, generator)
    added, total = mapped + y, sigma + T
    dependent = mapped + mapped
    whitened = torch.linalg.solve_triangular(
        torch.linalg.cholesky(sigma), (mapped - mean).T, upper=False
    )
    values = whitened.square().sum(0)  # chi-squared with 2 degrees of freedom
    distance = kstest(values.numpy(), "chi2", args=(2,)).statistic * draws**0.5
    squeezed = kstest(values.numpy(), "chi2", args=(3,)).statistic * draws**0.5
    quantile = "a normal quantile of 7e-6, for 5 moments; standard errors from normal moments"
    checks = [
        Check(
            "Mx: largest deviation of mean and covariance, in standard errors",
            deviation(mapped, mean, sigma),
            0.0,
            4.5,
            quantile,
            wrong=Wrong(
                "MΣMᵀ with the variances only",
                measured=deviation(mapped, mean, M @ S.diag().diag() @ M.T),
            ),
        ),
        Check(
            "x + y of independent vectors: largest deviation, in standard errors",
            deviation(added, mean + nu, total),
            0.0,
            4.5,
            quantile,
            wrong=Wrong(
                "independence dropped: Mx + Mx", measured=deviation(dependent, 2 * mean, 2 * sigma)
            ),
        ),
        Check(
            "Mx: Kolmogorov's distance of its squared length to chi-squared, times √draws",
            float(distance),
            0.0,
            2.5,
            "its limit distribution exceeds 2.5 with probability 2 exp(-2 · 2.5²) = 7e-6",
            wrong=Wrong("three degrees of freedom", measured=float(squeezed)),
        ),
        Check(
            "largest error of the log density, in units of its rounding",
            density_error(mu, S, x[:100]),
            0.0,
            1.0,
            "rounding: 9 eps × condition × size",
            wrong=Wrong(
                "(2π)^½ in place of (2π)^(d/2)", measured=density_error(mu, S, x[:100], power=1)
            ),
        ),
    ]
    return Finding(checks, data={"mapped": mapped, "mean": mean, "covariance": sigma})


def covariance(d: int, generator: torch.Generator) -> Tensor:
    """A random positive definite matrix."""
    A = torch.randn(d, d, generator=generator, dtype=torch.float64)
    return A @ A.T + 0.3 * torch.eye(d, dtype=torch.float64)


def normal(mean: Tensor, cov: Tensor, draws: int, generator: torch.Generator) -> Tensor:
    """Samples, (draws, d)."""
    z = torch.randn(draws, len(mean), generator=generator, dtype=torch.float64)
    return mean + z @ torch.linalg.cholesky(cov).T


def deviation(x: Tensor, mean: Tensor, cov: Tensor) -> float:
    """The largest difference of sample moments to the given ones, in standard errors."""
    n, centred = len(x), x - mean
    variance = cov.diag()
    first = centred.mean(0) / (variance / n).sqrt()
    second = centred.T @ centred / n - cov
    # Isserlis: Var(x_i x_j) = s_ii s_jj + s_ij².
    error = ((variance[:, None] * variance + cov**2) / n).sqrt()
    return float(max(first.abs().max(), (second / error).abs().max()))


def density_error(mean: Tensor, cov: Tensor, x: Tensor, power: int = 3) -> float:
    """The formula for the density against scipy's."""
    centred = x - mean
    form = (centred * torch.linalg.solve(cov, centred.T).T).sum(-1)
    ours = -0.5 * (power * np.log(2 * np.pi) + torch.logdet(cov) + form)
    peer = torch.as_tensor(multivariate_normal(mean.numpy(), cov.numpy()).logpdf(x.numpy()))
    scale = 9 * EPS * float(torch.linalg.cond(cov)) * (1 + form)
    return float(((ours - peer).abs() / scale).max())


def draw(paper: Figure, finding: Finding) -> None:
    """A cloud of mapped points, and the ellipse that should hold 90% of them."""
    axes = paper.subplots()
    x, mean = finding.data["mapped"][:1000], finding.data["mean"]
    angle = torch.linspace(0, 2 * torch.pi, 200, dtype=torch.float64)
    circle = torch.stack([angle.cos(), angle.sin()]) * (-2 * np.log(0.1)) ** 0.5
    axes.plot(*x.T, ".", color=MODEL, alpha=0.4, ms=3, label="Mx, sampled")
    for cov, style, name in (
        (finding.data["covariance"], {"color": LINEAR}, "N(Mμ, MΣMᵀ), 90%"),
        (
            finding.data["covariance"].diag().diag(),
            {"color": INK, "ls": "--", "lw": 0.8},
            "covariance left out",
        ),
    ):
        line = mean[:, None] + torch.linalg.cholesky(cov) @ circle
        axes.plot(*line, label=name, **style)
    axes.set(xlabel="first coordinate", ylabel="second coordinate", aspect="equal")
    axes.set_title("a linear map of a normal vector is normal")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="gaussian-algebra",
    title="Maps and sums of normal vectors",
    statement=(
        "A linear map of a normal vector is normal with mean Mμ and covariance MΣMᵀ, and the sum "
        "of two independent normal vectors is normal with the sums of means and covariances. The "
        "rule for sums fails without independence, a condition that is often left out."
    ),
    formula=(
        r"x \sim N(\mu, \Sigma) \Rightarrow M x \sim N(M \mu, M \Sigma M^\top), \qquad "
        r"x \perp y \Rightarrow x + y \sim N(\mu_x + \mu_y, \Sigma_x + \Sigma_y)"
    ),
    sources=("M030",),
    measure=measure,
    reference="Mardia, Kent and Bibby (1979), Multivariate Analysis, chapter 3.",
    full={"draws": 1_000_000},
    draw=draw,
)
