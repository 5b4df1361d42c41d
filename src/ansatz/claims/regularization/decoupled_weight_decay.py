"""Weight decay is the L2 penalty for plain gradient descent, and only there."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ansatz import optim
from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.style import FOURTH, INK, LINEAR, MODEL
from ansatz.training.penalties import L2


def measure(
    generator: torch.Generator, *, steps: int = 60, rate: float = 0.1, decay: float = 0.05
) -> Finding:
    """Norms without a gradient, and paths of least squares with decay and with a penalty."""
    start = torch.randn(6, generator=generator, dtype=torch.float64)
    x = torch.randn(40, 6, generator=generator, dtype=torch.float64)
    y = x @ torch.randn(6, generator=generator, dtype=torch.float64)

    def loss(network: nn.Module) -> Tensor:
        return 0.5 * (network(x).squeeze(-1) - y).square().mean()

    def nothing(network: nn.Module) -> Tensor:
        return 0.0 * network(x).sum()

    still = {
        "SGD": walk("sgd", nothing, start, steps, rate, weight_decay=decay),
        "AdamW": walk("adamw", nothing, start, steps, rate, weight_decay=decay),
        "Adam + penalty": walk("adam", nothing, start, steps, rate, penalty=L2(decay)),
    }
    norms = {name: path.norm(dim=1) / start.norm() for name, path in still.items()}
    predicted = (1 - rate * decay) ** steps
    same = apart(
        walk("sgd", loss, start, steps, rate, weight_decay=decay),
        walk("sgd", loss, start, steps, rate, penalty=L2(decay)),
    )
    adam = walk("adam", loss, start, steps, rate, penalty=L2(decay))
    differ = apart(walk("adamw", loss, start, steps, rate, weight_decay=decay), adam)
    rounding = 8 * EPS * steps * float(start.norm())
    checks = [
        Check(
            f"norm after {steps} steps of SGD without a gradient, over the first",
            float(norms["SGD"][-1]),
            predicted,
            4 * EPS * steps,
            "rounding: 4 eps per step",
            wrong=Wrong("the other sign of μ: growth", predicted=(1 + rate * decay) ** steps),
        ),
        Check(
            "the same with AdamW",
            float(norms["AdamW"][-1]),
            predicted,
            4 * EPS * steps,
            "rounding: 4 eps per step",
            wrong=Wrong(
                "the penalty in Adam's gradient", measured=float(norms["Adam + penalty"][-1])
            ),
        ),
        Check(
            "largest distance of SGD's path with decay from that with the penalty",
            same,
            0.0,
            rounding,
            "rounding: 8 eps per step; descent on a convex loss does not amplify it",
            wrong=Wrong("Adam with the penalty against AdamW", measured=differ),
        ),
    ]
    table = Table(
        ["step", *norms, "(1 - ημ)^t"],
        [
            [t, *(float(n[t]) for n in norms.values()), (1 - rate * decay) ** t]
            for t in range(0, steps + 1, max(1, steps // 10))
        ],
    )
    return Finding(checks, table, {"norms": norms, "factor": 1 - rate * decay})


def walk(
    name: str,
    loss: Callable[[nn.Module], Tensor],
    start: Tensor,
    steps: int,
    rate: float,
    *,
    penalty: Callable[[nn.Module], Tensor] | None = None,
    weight_decay: float = 0.0,
) -> Tensor:
    """The weights of a linear map after each step, ``(steps + 1, D)``."""
    network = nn.Linear(len(start), 1, bias=False, dtype=torch.float64)
    with torch.no_grad():
        network.weight.copy_(start[None])
    rule = optim.create(name, network.parameters(), lr=rate, weight_decay=weight_decay)
    path = [start]
    for _ in range(steps):
        rule.zero_grad()
        (loss(network) if penalty is None else loss(network) + penalty(network)).backward()
        rule.step()
        path.append(network.weight.detach()[0].clone())
    return torch.stack(path)


def apart(one: Tensor, other: Tensor) -> float:
    """The largest distance of two paths at the same time."""
    return float((one - other).norm(dim=1).max())


def draw(paper: Figure, finding: Finding) -> None:
    """Norms without a gradient, and the predicted geometric decrease."""
    axes = paper.subplots()
    norms, factor = finding.data["norms"], finding.data["factor"]
    t = torch.arange(len(norms["SGD"]))
    axes.plot(t, factor**t, color=INK, label="(1 − ημ)ᵗ")
    for (name, norm), colour, mark in zip(
        norms.items(), (MODEL, FOURTH, LINEAR), ("o", "x", "s"), strict=True
    ):
        axes.plot(t[::5], norm[::5], mark, color=colour, markersize=5, label=name)
    axes.set(xlabel="steps with a gradient of zero", ylabel="norm of the weights / first norm")
    axes.set_title("decay shrinks by a factor; a penalty inside Adam moves at full speed")
    axes.legend()


claim = Claim(
    id="decoupled-weight-decay",
    title="Weight decay is an L2 penalty for SGD, not for Adam",
    statement=(
        "Without a gradient, weight decay shrinks the norm by (1 − ημ) in every step, in SGD and "
        "in AdamW. With SGD it is the gradient of the penalty μ‖θ‖²/2, step by step; Adam divides "
        "that gradient by its own size and walks another path, which is why AdamW decouples it."
    ),
    formula=(
        r"\theta \leftarrow \theta - \eta(\nabla \ell + \mu \theta) = (1 - \eta \mu)\theta - "
        r"\eta \nabla \ell = \theta - \eta \nabla \big( \ell + \tfrac{\mu}{2} \|\theta\|^2 \big)"
    ),
    sources=("M150", "M151"),
    measure=measure,
    full={"steps": 200},
    reference="Loshchilov and Hutter (2019), Decoupled weight decay regularization. https://arxiv.org/abs/1711.05101",
    draw=draw,
)
