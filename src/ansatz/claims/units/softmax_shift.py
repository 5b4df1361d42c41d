"""Softmax: probabilities that depend on differences of logits alone."""

import numpy as np
import torch
from scipy.special import softmax as peer

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.style import INK, LINEAR, MODEL
from ansatz.layers import softmax


def measure(generator: torch.Generator, *, rows: int = 500, classes: int = 6) -> Finding:
    """Random logits, shifted, scaled and very large."""
    x = 3 * torch.randn(rows, classes, generator=generator, dtype=torch.float64)
    shift = 40 * torch.randn(rows, 1, generator=generator, dtype=torch.float64)
    layer = softmax()
    p = layer(x)
    change = (layer(x + shift) / p - 1).abs().max()
    scaled = (layer(2 * x) / p - 1).abs().max()
    # The index i of the numerator reused in the sum: each term over itself.
    reused = (x.exp() / x.exp()).sum(-1)
    large = layer(x + 1e4)
    with np.errstate(over="ignore", invalid="ignore"):
        raw = np.exp(x.numpy() + 1e4)
        naive = raw / raw.sum(-1, keepdims=True)
    jacobian = torch.diag_embed(p) - p.unsqueeze(2) * p.unsqueeze(1)
    along = jacobian.sum(2).abs().max()
    ranks = torch.linalg.matrix_rank(jacobian[:50], rtol=classes * EPS, hermitian=True)
    logits = (p.log() - p.log().mean(-1, keepdim=True)) - (x - x.mean(-1, keepdim=True))
    checks = [
        Check(
            "largest relative change of a probability when all logits are shifted",
            float(change),
            0.0,
            float(4 * EPS * (shift.abs().max() + x.abs().max() + classes)),
            "rounding of the shifted logits, which are exponents",
            wrong=Wrong("all logits doubled", measured=float(scaled)),
        ),
        Check(
            "largest |sum of the probabilities - 1|",
            float((p.sum(-1) - 1).abs().max()),
            0.0,
            classes * EPS,
            f"rounding: a sum of {classes}",
            wrong=Wrong("the index i reused in the sum", measured=float((reused - 1).abs().max())),
        ),
        Check(
            "largest difference to scipy's softmax",
            float(np.abs(p.numpy() - peer(x.numpy(), axis=-1)).max()),
            0.0,
            classes * EPS,
            f"rounding: a sum of {classes}",
        ),
        Check(
            "probabilities that are not finite at logits of 10,000",
            int((~large.isfinite()).sum()),
            0,
            0,
            "whole numbers: the largest logit is subtracted first",
            wrong=Wrong("the formula as it stands", measured=int((~np.isfinite(naive)).sum())),
        ),
        Check(
            "largest slope of a probability along a common shift of the logits",
            float(along),
            0.0,
            classes * EPS,
            f"rounding: a sum of {classes}",
            wrong=Wrong("along one logit", measured=float(jacobian.abs().amax())),
        ),
        Check(
            "rank of the Jacobian, smallest of 50",
            int(ranks.min()),
            classes - 1,
            0,
            "whole numbers: a shift is lost, and nothing else",
            wrong=Wrong("full rank", predicted=classes),
        ),
        Check(
            "logits recovered from log p, up to a shift: largest error",
            float(logits.abs().max()),
            0.0,
            float(8 * classes * EPS * x.abs().max()),
            "rounding of logarithms of size |x|",
        ),
    ]
    return Finding(checks)


def draw(paper: Figure, finding: Finding) -> None:
    """Three classes: shifting does nothing, scaling sharpens."""
    axes = paper.subplots()
    x = torch.tensor([1.0, 0.0, -1.0], dtype=torch.float64)
    amount = torch.linspace(0.2, 4, 39, dtype=torch.float64)
    layer = softmax()
    for i, (colour, name) in enumerate(((MODEL, "first"), (LINEAR, "second"), (INK, "third"))):
        shifted, scaled = layer(x + amount[:, None])[:, i], layer(x * amount[:, None])[:, i]
        axes.plot(amount[::3], shifted[::3], "o", color=colour, label=f"{name} class, logits + t")
        axes.axhline(float(layer(x)[i]), color=colour, lw=0.8)
        axes.plot(amount, scaled, "--", color=colour, lw=0.8, label=f"{name} class, logits × t")
    axes.set(xlabel="t", ylabel="probability", ylim=(0, 1))
    axes.set_title("softmax ignores a common shift of the logits (1, 0, −1), not their scale")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="softmax-shift",
    title="Softmax depends on differences of logits only",
    statement=(
        "The softmax of logits is positive, sums to one, and does not change when the same number "
        "is added to all of them, so its Jacobian has rank K - 1, and subtracting the largest "
        "logit avoids overflow. A common slip reuses the index i inside the sum, which would make "
        "every entry one."
    ),
    formula=(
        r"p_i = \frac{e^{x_i}}{\sum_j e^{x_j}} = \frac{e^{x_i - c}}{\sum_j e^{x_j - c}}, \qquad "
        r"\sum_i p_i = 1"
    ),
    sources=("M060",),
    measure=measure,
    reference="Blanchard, Higham and Higham (2021), Accurately computing the log-sum-exp and "
    "softmax functions. https://doi.org/10.1093/imanum/draa038",
    full={"rows": 20_000, "classes": 100},
    draw=draw,
)
