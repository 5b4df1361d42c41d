"""Sign, sigmoid, tanh and ReLU are made of each other."""

import torch

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.style import INK, LINEAR, MODEL
from ansatz.layers import Step, activations


def measure(generator: torch.Generator, *, points: int = 4001) -> Finding:
    """The identities at points of all sizes, from the library's own activations."""
    size = 10 ** (6 * torch.rand(points, generator=generator, dtype=torch.float64) - 4)
    z = torch.cat([-size, torch.zeros(1, dtype=torch.float64), size])
    tanh, sigmoid, relu = (activations.create(name) for name in ("tanh", "sigmoid", "relu"))
    e = torch.exp(-2 * z.abs())
    quotient = z.sign() * (1 - e) / (1 + e)  # (e^z - e^-z) / (e^z + e^-z), without overflow
    printed = 2 * sigmoid(z) - 1
    checks = [
        Check(
            "largest |tanh z - (2σ(2z) - 1)|, in units of eps",
            float((tanh(z) - (2 * sigmoid(2 * z) - 1)).abs().max() / EPS),
            0.0,
            4.0,
            "σ is within one unit in the last place, doubled; tanh and the difference add one each",
            wrong=Wrong("2σ(z) - 1", measured=float((tanh(z) - printed).abs().max() / EPS)),
        ),
        Check(
            "largest |tanh z - (e^z - e^-z)/(e^z + e^-z)|, in units of eps",
            float((tanh(z) - quotient).abs().max() / EPS),
            0.0,
            4.0,
            "the exponential, two sums, a quotient and tanh: half a unit to one unit each",
        ),
        Check(
            "largest |max(z, 0) - (z + |z|)/2|",
            float((relu(z) - (z + z.abs()) / 2).abs().max()),
            0.0,
            0.0,
            "no rounding: z + |z| is 2z or 0",
            wrong=Wrong("(z - |z|)/2", measured=float((relu(z) - (z - z.abs()) / 2).abs().max())),
        ),
        Check(
            "largest | |z| - ReLU(z) - ReLU(-z) |",
            float((z.abs() - relu(z) - relu(-z)).abs().max()),
            0.0,
            0.0,
            "no rounding: one of the two is 0",
        ),
        Check(
            "points where z differs from ReLU(z) - ReLU(-z) or from sign(z) |z|",
            float(((relu(z) - relu(-z) != z) | (Step(low=-1)(z) * z.abs() != z)).sum()),
            0.0,
            0.0,
            "whole numbers",
        ),
    ]
    return Finding(checks)


def draw(paper: Figure, finding: Finding) -> None:
    """The hyperbolic tangent, and the sigmoid stretched to lie on it."""
    axes = paper.subplots()
    z = torch.linspace(-4, 4, 201, dtype=torch.float64)
    few = z[::10]
    axes.plot(z, torch.tanh(z), color=LINEAR, label="tanh z")
    axes.plot(few, 2 * torch.sigmoid(2 * few) - 1, "o", color=MODEL, label="2σ(2z) − 1")
    axes.plot(z, 2 * torch.sigmoid(z) - 1, "--", color=INK, lw=0.8, label="2σ(z) − 1: wrong")
    axes.set(xlabel="z", ylabel="activation")
    axes.set_title("tanh is a sigmoid, stretched to (−1, 1) and run at twice the speed")
    axes.legend(loc="upper left")


claim = Claim(
    id="activation-identities",
    title="Sign, sigmoid, tanh and ReLU are made of each other",
    statement=(
        "The hyperbolic tangent is the sigmoid at twice the argument, stretched to (-1, 1); ReLU "
        "is the mean of z and its absolute value; the absolute value is the sum of two ReLUs and z "
        "itself their difference."
    ),
    formula=(
        r"\tanh z = 2 \sigma(2z) - 1, \qquad \mathrm{ReLU}(z) = \tfrac12 (z + |z|), \qquad "
        r"|z| = \mathrm{ReLU}(z) + \mathrm{ReLU}(-z)"
    ),
    sources=("M025",),
    measure=measure,
    reference="Goodfellow, Bengio and Courville (2016), Deep Learning, section 6.3.",
    full={"points": 100_001},
    draw=draw,
)
