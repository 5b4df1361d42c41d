"""The multilayer perceptron: affine maps with activations between them, and none after the last."""

from itertools import pairwise
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.style import INK, LINEAR, MODEL
from ansatz.networks import MLP, summary

SHAPES: tuple[tuple[int, tuple[int, ...], int], ...] = (
    (3, (8,), 2),
    (10, (50,), 1),
    (1, (1,), 1),
    (5, (16, 8), 3),
    (4, (7, 7, 7, 7), 2),
)


def measure(
    generator: torch.Generator, *, rows: int = 50, hidden: int = 40, reported: bool = False
) -> Finding:
    """Counts against the formula; the network against sums over units; the cost of a last σ."""
    counts = [count(*shape, generator) for shape in SHAPES]
    network = MLP(3, 2, widths=(20,), activation="tanh", generator=generator).double()
    x = torch.randn(rows, 3, generator=generator, dtype=torch.float64)
    by_hand = unit_by_unit(network, x)
    size = float(network.output.weight.detach().abs().sum())
    grid, target, open_fit, closed_fit = fits(hidden, generator)
    below = float((target.clamp(max=0) ** 2).mean())  # what no output above 0 can do better
    checks = [
        Check(
            "largest |parameters - Σ m'(m + 1)| of five networks",
            max(abs(c["counted"] - c["formula"]) for c in counts),
            0,
            0,
            "whole numbers",
            wrong=Wrong(
                "without biases", measured=max(abs(c["counted"] - c["weights"]) for c in counts)
            ),
        ),
        Check(
            "largest |difference| to scikit-learn's count",
            max(abs(c["counted"] - c["peer"]) for c in counts),
            0,
            0,
            "whole numbers",
        ),
        Check(
            "largest |f(x) - Σ a σ(b·x + c)|, unit by unit",
            float((network(x).detach() - by_hand).abs().max()),
            0.0,
            20 * EPS * size,
            "rounding: sums over 20 units of size |a|",
        ),
        Check(
            "error of a sine learnt with an affine output, over the least of a function >= 0",
            float((open_fit - target).square().mean()) / below,
            1.0,
            -len(target) * EPS,
            f"less than 1, by more than the rounding of a mean of {len(target)}",
            relation="<=",
            wrong=Wrong(
                "σ = ReLU on the output layer as well",
                measured=float((closed_fit - target).square().mean()) / below,
                erratum="E44",
            ),
        ),
    ]
    if reported:  # counting the multiplications takes seconds to load
        checks.append(
            Check(
                "networks whose parameters, depth, width or capacity summary() reports wrongly",
                sum(misreported(*shape, generator) for shape in SHAPES),
                0,
                0,
                "whole numbers",
            )
        )
    head = ["inputs", "hidden", "outputs", "parameters", "formula"]
    table = [[*shape, c["counted"], c["formula"]] for shape, c in zip(SHAPES, counts, strict=True)]
    data = {"x": grid, "target": target, "affine": open_fit, "rectified": closed_fit}
    return Finding(checks, Table(head, table), data)


def count(
    inputs: int, widths: tuple[int, ...], outputs: int, generator: torch.Generator
) -> dict[str, int]:
    """Parameters of a network, by the formula with and without biases, and by scikit-learn."""
    network = MLP(inputs, outputs, widths=widths, generator=generator)
    pairs = list(pairwise((inputs, *widths, outputs)))
    return {
        "counted": sum(p.numel() for p in network.parameters()),
        "formula": sum(k * (m + 1) for m, k in pairs),
        "weights": sum(k * m for m, k in pairs),
        "peer": peer(inputs, widths, outputs),
    }


def misreported(
    inputs: int, widths: tuple[int, ...], outputs: int, generator: torch.Generator
) -> bool:
    """Whether the library's summary of a network errs."""
    found = summary(MLP(inputs, outputs, widths=widths, generator=generator), inputs)
    summary_numbers = (found.parameters, found.depth, found.width, found.capacity)
    formula = sum(k * (m + 1) for m, k in pairwise((inputs, *widths, outputs)))
    return summary_numbers != (formula, len(widths) + 1, max(widths), sum(widths))


