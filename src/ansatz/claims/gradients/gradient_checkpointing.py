"""Checkpoints store fewer activations and compute the rest again; shards add their gradients."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.data import Batch
from ansatz.figures.style import INK, LINEAR, MODEL
from ansatz.layers import Dense, affine
from ansatz.likelihoods import MSE
from ansatz.training import Supervised


class Run(NamedTuple):
    """One forward and backward pass."""

    gradients: list[Tensor]
    saved: int  # activations alive at once, at most
    calls: int  # of a layer


def measure(
    generator: torch.Generator,
    *,
    depth: int = 16,
    width: int = 8,
    rows: int = 30,
    peer: bool = False,
) -> Finding:
    """A deep network in segments of every length: gradients, saved tensors, layers computed."""
    layers = nn.ModuleList(
        Dense(width, width, activation="tanh", generator=generator) for _ in range(depth)
    ).double()
    x = torch.randn(rows, width, generator=generator, dtype=torch.float64)
    plain = plain_run(layers, x)
    lengths = [k for k in range(1, depth + 1) if depth % k == 0]
    runs = {k: run(layers, x, k) for k in lengths}
    # torch's own takes seconds to load.
    others = [torchs_run(layers, x, best) for best in lengths] if peer else []
    gap = max(
        float((a - b).abs().max())
        for found in [each.gradients for each in runs.values()] + others
        for a, b in zip(found, plain.gradients, strict=True)
    )
    best = min(lengths, key=lambda k: runs[k].saved)
    whole, pieces, means = shards(width, rows, generator)
    size = float(whole.abs().max())
    checks = [
        Check(
            "largest change of the gradients by checkpoints",
            gap,
            0.0,
            0.0,
            "exact: the same operations on the same numbers",
            wrong=Wrong("a segment left out", measured=float(plain.gradients[0].abs().max())),
        ),
        Check(
            f"activations alive with segments of {best} layers",
            runs[best].saved,
            2 * depth**0.5,
            0.0,
            "2√L: a checkpoint per segment, and one segment computed again",
            relation="<=",
            wrong=Wrong("as many as without checkpoints", measured=plain.saved),
        ),
        Check(
            "largest |activations alive - (L/k + k)| over all segment lengths k",
            max(abs(runs[k].saved - (depth // k + k)) for k in lengths),
            0,
            0,
            "whole numbers",
            wrong=Wrong("L/k", measured=max(abs(runs[k].saved - depth // k) for k in lengths)),
        ),
        Check(
            "layers computed with checkpoints",
            runs[best].calls,
            2 * depth,
            0,
            "whole numbers: each once more on the way back",
            wrong=Wrong("as without", predicted=depth),
        ),
        Check(
            "gradient of all rows against the shards' sums over their counts, difference",
            float((whole - pieces).abs().max()),
            0.0,
            rows * torch.finfo(torch.float64).eps * size,
            "rounding: a sum over the rows in another order",
            wrong=Wrong(
                "the mean of the shards' means", measured=float((whole - means).abs().max())
            ),
        ),
    ]
    rows_ = [[k, runs[k].saved, depth // k + k, runs[k].calls] for k in lengths]
    table = Table(["segment", "activations alive", "L/k + k", "layers computed"], rows_)
    return Finding(checks, table, {"plain": plain.saved, "depth": depth})


def plain_run(layers: nn.ModuleList, x: Tensor) -> Run:
    """Stores everything: plain autograd."""
    kept = set[int]()
    with saved_tensors_hooks(_noting(kept, x.numel()), _given):
        h = x
        for layer in layers:
            h = layer(h)
        loss = h.square().mean()
    gradients = torch.autograd.grad(loss, list(layers.parameters()))
    return Run(list(gradients), len(kept), len(layers))


def run(layers: nn.ModuleList, x: Tensor, segment: int) -> Run:
    """Stores the input of each segment only, and computes the segments again, last one first."""
    parts = [layers[i : i + segment] for i in range(0, len(layers), segment)]
    checkpoints, h, calls, most = [], x, 0, 0
    with torch.no_grad():
        for part in parts:
            checkpoints.append(h)
            for layer in part:
                h, calls = layer(h), calls + 1
    end = h.detach().requires_grad_()
    (delta,) = torch.autograd.grad(end.square().mean(), end)
    gradients: list[Tensor] = []
    while checkpoints:
        part, start = parts[len(checkpoints) - 1], checkpoints[-1].requires_grad_()
        kept = {each.data_ptr() for each in checkpoints}
        with saved_tensors_hooks(_noting(kept, x.numel()), _given):
            h = start
            for layer in part:
                h, calls = layer(h), calls + 1
        most = max(most, len(kept))
        found = torch.autograd.grad(h, [start, *part.parameters()], delta)
        delta, gradients = found[0], [*found[1:], *gradients]
        checkpoints.pop()
    return Run(gradients, most, calls)


def _noting(kept: set[int], numel: int) -> Callable[[Tensor], Tensor]:
    """Notes where each activation that is saved for the way back lies; weights have other sizes."""

    def pack(tensor: Tensor) -> Tensor:
        if tensor.numel() == numel:
            kept.add(tensor.data_ptr())
        return tensor

    return pack


def _given(tensor: Tensor) -> Tensor:
    return tensor


def torchs_run(layers: nn.ModuleList, x: Tensor, segment: int) -> list[Tensor]:
    """The gradients by torch.utils.checkpoint."""
    from torch.utils.checkpoint import checkpoint

    h = x.clone().requires_grad_()
    for i in range(0, len(layers), segment):
        part = nn.Sequential(*layers[i : i + segment])
        h = checkpoint(part, h, use_reentrant=False, preserve_rng_state=False)
    return list(torch.autograd.grad(h.square().mean(), list(layers.parameters())))


def shards(width: int, rows: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """The gradient of all rows; of unequal shards, by sums over counts and by means of means."""
    network = affine(width, 1, init="normal", generator=generator).double()
    x, y = (torch.randn(rows, *s, generator=generator, dtype=torch.float64) for s in ((width,), ()))
    objective = Supervised(MSE())
    found = []
    for part in (slice(0, rows), slice(0, 3), slice(3, rows // 2), slice(rows // 2, rows)):
        total, count = objective(network, Batch.of(x[part], y[part]))
        found.append((torch.autograd.grad(total, network.weight)[0], float(count)))
    (whole, all_rows), *pieces = found
    summed = torch.stack([slope for slope, _ in pieces]).sum(0) / sum(n for _, n in pieces)
    means = torch.stack([slope / n for slope, n in pieces]).mean(0)
    return whole / all_rows, summed, means


def draw(paper: Figure, finding: Finding) -> None:
    """Activations alive against the length of a segment."""
    assert finding.table is not None
    axes = paper.subplots()
    k, alive, _, _ = np.array(finding.table.rows).T
    depth, line = finding.data["depth"], np.linspace(1, float(k.max()), 100)
    axes.plot(k, alive, "o", color=MODEL, label="counted")
    axes.plot(line, depth / line + line, color=LINEAR, label="L/k + k")
    axes.axhline(finding.data["plain"], color=INK, ls="--", lw=0.8, label="without checkpoints")
    axes.plot([depth**0.5], [2 * depth**0.5], "x", color=INK, markersize=8, label="2√L at k = √L")
    axes.set(
        xlabel=f"layers k per segment, of L = {depth}", ylabel="activations alive", ylim=(0, None)
    )
    axes.set_title("checkpoints: the same gradients from 2√L activations, each layer run twice")
    axes.legend(loc="lower right")


claim = Claim(
    id="gradient-checkpointing",
    title="Checkpoints trade memory for work",
    statement=(
        "A network of L layers can store only the input of every segment of k layers and compute "
        "each segment again on the way back. It then has the same gradients bit for bit from L/k + "
        "k activations instead of L + 1, at the price of a second forward pass. Likewise rows may "
        "be divided among processes: sums of gradients over counts add up, means of unequal shards "
        "do not."
    ),
    formula=(
        r"\#\text{activations} = \tfrac Lk + k \ge 2 \sqrt L, \qquad "
        r"\nabla \ell = \frac{\sum_p \sum_{i \in S_p} \nabla \ell_i}{\sum_p |S_p|}"
    ),
    sources=("M121",),
    measure=measure,
    reference="Chen et al. (2016), Training deep nets with sublinear memory cost. "
    "https://arxiv.org/abs/1604.06174",
    full={"depth": 144, "width": 16, "rows": 100, "peer": True},
    draw=draw,
)
