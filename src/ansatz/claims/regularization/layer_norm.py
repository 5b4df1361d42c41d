"""Layer normalisation uses one row; gain and bias can undo a norm."""

import torch
from torch import nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.finding import EPS
from ansatz.layers import normalize


def measure(generator: torch.Generator, *, rows: int = 16, units: int = 12) -> Finding:
    """Outputs of one row in several batches, moments over its units, and a norm undone."""
    linear = nn.Linear(units, units, dtype=torch.float64)
    layer, batch = (normalize(linear, norm).double() for norm in ("layer", "batch"))
    z = 4 + 3 * torch.randn(rows, units, generator=generator, dtype=torch.float64)
    out = layer(z).detach()
    alone = torch.cat([layer(row[None]) for row in z]).detach()
    others = z.flip(0) * 2 + 1
    mixed = torch.cat([layer(torch.cat([z[:1], others])), layer(z)])[:1].detach()
    with_batch = batch(torch.cat([z[:1], others]))[:1].detach() - batch(z)[:1].detach()
    eps = float(layer.eps)  # type: ignore[arg-type]
    variance = z.var(1, correction=0)
    share = variance / (variance + eps)
    moments = (out.mean(1).abs().max(), (out.var(1, correction=0) - share).abs().max())
    restored = undo(z, eps)
    plain = undo(z, eps, gain=False)
    rounding = 32 * EPS * units * float(z.abs().max())
    because = "rounding: 32 eps times the units and the size of the inputs"
    checks = [
        Check(
            "largest change of a row's output when it is alone",
            float((out - alone).abs().max()),
            0.0,
            rounding,
            because,
        ),
        Check(
            "the same when other rows stand beside it",
            float((out[:1] - mixed).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong("batch normalisation", measured=float(with_batch.abs().max())),
        ),
        Check(
            "largest mean, or distance of the variance from v/(v + ε), over a row",
            float(max(moments)),
            0.0,
            rounding,
            because,
            wrong=Wrong("ε left out: a variance of 1", measured=float((1 - share).max())),
        ),
        Check(
            "largest distance of μ + γ f̄ from f, with γ = √(v + ε)",
            float((restored - z).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong("without gain and bias", measured=float((plain - z).abs().max())),
        ),
    ]  # fmt: skip
    table = Table(
        ["layer norm", "mean", "variance"],
        [[k, float(o.mean()), float(o.var(correction=0))] for k, o in enumerate(out[:5])],
    )
    return Finding(checks, table)


def undo(z: torch.Tensor, eps: float, *, gain: bool = True) -> torch.Tensor:
    """A batch norm whose gain is the units' standard deviation and whose bias is their mean."""
    norm = nn.BatchNorm1d(z.shape[1], eps=eps, dtype=torch.float64)
    if gain:
        with torch.no_grad():
            norm.weight.copy_((z.var(0, correction=0) + eps).sqrt())
            norm.bias.copy_(z.mean(0))
    return norm(z).detach()


claim = Claim(
    id="layer-norm",
    title="Layer normalisation needs no batch",
    statement=(
        "Layer normalisation centres and scales over the units of a row, so that its output does "
        "not depend on the batch. In any norm, a gain √(v + ε) and a bias μ undo the "
        "normalisation: no function is lost."
    ),
    formula=(
        r"\bar f = \frac{f - \mu}{\sqrt{v + \epsilon}}, \qquad \beta + \gamma \bar f = f "
        r"\;\text{ at }\; \gamma = \sqrt{v + \epsilon},\; \beta = \mu"
    ),
    sources=("M164", "M165"),
    measure=measure,
    reference="Ba, Kiros and Hinton (2016), Layer normalization. https://arxiv.org/abs/1607.06450",
    full={"rows": 256, "units": 512},
)
