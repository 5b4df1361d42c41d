"""In a trained network the features move, and the kernel they make with them."""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.func import functional_call

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.figures.decades import logarithmic
from ansatz.figures.style import INK, LINEAR, MODEL
from ansatz.networks import MLP, RandomFeatureNetwork


def measure(
    generator: torch.Generator,
    *,
    rows: int = 40,
    width: int = 30,
    rates: tuple[float, ...] = (0.04, 0.02, 0.01, 0.005),
) -> Finding:
    """One step of gradient descent at several rates: movement of the features' kernel."""
    x = torch.randn(rows, 3, generator=generator, dtype=torch.float64)
    y = (x[:, :1] * x[:, 1:2]).tanh()
    network = MLP(
        3, 1, widths=(width,), activation="tanh", output_scale=1.0, generator=generator
    ).double()
    frozen = RandomFeatureNetwork(3, 1, features=width, kind="relu", generator=generator).double()
    start, gradient = hidden(network, x), gradients(network, x, y)
    kernel = start @ start.T / width
    direction = first_order(network, x, gradient)
    speed = (direction @ start.T + start @ direction.T) / width
    moved = [kernel_after(network, x, gradient, rate) - kernel for rate in rates]
    still = frozen_movement(frozen, x, y, rates[0])
    size = [float(m.norm()) for m in moved]
    linear = [rate * float(speed.norm()) for rate in rates]
    # The kernel is smooth in the rate: what halving the rate leaves of the second order.
    second = [float((m - rate * speed).norm()) for m, rate in zip(moved, rates, strict=True)]
    falls = [a / b for a, b in pairwise(second)]
    checks = [
        Check(
            f"movement of the features' kernel in a step of rate {rates[-1]}",
            size[-1],
            linear[-1],
            second[0] * (rates[-1] / rates[0]) ** 2 * 2,
            "the second-order term, taken from the largest rate and scaled by the rate squared, "
            "twice for its own change",
            wrong=Wrong("features that do not move", predicted=0.0),
        ),
        Check(
            "factor by which the rest falls when the rate is halved",
            falls[-1],
            4.0,
            max(abs(fall - 4) for fall in falls[:-1]),
            "the third-order term falls with the rate: no more than is seen at larger rates",
            wrong=Wrong("a rest of first order", predicted=2.0),
        ),
        Check(
            "movement of the kernel where the features are frozen",
            still,
            0.0,
            0.0,
            "exact: nothing changes them",
            wrong=Wrong("where they are trained", measured=size[0]),
        ),
    ]
    table = [[r, s, t, u] for r, s, t, u in zip(rates, size, linear, second, strict=True)]
    return Finding(checks, Table(["rate", "movement", "first order", "rest"], table))


def hidden(network: MLP, x: Tensor) -> Tensor:
    """The features φ(x; b, c) of the rows, (rows, width)."""
    with torch.no_grad():
        return network.activation(network.hidden[0](x))


def gradients(network: nn.Module, x: Tensor, y: Tensor) -> dict[str, Tensor]:
    """Of the mean squared error in the trained parameters."""
    named = {name: p for name, p in network.named_parameters() if p.requires_grad}
    found = torch.autograd.grad((network(x) - y).square().mean(), list(named.values()))
    return dict(zip(named, found, strict=True))


def first_order(network: MLP, x: Tensor, gradient: dict[str, Tensor]) -> Tensor:
    """The derivative of the features along minus the gradient: φ'(z) (-∇W x - ∇b)."""
    slope = 1 - hidden(network, x) ** 2  # of tanh
    return -slope * (x @ gradient["hidden.0.weight"].T + gradient["hidden.0.bias"])


def kernel_after(network: MLP, x: Tensor, gradient: dict[str, Tensor], rate: float) -> Tensor:
    """The kernel of the features after a step of gradient descent; the network stays."""
    layer = network.hidden[0]
    step = {
        name: p.detach() - rate * gradient[f"hidden.0.{name}"]
        for name, p in layer.named_parameters()
    }
    found: Tensor = network.activation(functional_call(layer, step, (x,)))
    return found @ found.T / found.shape[1]


def frozen_movement(network: RandomFeatureNetwork, x: Tensor, y: Tensor, rate: float) -> float:
    """The movement of the features of a random feature model in a step."""
    before = network.features(x)
    slopes = gradients(network, x, y)
    with torch.no_grad():
        for name, slope in slopes.items():
            network.get_parameter(name).sub_(rate * slope)
    return float((network.features(x) - before).norm())


def draw(paper: Figure, finding: Finding) -> None:
    """Movement of the kernel against the rate."""
    assert finding.table is not None
    axes = paper.subplots()
    rate, size, linear, rest = zip(*finding.table.rows, strict=True)
    axes.plot(rate, size, "o", color=MODEL, label="movement of the kernel")
    axes.plot(rate, linear, color=LINEAR, label="first order in the rate")
    axes.plot(rate, rest, "s", color=INK, label="the rest")
    axes.plot(
        rate,
        [rest[0] * (r / rate[0]) ** 2 for r in rate],
        "--",
        color=INK,
        lw=0.8,
        label="second order",
    )
    axes.set(xlabel="learning rate of one step", ylabel="Frobenius norm")
    logarithmic(axes.xaxis, axes.yaxis)
    axes.set_title("training moves the features, and so the kernel; frozen ones would not")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="feature-learning",
    title="Trained features move",
    statement=(
        "Where the inner weights are trained, a step of gradient descent moves the features and "
        "the kernel that they make, to first order by the derivative of the features along the "
        "gradient; the features of a random feature model do not move."
    ),
    formula=(
        r"k_{t+1}(x, x') - k_t(x, x') = \eta \, \frac{d}{d\eta} \frac1m \varphi(x; \theta_t - "
        r"\eta \nabla \ell)^\top \varphi(x'; \theta_t - \eta \nabla \ell) \Big|_{\eta = 0} + "
        r"O(\eta^2)"
    ),
    sources=("M038",),
    measure=measure,
    reference="Chizat, Oyallon and Bach (2019), On lazy training. https://arxiv.org/abs/1812.07956",
    full={"rows": 200, "width": 200},
    draw=draw,
)
