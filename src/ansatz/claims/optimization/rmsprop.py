"""RMSProp is Adam without momentum and without the correction of the start."""

import torch

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.claims.optimization.adagrad import moves
from ansatz.optim import momentum


def measure(
    generator: torch.Generator, *, rate: float = 0.01, beta: float = 0.9, steps: int = 40
) -> Finding:
    """Paths of RMSProp and of Adam with β₁ = 0; then both once the gradient is 0."""
    gradients = torch.randn(steps, 5, dtype=torch.float64, generator=generator)
    rms = moves(lambda p: torch.optim.RMSprop(p, lr=rate, alpha=beta, eps=0), gradients)
    adam = moves(lambda p: torch.optim.Adam(p, lr=rate, betas=(0.0, beta), eps=0), gradients)
    t = torch.arange(1, steps + 1, dtype=torch.float64).unsqueeze(1)
    uncorrected = adam / (1 - beta**t).sqrt()  # Adam divides v by 1 - βᵗ, so its step grows
    quiet = torch.cat([torch.ones(10, 1), torch.zeros(30, 1)]).double()
    coasting = {
        "RMSProp": moves(lambda p: torch.optim.RMSprop(p, lr=rate, alpha=beta), quiet),
        "momentum": moves(lambda p: momentum(p, rate * (1 - beta), momentum=beta), quiet),
        "Adam": moves(lambda p: torch.optim.Adam(p, lr=rate, betas=(0.9, beta)), quiet),
    }
    after = {name: float(path[10:].sum().abs()) / rate for name, path in coasting.items()}
    rolled = sum(beta**k for k in range(1, 31)) * (1 - beta**10)
    size = float(rms.cumsum(0).abs().max())
    m, printed = torch.zeros(5, dtype=torch.float64), []
    for g in gradients:  # the formula under the heading "SGD without momentum"
        m = beta * m + (1 - beta) * g
        printed.append(-rate * m)
    formula = torch.stack(printed)
    rolling = moves(lambda p: momentum(p, rate * (1 - beta), momentum=beta), gradients)
    plain = moves(lambda p: torch.optim.SGD(p, lr=rate), gradients)
    checks = [
        Check(
            "largest gap between RMSProp and Adam (β₁ = 0, no correction of the start)",
            float((rms - uncorrected).abs().max()),
            0.0,
            16 * EPS * (size + 1 / (1 - beta) ** 0.5),
            "rounding of positions and of the factor √(1 - βᵗ)",
            wrong=Wrong("with the correction", measured=float((rms - adam).abs().max())),
        ),
        Check(
            "way after the gradient has vanished, in units of the rate",
            after["RMSProp"],
            0.0,
            0.0,
            "exactly 0: a zero gradient over a positive root",
            wrong=Wrong(
                "RMSProp had momentum, as printed", predicted=after["momentum"], erratum="E62"
            ),
        ),
        Check(
            "way of momentum after the gradient has vanished, in the same units",
            after["momentum"],
            rolled,
            64 * EPS / rate,
            "rounding of positions",
            wrong=Wrong("momentum had none", predicted=0.0),
        ),
        Check(
            "largest gap between the path of m ← βm + (1 - β)g and momentum's",
            float((formula - rolling).abs().max()),
            0.0,
            16 * EPS * float(formula.cumsum(0).abs().max()),
            "rounding of positions",
            wrong=Wrong(
                "SGD without momentum, as its heading has it",
                measured=float((formula - plain).abs().max()),
                erratum="E62",
            ),
        ),
    ]
    table = Table(["rule", "way without gradient / rate"], [[k, v] for k, v in after.items()])
    return Finding(checks, table, {"coasting": coasting, "rate": rate})


def draw(paper: Figure, finding: Finding) -> None:
    """Steps before and after the gradient is switched off."""
    from ansatz.figures.style import INK, LINEAR, MODEL, THIRD

    axes = paper.subplots()
    rate = finding.data["rate"]
    for (name, path), colour, mark in zip(
        finding.data["coasting"].items(), (MODEL, LINEAR, THIRD), "osD", strict=True
    ):
        k = torch.arange(1, len(path) + 1)
        axes.plot(k, -path[:, 0] / rate, f"{mark}-", lw=0.7, color=colour, label=name)
    axes.axvline(10.5, color=INK, lw=0.8, ls="--")
    axes.text(11, axes.get_ylim()[1] * 0.9, "the gradient is switched off")
    axes.set(xlabel="step", ylabel="length of the step / rate")
    axes.set_title("without a gradient RMSProp stops: it has no momentum")
    axes.legend(loc="center right")


claim = Claim(
    id="rmsprop",
    title="RMSProp averages squared gradients; it has no momentum",
    statement=(
        "RMSProp divides the gradient by the root of an exponential average of its squares: it is "
        "Adam with β₁ = 0 and without the correction of the start. It has no momentum, though Adam "
        "is often said to take its momentum from RMSProp: when the gradient vanishes RMSProp "
        "stops, where momentum rolls on."
    ),
    formula=(
        r"v \leftarrow \beta v + (1 - \beta) g^2, \qquad "
        r"\theta \leftarrow \theta - \alpha \frac{g}{\sqrt v}"
    ),
    sources=("M134", "E62"),
    measure=measure,
    reference="Tieleman and Hinton (2012), Lecture 6.5 of Neural networks for machine learning.",
    full={"steps": 1000},
    errata=(
        Erratum(
            "E62",
            "'momentum of RMSProp'; m = βm + (1 - β)g called 'SGD without momentum'",
            "RMSProp averages squared gradients; that formula is momentum",
        ),
    ),
    draw=draw,
)
