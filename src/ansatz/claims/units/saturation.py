"""Sigmoid and tanh: bounded, symmetric, and with slopes that decay exponentially."""

import numpy as np
import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.decades import logarithmic
from ansatz.figures.style import INK, LINEAR, MODEL, THIRD
from ansatz.layers import activations


def measure(generator: torch.Generator, *, points: int = 2001) -> Finding:
    """Values by the library's activations, slopes by autograd, over a range of arguments."""
    z = torch.linspace(-12, 12, points, dtype=torch.float64)
    z = torch.cat([z, 3 * torch.randn(points, generator=generator, dtype=torch.float64)])
    sigma, sigma_slope = with_slope("sigmoid", z)
    tanh, _ = with_slope("tanh", z)
    e = np.exp(z.numpy())
    quotient = torch.from_numpy((e - 1 / e) / (e + 1 / e))
    far = torch.arange(4.0, 12.5, 0.5, dtype=torch.float64)
    decay = {
        name: fitted_decay(far, with_slope(name, far)[1])
        for name in ("sigmoid", "tanh", "softsign")
    }
    flipped, _ = with_slope("sigmoid", -z)
    odd, _ = with_slope("tanh", -z)
    checks = [
        Check(
            "largest slope of the sigmoid",
            float(sigma_slope.max()),
            0.25,
            EPS,
            "attained at 0 without rounding",
            wrong=Wrong("1, as for tanh", predicted=1.0),
        ),
        Check(
            "largest |σ(-z) - (1 - σ(z))|",
            float((flipped - (1 - sigma)).abs().max()),
            0.0,
            2 * EPS,
            "rounding of two sigmoids and a difference below 1",
            wrong=Wrong("σ is odd", measured=float((flipped + sigma).abs().max())),
        ),
        Check(
            "largest |tanh(-z) + tanh(z)|",
            float((odd + tanh).abs().max()),
            0.0,
            0.0,
            "exact: computed from |z|",
        ),
        Check(
            "largest |tanh z|",
            float(tanh.abs().max()),
            1.0,
            0.0,
            "below 1 in truth, at most 1 after rounding",
            relation="<=",
            wrong=Wrong("below 0.99", predicted=0.99),
        ),
        Check(
            "largest |tanh z - (e^z - e^-z)/(e^z + e^-z)|",
            float((tanh - quotient).abs().max()),
            0.0,
            4 * EPS,
            "rounding of exponential, sums and quotient of size 1",
            wrong=Wrong("half the argument", measured=float((tanh - (z / 2).tanh()).abs().max())),
        ),
        Check(
            "rate at which the slope of the sigmoid decays, 4 <= z <= 12",
            decay["sigmoid"],
            1.0,
            float(2 * torch.exp(-far[0])),
            "σ' = e^-z (1 - 2e^-z + ...): the second term at the smallest z",
            wrong=Wrong("a power law, as softsign's", measured=decay["softsign"]),
        ),
        Check(
            "rate at which the slope of tanh decays, 4 <= z <= 12",
            decay["tanh"],
            2.0,
            float(2 * torch.exp(-far[0])),
            "tanh' = 4e^-2z (1 - 2e^-2z + ...): the second term at the smallest z",
            wrong=Wrong("the sigmoid's rate", predicted=1.0),
        ),
    ]
    rows = [[name, rate] for name, rate in decay.items()]
    line = torch.linspace(-12, 12, 121, dtype=torch.float64)
    slopes = {name: with_slope(name, line)[1] for name in ("sigmoid", "tanh")}
    return Finding(checks, Table(["activation", "decay of the slope"], rows), {"z": line} | slopes)


def with_slope(name: str, z: Tensor) -> tuple[Tensor, Tensor]:
    """Values and slopes of an activation, by autograd."""
    z = z.clone().requires_grad_()
    value = activations.create(name)(z)
    (slope,) = torch.autograd.grad(value.sum(), z)
    return value.detach(), slope


def fitted_decay(z: Tensor, slope: Tensor) -> float:
    """c of slope ~ e^(-cz), by a line through the logarithms."""
    return -float(np.polyfit(z.numpy(), slope.log().numpy(), 1)[0])


def draw(paper: Figure, finding: Finding) -> None:
    """Slopes on a logarithmic axis, with the exponentials that they follow."""
    axes = paper.subplots()
    z = finding.data["z"]
    for name, colour in (("sigmoid", MODEL), ("tanh", THIRD)):
        axes.plot(z[::4], finding.data[name][::4], "o", color=colour, label=f"slope of {name}")
    axes.plot(z, torch.exp(-z.abs()), color=LINEAR, label="e^(−|z|)")
    axes.plot(z, 4 * torch.exp(-2 * z.abs()), "--", color=LINEAR, label="4 e^(−2|z|)")
    axes.axhline(0.25, color=INK, lw=0.7, ls=":", label="¼")
    axes.set(xlabel="z", ylabel="slope")
    logarithmic(axes.yaxis)
    axes.set_title("saturation: the gradient through a sigmoid or tanh decays exponentially")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="saturation",
    title="Sigmoid and tanh saturate",
    statement=(
        "The sigmoid has σ(-z) = 1 - σ(z) and a slope of at most one quarter; tanh is odd and "
        "below one in size. Away from zero the slopes decay as exp(-|z|) and 4 exp(-2|z|): a "
        "saturated unit passes almost no gradient."
    ),
    formula=(
        r"\sigma(-z) = 1 - \sigma(z), \qquad 0 < \sigma' \le \tfrac14, \qquad "
        r"\tanh z = \frac{e^z - e^{-z}}{e^z + e^{-z}}, \qquad "
        r"\sigma'(z) \sim e^{-|z|}, \quad \tanh'(z) \sim 4 e^{-2|z|}"
    ),
    sources=("M047", "M048", "M058"),
    measure=measure,
    reference="Glorot and Bengio (2010), Understanding the difficulty of training deep "
    "feedforward neural networks.",
    full={"points": 100_001},
    draw=draw,
)
