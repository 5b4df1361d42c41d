"""The mean gradient of a random batch is an unbiased estimate of that of all rows."""

from itertools import combinations

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.data import Batch
from ansatz.likelihoods import Bernoulli
from ansatz.networks import MLP
from ansatz.training import Supervised


def measure(generator: torch.Generator, *, rows: int = 8, shown: int = 3) -> Finding:
    """Every batch of every size: the mean of its gradients, and their variance."""
    network = MLP(2, 1, widths=(4,), activation="tanh", output_scale=1.0, generator=generator)
    network.double()
    objective = Supervised(Bernoulli())
    x = torch.randn(rows, 2, dtype=torch.float64, generator=generator)
    y = torch.randint(2, (rows,), generator=generator)

    def gradient(chosen: list[int]) -> tuple[Tensor, float]:
        batch = Batch.of(x[chosen], y[chosen])
        total, count = objective(network, batch)
        parts = torch.autograd.grad(total, list(network.parameters()))
        return torch.cat([part.flatten() for part in parts]), float(count)

    full, _ = gradient(list(range(rows)))
    full = full / rows
    each = torch.stack([gradient([i])[0] for i in range(rows)])  # (N, D)
    variance = float(((each - full) ** 2).sum() / (rows - 1))
    means, sums, variances = [], [], []
    for size in range(1, rows + 1):
        found = [gradient(list(batch)) for batch in combinations(range(rows), size)]
        mean = torch.stack([total / count for total, count in found])
        means.append(mean.mean(0))
        sums.append(torch.stack([total for total, _ in found]).mean(0))
        variances.append(float(((mean - full) ** 2).sum(1).mean()))
    sizes = torch.arange(1, rows + 1, dtype=torch.float64)
    predicted = variance / sizes * (1 - sizes / rows)
    scale = float(each.abs().max())
    long = each[:-1].mean(0)  # a batch of all rows but the last, and one of the last
    uneven = 0.5 * (long + each[-1])
    checks = [
        Check(
            "largest gap of the average over all batches to the full gradient",
            max(float((mean - full).abs().max()) for mean in means),
            0.0,
            8 * rows * EPS * scale,
            "rounding of sums of gradients",
            wrong=Wrong(
                f"the sum over a batch of {shown} in place of the mean",
                measured=float((sums[shown - 1] - full).abs().max()),
            ),
        ),
        Check(
            "largest gap of the sum over a batch to B times the full gradient",
            max(float((s - b * full).abs().max()) for s, b in zip(sums, sizes, strict=True)),
            0.0,
            8 * rows**2 * EPS * scale,
            "rounding of sums of gradients",
        ),
        Check(
            f"variance of the gradient of a batch of {shown}",
            variances[shown - 1],
            float(predicted[shown - 1]),
            64 * rows * EPS * variance,
            "rounding of squares",
            wrong=Wrong("S² / B, as if there were no end of rows", predicted=variance / shown),
        ),
        Check(
            "largest gap of the mean over an epoch's batches of unequal size, weighted by size",
            float(((long * (rows - 1) + each[-1]) / rows - full).abs().max()),
            0.0,
            8 * rows * EPS * scale,
            "rounding of sums of gradients",
            wrong=Wrong("unweighted", measured=float((uneven - full).abs().max())),
        ),
    ]
    table = Table(
        ["batch size", "variance", "S²/B (1 - B/N)"],
        [[int(b), v, float(p)] for b, v, p in zip(sizes, variances, predicted, strict=True)],
    )
    data = {"sizes": sizes, "variances": variances, "variance": variance, "rows": rows}
    return Finding(checks, table, data)


def draw(paper: Figure, finding: Finding) -> None:
    """The variance of the gradient against the size of the batch."""
    from ansatz.figures.style import INK, LINEAR, MODEL

    data, axes = finding.data, paper.subplots()
    b = torch.linspace(1, data["rows"], 200)
    axes.plot(b, data["variance"] / b * (1 - b / data["rows"]), color=INK, label="S²/B (1 - B/N)")
    axes.plot(
        b, data["variance"] / b, "--", lw=0.8, color=LINEAR, label="S²/B: as if rows had no end"
    )
    axes.plot(data["sizes"], data["variances"], "o", markersize=6, color=MODEL, label="all batches")
    axes.set(xlabel="rows in a batch", ylabel="variance of its gradient")
    axes.set_title(f"a batch of any size is right on average: all batches of {data['rows']} rows")
    axes.legend()


claim = Claim(
    id="sgd-unbiased",
    title="The gradient of a random batch is unbiased",
    statement=(
        "Averaged over all batches of B of N rows, the mean gradient of a batch is the gradient "
        "over all rows, and its variance is S²/B (1 - B/N). The sum over a batch, which is also in "
        "use, is B times as large; and a short last batch must be weighted by its size."
    ),
    formula=(
        r"\mathrm{E}_{\mathcal B} \frac1B \sum_{i \in \mathcal B} \nabla \ell_i = "
        r"\frac1N \sum_{i=1}^N \nabla \ell_i, \qquad "
        r"\mathrm{Var} = \frac{S^2}{B}\left(1 - \frac BN\right)"
    ),
    sources=("M136",),
    measure=measure,
    reference="Bottou, Curtis and Nocedal (2018), Optimization methods for large-scale machine "
    "learning, section 3. https://arxiv.org/abs/1606.04838",
    full={"rows": 12},
    draw=draw,
)
