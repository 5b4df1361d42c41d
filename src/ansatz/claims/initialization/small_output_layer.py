"""A small last layer makes the first predictions those of the constant model."""

import math

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.data import Batch
from ansatz.likelihoods import Categorical
from ansatz.networks import MLP
from ansatz.training import Supervised

CLASSES = 10
SCALES = (0.05, 0.1, 0.2, 0.5, 1.0)
HEADLINE = 1


def measure(
    generator: torch.Generator, *, networks: int = 30, points: int = 6, width: int = 64
) -> Finding:
    """The loss before training, for last layers of several sizes."""
    x = torch.randn(points, 8, dtype=torch.float64, generator=generator)
    # Every point with every class, so that no last layer can be lucky.
    rows = Batch.of(x.repeat_interleave(CLASSES, 0), torch.arange(CLASSES).repeat(points))
    found = [first_losses(scale, rows, networks, width, generator) for scale in SCALES]
    excess = [float(loss.mean()) - math.log(CLASSES) for loss, _ in found]
    errors = [float(loss.std() / networks**0.5) for loss, _ in found]
    power = [float(square.mean()) for _, square in found]  # s²: variance of a logit
    shrink = 1 - 1 / CLASSES
    s2 = power[HEADLINE]
    y = torch.tensor([0] * 5 + [1] * 3 + [2] * 2)
    probability, moved = constant_start(y, generator)
    shares = torch.bincount(y).double() / len(y)
    rounding = 16 * EPS
    checks = [
        Check(
            f"loss over log K with the factor {SCALES[HEADLINE]}",
            excess[HEADLINE],
            s2 * shrink / 2,
            4 * errors[HEADLINE] + s2**2 * shrink / (2 * CLASSES),
            f"4 standard errors over {networks} networks, and twice the next term s⁴(1 - 1/K)/(4K)",
            wrong=Wrong("a last layer as large as the others", measured=excess[-1]),
        ),
        Check(
            "largest gap of the first predictions to the shares of the classes, last layer 0",
            float((probability - shares).abs().max()),
            0.0,
            rounding,
            "rounding of logarithms and of the softmax",
            wrong=Wrong("uniform classes", measured=float((1 / 3 - shares).abs().max())),
        ),
        Check(
            "largest move of a hidden weight in two steps from a last layer 0",
            moved["last layer 0"],
            0.0,
            -rounding,
            "more than rounding: the second step has a gradient",
            relation=">=",
            wrong=Wrong("all layers 0", measured=moved["all layers 0"]),
        ),
    ]
    table = Table(
        ["factor", "variance of a logit", "loss - log K", "s²(1 - 1/K)/2"],
        [[c, s, e, s * shrink / 2] for c, s, e in zip(SCALES, power, excess, strict=True)],
    )
    return Finding(checks, table, {"power": power, "excess": excess, "errors": errors})


def first_losses(
    scale: float, rows: Batch, networks: int, width: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """The mean loss of each untrained network, and the variance of its logits given the rest."""
    objective, losses, squares = Supervised(Categorical()), [], []
    with torch.no_grad():
        for _ in range(networks):
            network = MLP(
                8,
                CLASSES,
                widths=(width,),
                activation="relu",
                output_scale=scale,
                generator=generator,
            ).double()
            total, count = objective(network, rows)
            losses.append(total / count)
            hidden = network.activation(network.hidden[0](rows.inputs[0]))
            squares.append(scale**2 * 2 / width * (hidden**2).sum(1).mean())
    return torch.stack(losses), torch.stack(squares)


def constant_start(y: Tensor, generator: torch.Generator) -> tuple[Tensor, dict[str, float]]:
    """First probabilities from a last layer 0, and how far two steps move the hidden weights."""
    likelihood = Categorical()
    likelihood.classes = 3
    shift, factor = likelihood.start(y, torch.ones(len(y), dtype=torch.float64))
    objective = Supervised(likelihood, shift, factor)
    x = torch.randn(len(y), 4, dtype=torch.float64, generator=generator)
    batch, moved = Batch.of(x, y), {}
    for name, init in (("last layer 0", "he_normal"), ("all layers 0", "zeros")):
        network = MLP(
            4, 3, widths=(8,), init=init, output_scale=0.0, activation="relu", generator=generator
        ).double()
        if name == "last layer 0":
            with torch.no_grad():
                raw = objective.raw(network, batch.inputs)
            probability = likelihood.distribution(raw).probs
        before = network.get_parameter("hidden.0.weight").detach().clone()
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            total, count = objective(network, batch)
            (total / count).backward()
            optimizer.step()
        after = network.get_parameter("hidden.0.weight").detach()
        moved[name] = float((after - before).abs().max())
    return probability, moved


def draw(paper: Figure, finding: Finding) -> None:
    """The excess of the first loss against the variance of the logits."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, MODEL

    data, axes = finding.data, paper.subplots()
    s2 = torch.logspace(math.log10(data["power"][0] / 2), math.log10(data["power"][-1] * 2), 50)
    axes.plot(s2, s2 * (1 - 1 / CLASSES) / 2, color=INK, label="s² (1 - 1/K) / 2")
    error = 2 * torch.tensor(data["errors"])
    axes.errorbar(
        data["power"], data["excess"], error, fmt="o", color=MODEL, label="untrained networks"
    )
    for scale, x, y in zip(SCALES, data["power"], data["excess"], strict=True):
        axes.annotate(f"factor {scale:g}", (x, y), xytext=(8, -9), textcoords="offset points")
    axes.set(xlabel="variance s² of a logit", ylabel="first loss - log K")
    axes.set_title(f"a small last layer starts at the prior's loss (K = {CLASSES} classes)")
    axes.legend()
    logarithmic(axes.xaxis, axes.yaxis)


claim = Claim(
    id="small-output-layer",
    title="With a small last layer the first predictions are the prior",
    statement=(
        "When the last layer starts with small weights, so that the logits have a small variance "
        "s², the first loss is that of the constant model plus s²(1 - 1/K)/2. With a last layer of "
        "zeros and the likelihood's own shift, the first predictions are exactly the shares of "
        "the classes; the hidden layers, which are not zero, start to learn at the second step."
    ),
    formula=(
        r"\mathrm{E}\left[\log \sum_k e^{z_k} - z_y\right] = \log K + "
        r"\frac{s^2}{2}\left(1 - \frac1K\right) + O(s^4), \qquad z_k \sim N(0, s^2)"
    ),
    sources=("M149",),
    measure=measure,
    reference="Goodfellow, Bengio and Courville (2016), Deep Learning, section 8.4.",
    full={"networks": 2000},
    draw=draw,
)
