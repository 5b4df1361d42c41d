"""Equivariance in matrix form: one side needs the transposed permutation."""

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Erratum, Finding, Wrong
from ansatz.claims.claim import Figure


def measure(generator: torch.Generator, *, nodes: int = 6, trials: int = 40) -> Finding:
    """A map on sets and a map on graphs under random permutations P."""
    X = torch.randn(nodes, 3, generator=generator, dtype=torch.float64)
    A = torch.rand(nodes, nodes, generator=generator, dtype=torch.float64)
    W, V = torch.randn(2, 3, 3, generator=generator, dtype=torch.float64)
    errors: dict[str, list[float]] = {name: [] for name in ("set", "graph", "printed", "swap")}
    invariant = []
    for trial in range(trials):
        P = torch.eye(nodes, dtype=torch.float64)[order(nodes, trial, generator)]
        Y, B = P @ X, P @ A @ P.T
        errors["set"].append(gap(P.T @ on_set(Y, W, V), on_set(X, W, V)))
        errors["graph"].append(gap(P.T @ on_graph(Y, B, W), on_graph(X, A, W)))
        printed = gap(P @ on_set(Y, W, V), on_set(X, W, V))
        swap = bool((P @ P == torch.eye(nodes, dtype=torch.float64)).all())
        errors["swap" if swap else "printed"].append(printed)
        invariant.append(gap(Y.sum(0), X.sum(0)))
    rounding = 64 * nodes * 2.0**-52
    because = "rounding: 64 n eps for sums over the elements"
    checks = [
        Check(
            "largest |Pᵀf(PX) - f(X)| on sets",
            max(errors["set"]),
            0.0,
            rounding,
            because,
            wrong=Wrong("P f(PX)", measured=max(errors["printed"]), erratum="E31"),
        ),
        Check(
            "largest |Pᵀf(PX, PAPᵀ) - f(X, A)| on graphs",
            max(errors["graph"]),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "A left as it is",
                measured=gap(P.T @ on_graph(P @ X, A, W), on_graph(X, A, W)),
            ),
        ),
        Check(
            "largest |P f(PX) - f(X)| for exchanges, P² = I",
            max(errors["swap"]),
            0.0,
            rounding,
            f"{because}: here the printed form is right by luck",
            wrong=Wrong("the same for all P", measured=max(errors["printed"])),
        ),
        Check("largest change of 1ᵀX", max(invariant), 0.0, rounding, because),
    ]
    return Finding(checks, data=errors)


def order(nodes: int, trial: int, generator: torch.Generator) -> Tensor:
    """Every second one a mere exchange of the first two elements; the others have P² ≠ I."""
    places = torch.arange(nodes)
    if trial % 2:
        return torch.cat([places[[1, 0]], places[2:]])
    while True:
        found = torch.randperm(nodes, generator=generator)
        if not (found[found] == places).all():
            return found


def on_set(X: Tensor, W: Tensor, V: Tensor) -> Tensor:
    """Each element by itself, and all by their mean."""
    return torch.tanh(X @ W + X.mean(0) @ V)


def on_graph(X: Tensor, A: Tensor, W: Tensor) -> Tensor:
    """One step of message passing."""
    return torch.tanh(A @ X @ W)


def gap(one: Tensor, other: Tensor) -> float:
    """The largest difference."""
    return float((one - other).abs().max())


def draw(paper: Figure, finding: Finding) -> None:
    """Errors of both forms over random permutations."""
    from ansatz.figures.style import FOURTH, LINEAR, MODEL

    axes, data = paper.subplots(), finding.data
    rows = (
        ("Pᵀf(PX), all P", "set", MODEL, "o"),
        ("P f(PX), exchanges", "swap", FOURTH, "s"),
        ("P f(PX), other P (printed)", "printed", LINEAR, "x"),
    )
    for place, (name, key, colour, mark) in enumerate(rows):
        values = data[key]
        axes.plot(values, [place] * len(values), mark, color=colour, ms=5)
        axes.annotate(name, (0, place), (0, 8), textcoords="offset points", fontsize=8.5)
    axes.set(xlabel="largest |error| over the elements", yticks=[], ylim=(-0.5, 2.7))
    axes.set_title("back-permuting needs the transpose; only exchanges forgive it")
    axes.spines["left"].set_visible(False)


claim = Claim(
    id="permutation-equivariance",
    title="Equivariance under permutations in matrix form",
    statement=(
        "A map on sets or graphs is equivariant if f(X) = Pᵀf(PX), or Pᵀf(PX, PAPᵀ). A common slip "
        "is P f(PX), which holds only where P is its own inverse."
    ),
    formula=r"f(PX) = P f(X) \iff f(X) = P^\top f(PX), \qquad f(PX, PAP^\top) = P f(X, A)",
    sources=("E31", "M277", "M280", "M297"),
    measure=measure,
    reference="Zaheer et al. (2017), Deep sets. https://arxiv.org/abs/1703.06114",
    full={"nodes": 30, "trials": 400},
    errata=(Erratum("E31", "f(X) = P f(PX)", "f(X) = Pᵀ f(PX)"),),
    draw=draw,
)
