"""The pinball loss is least at a quantile; with a wrong sign it has no minimum."""

import numpy as np
import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.likelihoods import Quantiles


def measure(
    generator: torch.Generator, *, rows: int = 501, held_out: int = 4_000, level: float = 0.9
) -> Finding:
    """Minimises the loss over all order statistics, the only points where it has kinks."""
    y = torch.empty(rows, dtype=torch.float64).exponential_(generator=generator)
    later = torch.empty(held_out, dtype=torch.float64).exponential_(generator=generator)
    candidates = y.sort().values
    right = library_loss(candidates, y, level)
    printed = printed_loss(candidates, y, level)
    best, wrong = candidates[right.argmin()], candidates[printed.argmin()]
    truth = float(np.quantile(y.numpy(), level, method="inverted_cdf"))
    median = library_loss(candidates, y, 0.5)
    half = (y - candidates[:, None]).abs().mean(1) / 2
    error = (level * (1 - level) * (1 / rows + 1 / held_out)) ** 0.5
    checks = [
        Check(
            f"share of y up to the minimiser, level {level}",
            float((y <= best).double().mean()),
            level,
            1 / rows,
            "one row: shares move in steps of 1 / rows",
            wrong=Wrong(
                "max(τe, (1-τ)e) falls for ever",
                measured=float((y <= wrong).double().mean()),
                erratum="E4",
            ),
        ),
        Check("minimiser minus the order statistic", float(best) - truth, 0.0, 0.0, "the same row"),
        Check(
            "share of new outcomes below it",
            float((later <= best).double().mean()),
            level,
            4 * error,
            "4 standard errors of both samples",
        ),
        Check(
            "largest difference of the loss at τ = 1/2 from half the absolute error",
            float((median - half).abs().max()),
            0.0,
            rows * 2.0**-52 * float(half.max()),
            "rounding of a mean of that many rows",
        ),
        Check(
            "smallest loss of a single outcome",
            float(library_loss(candidates, y[:1], level).min()),
            0.0,
            0.0,
            "a maximum of two numbers of opposite sign",
            ">=",
            Wrong(
                "negative where y < q",
                measured=float(printed_loss(candidates, y[:1], level).min()),
                erratum="E4",
            ),
        ),
    ]
    table = Table(["minimiser", "right", "printed"], [["q", float(best), float(wrong)]])
    curves = {"q": candidates.numpy(), "right": right.numpy(), "printed": printed.numpy()}
    return Finding(checks, table, {**curves, "truth": truth})


def library_loss(q: Tensor, y: Tensor, level: float) -> Tensor:
    """Mean loss of each constant q: the library's own, less the contribution of the median."""
    middle = Quantiles(levels=[0.5])
    alone = middle.loss(q[:, None, None].expand(-1, len(y), 1), y.expand(len(q), -1)).mean(1)
    if level == 0.5:
        return alone
    likelihood = Quantiles(levels=[0.5, level])
    low = (
        torch.minimum(y.min(), q.min()) - 1
    )  # a median below all, from which q is reached by a positive step
    step = q - low
    raw = torch.stack([low.expand(len(q)), step + torch.log(-torch.expm1(-step))], -1)  # (Q, 2)
    both = likelihood.loss(raw[:, None].expand(-1, len(y), 2), y.expand(len(q), -1)).mean(1)
    return both - middle.loss(low.expand(len(y), 1), y).mean()


def printed_loss(q: Tensor, y: Tensor, level: float) -> Tensor:
    """As printed: both slopes positive."""
    error = y - q[:, None]
    return torch.maximum(level * error, (1 - level) * error).mean(1)


def draw(paper: Figure, finding: Finding) -> None:
    """Both losses over q."""
    from ansatz.figures.style import INK, LINEAR, MODEL

    axes, data = paper.subplots(), finding.data
    axes.plot(data["q"], data["right"], color=MODEL, label="max(τe, (τ-1)e)")
    axes.plot(
        data["q"], data["printed"], "--", color=LINEAR, lw=1, label="printed: max(τe, (1-τ)e)"
    )
    axes.axvline(data["truth"], color=INK, lw=0.8, ls=":")
    axes.annotate("0.9-quantile of y", (data["truth"], axes.get_ylim()[1]), (4, -8), "data",
                  textcoords="offset points", fontsize=8)  # fmt: skip
    axes.axhline(0, color=INK, lw=0.5)
    axes.set(xlabel="predicted quantile q", ylabel="mean loss")
    axes.set_title(
        "the pinball loss is least at the quantile; as printed it falls below 0 for ever"
    )
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="pinball-loss",
    title="The pinball loss is least at the quantile",
    statement=(
        "The constant that minimises the mean of max(τe, (τ-1)e), e = y - q, is the τ-quantile of "
        "y. At τ = 1/2 the loss is half the absolute error, and it is never negative. Often "
        "printed with (1-τ) in place of (τ-1), which has no minimum."
    ),
    formula=r"q_\tau = \arg\min_q \mathbb{E} \max\{\tau (y - q), (\tau - 1)(y - q)\}",
    sources=("E4", "M104", "M111"),
    measure=measure,
    reference="Koenker and Bassett (1978), Regression quantiles. https://doi.org/10.2307/1913643",
    full={"rows": 3_001, "held_out": 100_000},
    errata=(Erratum("E4", "max(τe, (1-τ)e)", "max(τe, (τ-1)e)"),),
    draw=draw,
)
