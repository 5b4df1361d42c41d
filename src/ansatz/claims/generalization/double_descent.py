"""Test error peaks where the features are as many as the rows, and falls again beyond."""

import numpy as np
import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.figures.decades import logarithmic
from ansatz.figures.style import INK, LINEAR, MODEL
from ansatz.layers import RandomFeatures

SHARES = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 10.0)  # features over rows


def measure(
    generator: torch.Generator, *, rows: int = 40, runs: int = 20, noise_runs: int = 100,
    units: tuple[int, ...] = (), steps: int = 1_500,
) -> Finding:  # fmt: skip
    """Least squares of least norm on random rectified features, and on Gaussian ones."""
    counts = [round(share * rows) for share in SHARES]
    errors = np.array(
        [[error_on_new_rows(rows, m, generator) for _ in range(runs)] for m in counts]
    )
    middle = np.median(errors, 1)
    variances, exact, standard_errors = [], [], []
    for m in (rows // 2, 2 * rows):
        found = torch.stack([noise_variance(rows, m, generator) for _ in range(noise_runs)])
        variances.append(float(found.mean()))
        standard_errors.append(float(found.std() / noise_runs**0.5))
        low, high = sorted((m, rows))
        exact.append(low / (high - low - 1))
    away = np.abs(np.array(variances) - exact) / standard_errors
    classical = np.abs(np.array(variances) - np.array([0.5, 2.0])) / standard_errors
    checks = [
        Check(
            "features per row where the median test error is largest",
            SHARES[int(middle.argmax())],
            1.0,
            0.0,
            "a point of the grid of sizes",
            wrong=Wrong("the most features", predicted=SHARES[-1]),
        ),
        Check(
            "variance from noise on Gaussian features, m = n/2 and 2n, in standard errors",
            float(away.max()),
            0.0,
            4.0,
            f"4 standard errors over {noise_runs} designs, against min/(max - min - 1)",
            wrong=Wrong("m/n, of a fixed design", measured=float(classical.max())),
        ),
        Check(
            "median test error with ten features per row less that with one",
            float(middle[-1] - middle[SHARES.index(1.0)]),
            0.0,
            0.0,
            "the second descent",
            "<=",
            wrong=Wrong(
                "with one less that with a tenth",
                measured=float(middle[SHARES.index(1.0)] - middle[0]),
            ),
        ),
    ]
    data = {"middle": middle, "low": np.quantile(errors, 0.25, 1), "rows": rows,
            "high": np.quantile(errors, 0.75, 1)}  # fmt: skip
    if units:
        curve, fit = network_errors(rows, units, steps, generator)
        parameters = np.array([u * 12 + 1 for u in units])
        edge = int((parameters <= rows).sum()) - 1  # the largest that cannot fit all rows
        checks.append(
            Check(
                "place, among the sizes, of the trained network with the largest test error",
                int(curve.argmax()),
                edge,
                1,
                "the size that just fits lies between this one and the next",
                wrong=Wrong("the largest network", predicted=len(units) - 1),
            )
        )
        data |= {"parameters": parameters, "network": curve, "fit": fit}
    table = Table(
        ["features / rows", "median test error", "lower quartile", "upper quartile"],
        np.column_stack([SHARES, middle, data["low"], data["high"]]).tolist(),
    )
    return Finding(checks, table, data)


def sample(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """A linear signal in ten inputs, and noise."""
    x = torch.randn(n, 10, generator=generator, dtype=torch.float64)
    noise = torch.randn(n, generator=generator, dtype=torch.float64)
    return x, x[:, 0] - 0.5 * x[:, 1] + 0.5 * noise


def least_norm(design: Tensor, y: Tensor) -> Tensor:
    """The shortest of the least squares solutions: where gradient descent from 0 ends."""
    return torch.linalg.lstsq(design, y[:, None], driver="gelsd").solution[:, 0]


def error_on_new_rows(rows: int, m: int, generator: torch.Generator) -> float:
    """Mean squared error on 500 new rows of a model with m random features."""
    features = RandomFeatures(10, m, kind="relu", generator=generator).double()
    (x, y), (new_x, new_y) = sample(rows, generator), sample(500, generator)
    w = least_norm(features(x), y)
    return float((features(new_x) @ w - new_y).square().mean())


def noise_variance(rows: int, m: int, generator: torch.Generator) -> Tensor:
    """E over new rows of (wᵀz)², where w is fitted to noise of variance 1 on Gaussian features."""
    z = torch.randn(rows, m, generator=generator, dtype=torch.float64)
    y = torch.randn(rows, 20, generator=generator, dtype=torch.float64)  # twenty times
    return torch.linalg.lstsq(z, y, driver="gelsd").solution.square().sum(0).mean()


def network_errors(
    rows: int, units: tuple[int, ...], steps: int, generator: torch.Generator, copies: int = 12
) -> tuple[np.ndarray, np.ndarray]:
    """Median test and training errors of trained rectified networks, by width."""
    tests, trains = [], []
    for u in units:
        x = torch.randn(copies, rows + 500, 10, generator=generator, dtype=torch.float64)
        y = x[..., 0] - 0.5 * x[..., 1]
        y = y + 0.5 * torch.randn(copies, rows + 500, generator=generator, dtype=torch.float64)
        draws = [torch.randn(copies, 10, u, generator=generator, dtype=torch.float64) / 10**0.5,
                 torch.zeros(copies, 1, u, dtype=torch.float64),
                 torch.randn(copies, u, 1, generator=generator, dtype=torch.float64) / u**0.5,
                 torch.zeros(copies, 1, 1, dtype=torch.float64)]  # fmt: skip
        W, b, a, c = (each.requires_grad_() for each in draws)
        rule = torch.optim.Adam([W, b, a, c], lr=0.01)

        def loss(part: slice, W=W, b=b, a=a, c=c, x=x, y=y) -> Tensor:  # type: ignore[no-untyped-def]
            fitted = ((x[:, part] @ W + b).relu() @ a + c)[..., 0]
            return (fitted - y[:, part]).square().mean(1)

        for step in range(steps):
            rule.param_groups[0]["lr"] = 0.01 * (1 - step / steps)
            rule.zero_grad()
            loss(slice(rows)).sum().backward()
            rule.step()
        with torch.no_grad():
            trains.append(float(loss(slice(rows)).median()))
            tests.append(float(loss(slice(rows, None)).median()))
    return np.array(tests), np.array(trains)


def draw(paper: Figure, finding: Finding) -> None:
    """Test error against features per row; the trained network beside it, if there is one."""
    data = finding.data
    axes = paper.subplots()
    bars = np.stack([data["middle"] - data["low"], data["high"] - data["middle"]])
    axes.errorbar(SHARES, data["middle"], bars, fmt="o-", color=MODEL, markersize=5, capsize=3,
                  linewidth=0.8, label="random features: median and quartiles")  # fmt: skip
    if "network" in data:
        axes.plot(data["parameters"] / data["rows"], data["network"], "s-", color=LINEAR,
                  markersize=5, linewidth=0.8, label="trained network, its parameters")  # fmt: skip
    axes.axvline(1, color=INK, linestyle=":", label="as many features as rows")
    axes.axhline(0.25, color=INK, linewidth=0.8, label="variance of the noise")
    logarithmic(axes.xaxis, axes.yaxis)
    axes.set(xlabel="features / rows", ylabel="test error")
    axes.set_title("worst where the rows can just be fitted, better again beyond")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="double-descent",
    title="Double descent",
    statement=(
        "The test error of least squares on m random features peaks at m = n, where the rows can "
        "just be fitted, and falls again beyond. On Gaussian features the noise contributes "
        "σ² min(m, n)/(|m − n| − 1), which is infinite in between."
    ),
    formula=(
        r"\mathrm{Var} = \sigma^2 \frac{m}{n - m - 1} \;(m < n - 1), \qquad "
        r"\sigma^2 \frac{n}{m - n - 1} \;(m > n + 1)"
    ),
    sources=("M361",),
    measure=measure,
    reference="Belkin et al. (2019), Reconciling modern machine learning practice. https://arxiv.org/abs/1812.11118",
    full={"runs": 200, "noise_runs": 2_000, "units": (1, 2, 3, 4, 6, 10, 30, 100)},
    draw=draw,
)
