"""With few examples, symmetry that is built in beats augmentation and learned transforms."""

from typing import Any

import numpy as np
import torch

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.data.points.solids import NAMES, solids
from ansatz.networks import MLP, InvariantPoints, PointNet
from ansatz.symmetry import haar_orthogonal

KINDS = ("flat", "augmented", "T-Net", "invariant")


def measure(
    generator: torch.Generator,
    *,
    sizes: tuple[int, ...] = (50, 150),
    points: int = 32,
    steps: int = 100,
    test: int = 300,
) -> Finding:
    """Trains four networks on clouds of ten solids in any pose, for growing numbers of clouds."""
    seed = int(torch.randint(2**31, (), generator=generator))
    clouds, names = solids(max(sizes) + test, points, seed=seed)
    x = torch.tensor(clouds.values, dtype=torch.float32).reshape(-1, points, 3)
    y = torch.tensor([NAMES.index(name) for name in names])
    accuracy: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for size in sizes:
        for kind in KINDS:
            network = train(kind, x[:size], y[:size], steps, generator)
            with torch.no_grad():
                found = ask(kind, network.eval(), x[-test:]).argmax(1)
            accuracy[kind].append(float((found == y[-test:]).float().mean()))
    few = {kind: accuracy[kind][0] for kind in KINDS}
    noise = 2 * (0.25 * 2 / test) ** 0.5
    checks = [
        Check(
            f"gain of the invariant network over augmentation at n = {sizes[0]}",
            few["invariant"] - few["augmented"],
            noise,
            0.0,
            "two standard errors of a difference of shares: below them it would be luck",
            ">=",
            Wrong("no gain", measured=0.0),
        ),
        Check(
            f"gain of the invariant network over the T-Net at n = {sizes[0]}",
            few["invariant"] - few["T-Net"],
            noise,
            0.0,
            "two standard errors of a difference of shares: below them it would be luck",
            ">=",
            Wrong("no gain", measured=0.0),
        ),
    ]
    rows = [[kind, *accuracy[kind]] for kind in KINDS]
    return Finding(
        checks, Table(["network", *map(str, sizes)], rows), {"n": list(sizes), **accuracy}
    )


def train(
    kind: str, x: torch.Tensor, y: torch.Tensor, steps: int, generator: torch.Generator
) -> Any:
    """A network of a kind after some steps of Adam in batches of 50."""
    points, g = x.shape[1], generator
    network: Any
    if kind == "invariant":
        network = InvariantPoints(3, len(NAMES), widths=(64, 64), head=(64,), knots=24, generator=g)
    elif kind == "T-Net":
        network = PointNet(3, len(NAMES), width=8, dropout=0.0, generator=g)
    else:
        network = MLP(3 * points, len(NAMES), widths=(128, 128), generator=g)
    optimizer = torch.optim.Adam(network.parameters(), 3e-3)
    for _ in range(steps):
        rows = torch.randint(len(x), (50,), generator=generator)
        part = x[rows]
        if kind in ("augmented", "T-Net"):
            turn = haar_orthogonal(3, samples=len(part), generator=generator).float()
            part = part @ turn.mT
        loss = torch.nn.functional.cross_entropy(ask(kind, network, part), y[rows])
        cost = network.penalty() if kind == "T-Net" else None
        optimizer.zero_grad()
        (loss if cost is None else loss + cost).backward()
        optimizer.step()
    return network


def ask(kind: str, network: Any, x: torch.Tensor) -> torch.Tensor:
    """The raw numbers of a network for clouds ``(B, n, 3)``."""
    if kind in ("flat", "augmented"):
        flat: torch.Tensor = network(x.flatten(1))
        return flat
    found: torch.Tensor = network(x.flatten(0, 1), torch.arange(len(x) + 1) * x.shape[1])
    return found


def draw(paper: Figure, finding: Finding) -> None:
    """Accuracy against the number of training clouds."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import FOURTH, LINEAR, MODEL, THIRD

    axes, data = paper.subplots(), finding.data
    for kind, colour in zip(KINDS, (LINEAR, THIRD, FOURTH, MODEL), strict=True):
        axes.plot(data["n"], np.array(data[kind]), "o-", color=colour, label=kind)
    axes.set(xlabel="training clouds", ylabel="accuracy on new clouds", ylim=(0, 1))
    logarithmic(axes.xaxis)
    axes.legend()
    axes.set_title("what symmetry is worth: clouds of ten solids in any pose")


claim = Claim(
    id="value-of-symmetry",
    title="What symmetry is worth",
    statement=(
        "On clouds of points in any pose, a network on distances needs fewer examples than one "
        "that is trained on rotated copies, or that has a learned transform."
    ),
    formula=r"f(R X) = f(X)\ \forall R \in O(3)",
    sources=("M294",),
    measure=measure,
    reference="Villar et al. (2021), Scalars are universal. https://arxiv.org/abs/2106.06610",
    full={"sizes": (50, 200, 800), "points": 64, "steps": 1_000, "test": 1_000},
    draw=draw,
)
