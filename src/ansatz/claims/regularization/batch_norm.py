"""Batch normalisation: statistics of the batch while training, running ones afterwards."""

import numpy as np
import torch
from torch import nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.style import INK, LINEAR, MODEL
from ansatz.layers import normalize


def measure(
    generator: torch.Generator, *, rows: int = 32, units: int = 8, batches: int = 40
) -> Finding:
    """Moments of the outputs, running statistics by their recursion, and outputs of one row."""
    linear = nn.Linear(units, units, dtype=torch.float64)
    norm = normalize(linear, "batch").double()
    assert isinstance(norm, nn.BatchNorm1d)
    assert norm.running_mean is not None and norm.running_var is not None
    m = norm.momentum or 0.0
    shift = 5 * torch.randn(units, generator=generator, dtype=torch.float64)
    means, variances = [], []
    mean, variance = torch.zeros(units).double(), torch.ones(units).double()
    running = []
    for _ in range(batches):
        z = shift + 3 * torch.randn(rows, units, generator=generator, dtype=torch.float64)
        out = norm(z).detach()
        means.append(float(out.mean(0).abs().max()))
        ratio = z.var(0, correction=0) / (z.var(0, correction=0) + norm.eps)
        variances.append(float((out.var(0, correction=0) - ratio).abs().max()))
        mean = (1 - m) * mean + m * z.mean(0)
        variance = (1 - m) * variance + m * z.var(0, correction=1)
        running.append(float(norm.running_mean[0]))
    norm.eval()
    row = shift + torch.randn(1, units, generator=generator, dtype=torch.float64)
    alone = norm(row).detach()
    among = norm(torch.cat([row, z]))[:1].detach()
    expected = (row - mean) / (variance + norm.eps).sqrt()
    of_batch = (row - z.mean(0)) / (z.var(0, correction=0) + norm.eps).sqrt()
    size = float(shift.abs().max()) + 3
    rounding = 16 * EPS * rows * size
    training = norm.train()(torch.cat([row, z]))[:1].detach()
    checks = [
        Check(
            "largest mean of a unit over a batch",
            max(means),
            0.0,
            rounding,
            "rounding: 16 eps times the rows and the size of the inputs",
            wrong=Wrong("the mean before it", measured=float(z.mean(0).abs().max())),
        ),
        Check(
            "largest distance of a unit's variance from v / (v + ε)",
            max(variances),
            0.0,
            rounding,
            "rounding: 16 eps times the rows and the size of the inputs",
            wrong=Wrong("ε forgotten: exactly 1", measured=float((1 - ratio).max())),
        ),
        Check(
            "largest distance of one row's output from that by the running statistics",
            float((alone - expected).abs().max()),
            0.0,
            rounding * batches,
            "rounding: as above, for each batch of the running mean",
            wrong=Wrong(
                "by those of the last batch", measured=float((alone - of_batch).abs().max())
            ),
        ),
        Check(
            "change of that output when other rows join it",
            float((alone - among).abs().max()),
            0.0,
            rounding,
            "rounding",
            wrong=Wrong("in training mode", measured=float((training - alone).abs().max())),
        ),
    ]
    table = Table(["batch", "running mean of unit 1"], list(map(list, enumerate(running, 1))))
    return Finding(checks, table, {"running": running, "mean": float(shift[0]), "m": m})


def draw(paper: Figure, finding: Finding) -> None:
    """The running mean on its way."""
    axes = paper.subplots()
    running, mean, m = (finding.data[key] for key in ("running", "mean", "m"))
    t = np.arange(1, len(running) + 1)
    axes.plot(t, mean * (1 - (1 - m) ** t), color=INK, label="expected: μ (1 − 0.9ᵗ)")
    axes.plot(t, running, "o", color=MODEL, markersize=4, label="running mean")
    axes.axhline(mean, color=LINEAR, linestyle="--", linewidth=0.9, label="mean μ of the unit")
    axes.set(xlabel="batches seen", ylabel="running mean of one unit")
    axes.set_title("evaluation subtracts an average over batches, which starts at 0")
    axes.legend(loc="center right")


claim = Claim(
    id="batch-norm",
    title="Batch normalisation centres and scales each unit",
    statement=(
        "In training, every unit has mean 0 and variance v/(v + ε) over the batch (ε is often left "
        "out). In evaluation, running statistics replace those of the batch, so a row's output no "
        "longer depends on the other rows."
    ),
    formula=(
        r"\hat z = \gamma \frac{z - \mu_B}{\sqrt{\sigma_B^2 + \epsilon}} + \beta, \qquad "
        r"\mu \leftarrow (1 - m) \mu + m \mu_B"
    ),
    sources=("M161",),
    measure=measure,
    reference="Ioffe and Szegedy (2015), Batch normalization, algorithm 1. https://arxiv.org/abs/1502.03167",
    full={"rows": 256, "units": 64, "batches": 200},
    draw=draw,
)
