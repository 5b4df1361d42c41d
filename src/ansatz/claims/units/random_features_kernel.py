"""A network with frozen random features is kernel ridge regression, in the limit of width."""

import numpy as np
import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.decades import logarithmic
from ansatz.figures.style import INK, LINEAR, MODEL
from ansatz.layers import RandomFeatures

RIDGE = 0.1


def measure(
    generator: torch.Generator,
    *,
    widths: tuple[int, ...] = (100, 200, 400, 800, 1600),
    repeats: int = 20,
    rows: int = 30,
) -> Finding:
    """Predictions of ridge on random features against kernel ridge, at growing widths."""
    x = torch.randn(rows, 2, generator=generator, dtype=torch.float64)
    y = x[:, 0].sin() + 0.1 * torch.randn(rows, generator=generator, dtype=torch.float64)
    new = torch.randn(20, 2, generator=generator, dtype=torch.float64)
    limit = kernel_ridge(x, y, new)
    errors = torch.stack(
        [
            torch.stack([ridge(features(m, generator), x, y, new) - limit for _ in range(repeats)])
            for m in widths
        ]
    )  # (widths, repeats, points)
    squared = errors.square().mean(2)  # (widths, repeats)
    rms = squared.mean(1).sqrt()
    error = squared.std(1) / repeats**0.5 / (2 * squared.mean(1))  # of log rms, by the delta method
    slope, slope_error = weighted_slope(np.log(widths), rms.log().numpy(), error.numpy())
    phi = features(widths[0], generator)
    primal, dual = ridge_weights(phi, x, y, new), ridge(phi, x, y, new)
    mean, standard_error, kernel = kernel_estimate(x, repeats, widths[0], generator)
    curvature = float(1 / min(widths) ** 0.5)
    checks = [
        Check(
            "slope of log error against log width",
            slope,
            -0.5,
            4 * slope_error + curvature,
            "4 standard errors over the repeats, and the next order m^(-1/2) of the expansion",
            wrong=Wrong("an error of order 1/m", predicted=-1.0),
        ),
        Check(
            "kernel: largest deviation of mean φ(x)·φ(x') from exp(-|x - x'|²/2s²), in errors",
            float(((mean - kernel) / standard_error).abs().max()),
            0.0,
            5.0,
            f"a normal quantile of 6e-7, for {rows * (rows - 1) // 2} pairs",
            wrong=Wrong(
                "exp(-|x - x'|²/s²)",
                measured=float(((mean - kernel**2) / standard_error).abs().max()),
            ),
        ),
        Check(
            "ridge in the weights against ridge in the kernel of the features",
            float((primal - dual).abs().max()),
            0.0,
            widths[0] * EPS * (1 + rows / RIDGE) * float(y.norm()),
            "rounding: m eps × condition of the ridge × |y|",
        ),
    ]
    table = [[m, float(r), float(r * e)] for m, r, e in zip(widths, rms, error, strict=True)]
    return Finding(checks, Table(["features", "error", "standard error"], table))


def features(m: int, generator: torch.Generator) -> RandomFeatures:
    """The library's cosine features."""
    return RandomFeatures(2, m, kind="cosine", bandwidth=1.0, generator=generator).double()


def ridge(phi: RandomFeatures, x: Tensor, y: Tensor, new: Tensor) -> Tensor:
    """Predictions of ridge on the features, by the kernel that they make: (rows, rows) to solve."""
    F, G = phi(x), phi(new)
    kernel = F @ F.T + RIDGE * torch.eye(len(x), dtype=x.dtype)
    return G @ (F.T @ torch.linalg.solve(kernel, y))


def ridge_weights(phi: RandomFeatures, x: Tensor, y: Tensor, new: Tensor) -> Tensor:
    """The same by the convex problem in the output weights: (features, features) to solve."""
    F = phi(x)
    gram = F.T @ F + RIDGE * torch.eye(phi.out_features, dtype=x.dtype)
    return phi(new) @ torch.linalg.solve(gram, F.T @ y)


def kernel_ridge(x: Tensor, y: Tensor, new: Tensor) -> Tensor:
    """Scikit-learn's kernel ridge regression with the RBF kernel of bandwidth 1."""
    from sklearn.kernel_ridge import KernelRidge

    model = KernelRidge(alpha=RIDGE, kernel="rbf", gamma=0.5).fit(x.numpy(), y.numpy())
    return torch.as_tensor(model.predict(new.numpy()))


def kernel_estimate(
    x: Tensor, repeats: int, m: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Mean inner product of features, its standard error, and the kernel, over pairs."""
    i, j = torch.triu_indices(len(x), len(x), 1)
    phi = features(repeats * m, generator)
    F = phi(x) * (repeats * m) ** 0.5  # each feature's own contribution to the mean
    products = F[i] * F[j]
    kernel = torch.exp(-(x[i] - x[j]).square().sum(1) / 2)
    return products.mean(1), products.std(1) / (repeats * m) ** 0.5, kernel


def weighted_slope(x: np.ndarray, y: np.ndarray, error: np.ndarray) -> tuple[float, float]:
    """Of the line by weighted least squares, with its standard error."""
    w = error**-2
    centred = x - (w * x).sum() / w.sum()
    return float((w * centred * y).sum() / (w * centred**2).sum()), float(
        (w * centred**2).sum() ** -0.5
    )


def draw(paper: Figure, finding: Finding) -> None:
    """Distance to kernel ridge against the number of features."""
    assert finding.table is not None
    axes = paper.subplots()
    m, rms, error = np.array(finding.table.rows).T
    axes.errorbar(m, rms, 2 * error, fmt="o", color=MODEL, label="measured, ± 2 standard errors")
    axes.plot(m, rms[0] * (m / m[0]) ** -0.5, color=LINEAR, label="m^(−1/2)")
    axes.plot(m, rms[0] * m[0] / m, "--", color=INK, lw=0.8, label="1/m: wrong")
    axes.set(xlabel="number m of random features", ylabel="distance of predictions")
    logarithmic(axes.xaxis, axes.yaxis)
    axes.set_title("random features tend to kernel ridge regression as m^(−1/2)")
    axes.legend(loc="lower left")


claim = Claim(
    id="random-features-kernel",
    title="Random features are a kernel machine",
    statement=(
        "With frozen random features the output weights solve a convex least-squares problem, and "
        "its predictions tend to those of kernel ridge regression as the number of features grows, "
        "with an error that falls as one over its square root."
    ),
    formula=(
        r"f_m(x) = \sum_{j=1}^m a_j \varphi_j(x), \qquad "
        r"f_m \to k(x, X) (K + \lambda I)^{-1} y, \qquad "
        r"k(x, x') = \mathrm{E}\, \varphi(x) \varphi(x'), \qquad \|f_m - f_\infty\| = O(m^{-1/2})"
    ),
    sources=("M037",),
    measure=measure,
    reference="Rahimi and Recht (2007), Random features for large-scale kernel machines.",
    full={"widths": (200, 400, 800, 1600, 3200, 6400, 12800), "repeats": 200},
    draw=draw,
)
