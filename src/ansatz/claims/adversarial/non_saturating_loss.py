"""A generator minimises -log D, since log(1 - D) has no gradient where D rejects."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure


def measure(generator: torch.Generator, *, logits: int = 81) -> Finding:
    """Gradients of both losses in the discriminator's logit, by automatic differentiation."""
    f = torch.linspace(-20, 20, logits, dtype=torch.float64)
    saturating = slope(f, lambda z: logsigmoid(-z))  # log(1 - q)
    rescue = slope(f, lambda z: -logsigmoid(z))  # -log q
    rejected = torch.tensor([-10.0], dtype=torch.float64)
    low = float(slope(rejected, lambda z: logsigmoid(-z)))
    q = torch.sigmoid(f).clone().requires_grad_()
    (in_q,) = torch.autograd.grad(torch.log(1 - q).sum(), q)
    sigma = 1 / (1 + np.exp(10.0))
    rounding = 16 * 2.0**-52
    checks = [
        Check(
            "gradient of log(1-q) at a rejected sample, logit -10",
            low,
            -sigma,
            rounding,
            "rounding: 16 eps",
            wrong=Wrong("as strong as elsewhere", predicted=-0.5),
        ),
        Check(
            "gradient of -log q there",
            float(slope(rejected, lambda z: -logsigmoid(z))),
            -(1 - sigma),
            rounding,
            "rounding: 16 eps",
            wrong=Wrong("vanishing, as with log(1-q)", predicted=low),
        ),
        Check(
            "largest |gradient| of log(1-q) in the logit",
            float(saturating.abs().max()),
            1.0,
            rounding,
            "a sigmoid is at most 1",
            "<=",
            Wrong(
                "it blows up at q = 1 (true in q, which no generator sees)",
                measured=float(in_q.abs().max()),
                erratum="E56",
            ),
        ),
        Check(
            "logit at which the gradient of log(1-q) is weakest",
            float(f[saturating.abs().argmin()]),
            -20.0,
            0.0,
            "the most rejected point of the grid",
            wrong=Wrong("trouble where q = 1", predicted=20.0, erratum="E56"),
        ),
    ]
    table = Table(["logit", "log(1-q)", "-log q"], [
        [float(a), float(b), float(c)] for a, b, c in zip(f, saturating, rescue, strict=True)
    ][:: max(1, logits // 10)])  # fmt: skip
    data = {"f": f.numpy(), "saturating": saturating.numpy(), "rescue": rescue.numpy()}
    return Finding(checks, table, data)


def slope(f: Tensor, loss: Callable[[Tensor], Tensor]) -> Tensor:
    """The derivative of the loss at each logit."""
    f = f.clone().requires_grad_()
    (found,) = torch.autograd.grad(loss(f).sum(), f)
    return found


def draw(paper: Figure, finding: Finding) -> None:
    """Sizes of both gradients over the logit."""
    from ansatz.figures.style import INK, LINEAR, MODEL

    axes, data = paper.subplots(), finding.data
    axes.plot(data["f"], np.abs(data["rescue"]), color=MODEL, label="-log q, non-saturating")
    axes.plot(data["f"], np.abs(data["saturating"]), color=LINEAR, label="log(1-q), minimax")
    axes.axvspan(-20, -5, color=INK, alpha=0.1, lw=0)
    axes.text(-19.5, 0.45, "D rejects the sample:\nno gradient from log(1-q)", fontsize=8.5)
    axes.set(xlabel="logit of the discriminator", ylabel="|gradient| for the generator")
    axes.set_title("log(1-q) has no gradient where the generator most needs one")
    axes.legend(loc="center right")


claim = Claim(
    id="non-saturating-loss",
    title="A generator minimises -log D, for its gradient",
    statement=(
        "When the discriminator rejects a sample, the gradient of log(1-q) in its logit vanishes "
        "(-4.5e-5 at the logit -10), while that of -log q is -1; at q = 1 it is bounded by 1. A "
        "common slip gives the reverse reason: that log(1-q) blows up at q = 1."
    ),
    formula=(
        r"\frac{d}{df} \log(1 - \sigma(f)) = -\sigma(f), \qquad "
        r"\frac{d}{df} \bigl(-\log \sigma(f)\bigr) = -(1 - \sigma(f))"
    ),
    sources=("E56", "M380"),
    measure=measure,
    reference=(
        "Goodfellow et al. (2014), Generative adversarial nets, section 3. "
        "https://arxiv.org/abs/1406.2661"
    ),
    full={"logits": 2_001},
    errata=(Erratum("E56", "log(1-q) blows up at q = 1", "its gradient vanishes as q → 0"),),
    draw=draw,
)