def peer(inputs: int, widths: tuple[int, ...], outputs: int) -> int:
    """The count of scikit-learn's network, which has one output layer of the targets' shape."""
    from sklearn.neural_network import MLPRegressor

    y = np.zeros((2, outputs)) if outputs > 1 else np.zeros(2)
    model = MLPRegressor(hidden_layer_sizes=widths, random_state=0)
    model.partial_fit(np.zeros((2, inputs)), y)
    return sum(part.size for part in [*model.coefs_, *model.intercepts_])


def unit_by_unit(network: MLP, x: Tensor) -> Tensor:
    """The two-layer network as a sum over its hidden units."""
    first, last = cast(nn.Linear, network.hidden[0]), network.output
    total = last.bias.detach().expand(len(x), -1).clone()
    for a, b, c in zip(last.weight.T, first.weight, first.bias, strict=True):
        total += a.detach() * torch.tanh(x @ b.detach() + c.detach())[:, None]
    return total


def fits(hidden: int, generator: torch.Generator) -> tuple[Tensor, ...]:
    """A sine by least squares in the output layer; the same output rectified."""
    x = torch.linspace(-np.pi, np.pi, 101, dtype=torch.float64)[:, None]
    target = x.sin()
    network = MLP(1, 1, widths=(hidden,), activation="tanh", generator=generator).double()
    first = cast(nn.Linear, network.hidden[0])
    with torch.no_grad():
        first.bias.uniform_(-3, 3, generator=generator)
        features = torch.tanh(first(x))
        design = torch.cat([features, torch.ones_like(x)], 1)
        solution = torch.linalg.lstsq(design, target, rcond=1e-12, driver="gelsd").solution[:, 0]
        network.output.weight.copy_(solution[None, :-1])
        network.output.bias.copy_(solution[-1:])
        output = network(x)
    return x[:, 0], target[:, 0], output[:, 0], output[:, 0].relu()


def draw(paper: Figure, finding: Finding) -> None:
    """A sine with an affine output layer, and with a rectified one."""
    axes = paper.subplots()
    x = finding.data["x"]
    axes.plot(x[::4], finding.data["target"][::4], "o", color=MODEL, label="sine")
    axes.plot(x, finding.data["affine"], color=LINEAR, label="last map affine")
    axes.plot(x, finding.data["rectified"], "--", color=INK, lw=1, label="ReLU on the output too")
    axes.set(xlabel="x", ylabel="network")
    axes.set_title("an activation after the last layer forbids half of all values")
    axes.legend(loc="upper left")


claim = Claim(
    id="multilayer-perceptron",
    title="The multilayer perceptron, counted",
    statement=(
        "A network of affine maps with activations between them has k(m + 1) parameters for each "
        "map from m to k units, so m(d + 1) + k(m + 1) with one hidden layer. Its last map is "
        "affine: a common slip puts the activation on the output layer as well, so that a "
        "rectified network has no negative value."
    ),
    formula=(
        r"f = A_L \circ \sigma \circ A_{L-1} \circ \dots \circ \sigma \circ A_1, \qquad "
        r"\#\theta = \sum_{\ell=1}^{L} m_\ell (m_{\ell-1} + 1), \qquad "
        r"f(x) = \sum_j a_j \sigma(b_j \cdot x + c_j) + a_0"
    ),
    sources=("M036", "M039", "M040", "E44"),
    measure=measure,
    reference="Goodfellow, Bengio and Courville (2016), Deep Learning, chapter 6.",
    full={"rows": 1000, "hidden": 200, "reported": True},
    errata=(Erratum("E44", "x^ℓ = σ(W x^{ℓ-1} + b) up to the output", "the last map is affine"),),
    draw=draw,
)
