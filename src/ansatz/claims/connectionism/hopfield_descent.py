"""Asynchronous Hopfield dynamics descend the energy and come to rest; synchronous ones may not."""

import numpy as np
import torch

from ansatz.claims import Check, Claim, Erratum, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.connectionism import Hopfield
from ansatz.figures.style import INK, LINEAR, MODEL


def measure(generator: torch.Generator, *, neurons: int = 60, states: int = 60) -> Finding:
    """The energy after every single update, and how runs end."""
    memory = random_memory(generator, neurons)
    x = random_signs(generator, states, neurons)
    energies = path(memory, x, sweeps=4)
    rise = float(energies.diff(dim=0).max())
    flipped = path(memory, x, sweeps=4, sign=1.0)
    settled = memory.recall(x, 1000, generator=generator).settled
    lopsided = random_memory(generator, neurons)
    lopsided.weight = torch.randn(neurons, neurons, generator=generator, dtype=torch.float64)
    lopsided.weight.fill_diagonal_(0)
    free = lopsided.recall(x, 100, generator=generator).settled
    together = memory.recall(x, 1000, dynamics="synchronous")
    checks = [
        Check(
            "largest rise of the energy in one update",
            rise,
            0,
            4 * neurons * np.finfo(float).eps * float(energies.abs().max()),
            "rounding: 4 n eps times the energy",
            relation="<=",
            wrong=Wrong(
                "the energy with +½ xᵀWx",
                measured=float(flipped.diff(dim=0).max()),
                erratum="E14",
            ),
        ),
        Check(
            "share of asynchronous runs that come to rest",
            float(settled.double().mean()),
            1,
            0,
            "whole numbers",
            wrong=Wrong("W need not be symmetric", measured=float(free.double().mean())),
        ),
        Check(
            "share of synchronous runs that rest or alternate between two states",
            float((together.settled | together.cycling).double().mean()),
            1,
            0,
            "whole numbers",
            wrong=Wrong(
                "synchronous runs come to rest", measured=float(together.settled.double().mean())
            ),
        ),
    ]
    return Finding(checks, data={"energies": energies.numpy(), "printed": flipped.numpy()})


def random_signs(generator: torch.Generator, *shape: int) -> torch.Tensor:
    """Fair signs in float64."""
    return torch.randint(0, 2, shape, generator=generator).double() * 2 - 1


def random_memory(generator: torch.Generator, neurons: int) -> Hopfield:
    """More patterns than it can hold, and biases: a rugged energy."""
    bias = 0.1 * torch.randn(neurons, generator=generator, dtype=torch.float64)
    memory = Hopfield(neurons, bias=bias).double()
    return memory.store(random_signs(generator, neurons, neurons))


def path(memory: Hopfield, x: torch.Tensor, *, sweeps: int, sign: float = -1.0) -> torch.Tensor:
    """±½ xᵀWx + bᵀx after each update of one neuron to the sign of its field, (updates + 1, B)."""
    x, found = x.clone(), []
    for step in range(sweeps * memory.size + 1):
        found.append(sign * 0.5 * ((x @ memory.weight) * x).sum(1) + x @ memory.bias)
        i = step % memory.size
        x[:, i] = torch.where(x @ memory.weight[i] - memory.bias[i] >= 0, 1.0, -1.0)
    return torch.stack(found)


def draw(paper: Figure, finding: Finding) -> None:
    """The energy along some runs, as it is and as printed."""
    axes = paper.subplots()
    energies, printed = finding.data["energies"][:, :12], finding.data["printed"][:, :12]
    lines = axes.plot(energies, color=MODEL, lw=0.9)
    lines[0].set_label("−½ xᵀWx + bᵀx")
    lines = axes.plot(printed, color=LINEAR, lw=0.7, ls="--")
    lines[0].set_label("as printed, +½ xᵀWx + bᵀx")
    axes.axhline(0, color=INK, lw=0.5)
    axes.set(xlabel="updates of one neuron", ylabel="energy", xlim=(0, len(energies) - 1))
    axes.set_title("every update lowers the energy or leaves it; with the printed sign it climbs")
    axes.legend(loc="center right")


claim = Claim(
    id="hopfield-descent",
    title="Hopfield dynamics descend their energy",
    statement=(
        "With symmetric weights and no self-connection, updating one neuron at a time never raises "
        "the energy, so the dynamics come to rest; updating all neurons at once may alternate "
        "between two states for ever. A common slip prints the energy with +½, which the dynamics "
        "climb."
    ),
    formula=(
        r"H(x) = -\tfrac{1}{2} \sum_{i, j} w_{ij} x_i x_j + \sum_i b_i x_i, \qquad "
        r"x_i \leftarrow \mathrm{sgn}\Big(\sum_j w_{ij} x_j - b_i\Big)"
    ),
    sources=("M013", "M014", "E14"),
    measure=measure,
    reference="Hopfield (1982), Neural networks and physical systems with emergent collective "
    "computational abilities. https://doi.org/10.1073/pnas.79.8.2554",
    full={"neurons": 200, "states": 400},
    errata=(Erratum("E14", "H(x) = ½ xᵀWx + bᵀx", "H(x) = −½ xᵀWx + bᵀx"),),
    draw=draw,
)
