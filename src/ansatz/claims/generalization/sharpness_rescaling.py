"""Sharpness depends on the scale of the weights; the function does not."""

from typing import NamedTuple

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.decades import logarithmic
from ansatz.figures.style import INK, LINEAR, MODEL

SCALES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class Weights(NamedTuple):
    """Of networks a·(Wx + b)₊ + c, side by side: a leading axis S."""

    W: Tensor  # (S, units, D)
    b: Tensor  # (S, units)
    a: Tensor  # (S, units)
    c: Tensor  # (S,)


def measure(
    generator: torch.Generator,
    *,
    rows: int = 30,
    units: int = 6,
    count: int = 10,
    steps: int = 300,
) -> Finding:
    """Networks trained with more and less weight decay, and one of them rescaled."""
    D = 4

    def sample(n: int) -> tuple[Tensor, Tensor]:
        x = torch.randn(n, D, generator=generator, dtype=torch.float64)
        return x, x[:, 0].tanh() + torch.randn(n, generator=generator, dtype=torch.float64)

    (x, y), (new_x, new_y) = sample(rows), sample(4000)
    strengths = torch.logspace(-3, -1, count, dtype=torch.float64)
    nets = train(x, y, strengths, units, steps, generator)
    traces = blocks(nets, x, y).sum(1).numpy()
    with torch.no_grad():
        gaps = (outputs(nets, new_x) - new_y).square().mean(1) - (
            outputs(nets, x) - y
        ).square().mean(1)
    middle = one(nets, count // 2)
    parts = blocks(middle, x, y)[0]  # of (W, b), a and c
    scaled = [rescale(middle, alpha) for alpha in SCALES]
    found = blocks(stack(scaled), x, y).sum(1).numpy()
    before = outputs(middle, x)
    moved = max(float((outputs(net, x) - before).abs().max()) for net in scaled)
    factors = torch.tensor([[alpha**-2, alpha**2, 1.0] for alpha in SCALES], dtype=torch.float64)
    predicted = (factors @ parts).numpy()
    relation = float(spearmanr(traces, gaps.numpy()).statistic)
    # The same networks, each rescaled so that the least decayed ones become the flattest.
    order = np.argsort(np.argsort(-gaps.numpy()))
    flatter = [rescale(one(nets, s), 3 * 10.0 ** (0.2 * order[s])) for s in range(count)]
    turned = blocks(stack(flatter), x, y).sum(1).numpy()
    half = float((outputs(rescale(middle, 2.0, half=True), x) - before).abs().max())
    still = float(np.abs(found / predicted[3] - 1).max())
    against = float(spearmanr(turned, gaps.numpy()).statistic)
    size = float(before.abs().max())
    checks = [
        Check(
            "largest change of the outputs when W, b are scaled by α and a by 1/α",
            moved,
            0.0,
            16 * EPS * units * (1 + size),
            "rounding: 16 eps times the units and the outputs",
            wrong=Wrong("only W and b are scaled", measured=half),
        ),
        Check(
            "largest ratio of the trace of the Hessian to tr₁/α² + tr₂α² + tr₃, less 1",
            float(np.abs(found / predicted - 1).max()),
            0.0,
            64 * EPS * len(parts) * units * D,
            "rounding: 64 eps times the number of weights",
            wrong=Wrong("a sharpness that the scale leaves alone", measured=still),
        ),
        Check(
            f"rank correlation of trace and gap of test and training error, {count} networks",
            relation,
            0.564,
            0.0,
            "the 95 % point of Spearman's correlation of 10 independent pairs",
            ">=",
            wrong=Wrong("the same functions, rescaled", measured=against),
        ),
    ]  # fmt: skip
    table = Table(
        ["weight decay", "trace", "gap", "trace after rescaling"],
        np.column_stack([strengths.numpy(), traces, gaps.numpy(), turned]).tolist(),
    )
    data = {"found": found, "predicted": predicted, "traces": traces, "gaps": gaps.numpy()}
    return Finding(checks, table, data | {"turned": turned})


def outputs(net: Weights, x: Tensor) -> Tensor:
    """``(S, rows)``."""
    h = (torch.einsum("nd,sud->snu", x, net.W) + net.b[:, None]).relu()
    return torch.einsum("snu,su->sn", h, net.a) + net.c[:, None]


def train(
    x: Tensor, y: Tensor, strengths: Tensor, units: int, steps: int, generator: torch.Generator
) -> Weights:
    """All of them at once from one start: half the mean squared error plus weight decay."""
    S, D = len(strengths), x.shape[1]
    W = torch.randn(units, D, generator=generator, dtype=torch.float64) / D**0.5
    a = torch.randn(units, generator=generator, dtype=torch.float64) / units**0.5
    b = 0.5 * torch.randn(units, generator=generator, dtype=torch.float64)
    start = [W.repeat(S, 1, 1), b.repeat(S, 1), a.repeat(S, 1), torch.zeros(S, dtype=W.dtype)]
    net = Weights(*(each.requires_grad_() for each in start))
    rule = torch.optim.Adam(list(net), lr=0.02)
    for _ in range(steps):
        rule.zero_grad()
        fit = 0.5 * (outputs(net, x) - y).square().mean(1)
        norm = net.W.square().sum((1, 2)) + net.b.square().sum(1) + net.a.square().sum(1)
        (fit + strengths / 2 * norm).sum().backward()
        rule.step()
    return Weights(*(each.detach() for each in net))


def one(net: Weights, s: int) -> Weights:
    """The network s, with its axis."""
    return Weights(*(each[s : s + 1] for each in net))


def rescale(net: Weights, alpha: float, *, half: bool = False) -> Weights:
    """The first layer times α, the second over α."""
    return Weights(net.W * alpha, net.b * alpha, net.a if half else net.a / alpha, net.c)


def stack(nets: list[Weights]) -> Weights:
    """Side by side."""
    return Weights(*(torch.cat(parts) for parts in zip(*nets, strict=True)))


def blocks(nets: Weights, x: Tensor, y: Tensor) -> Tensor:
    """Traces of the Hessian of the training loss over (W, b), a and c: ``(S, 3)``."""
    W, b, a, _ = nets

    def loss(vector: Tensor) -> Tensor:
        w, rest = vector[: W[0].numel()].reshape(1, *W.shape[1:]), vector[W[0].numel() :]
        net = Weights(w, rest[None, : b.shape[1]], rest[None, b.shape[1] : -1], rest[-1:])
        return 0.5 * (outputs(net, x) - y).square().mean()

    vectors = torch.cat([each.flatten(1) if each.ndim > 1 else each[:, None] for each in nets], 1)
    hessians = torch.func.vmap(torch.func.jacrev(torch.func.grad(loss)))(vectors)
    diagonal = hessians.diagonal(dim1=1, dim2=2)
    first, second = W[0].numel() + b.shape[1], a.shape[1]
    cuts = diagonal.split([first, second, 1], 1)
    return torch.stack([part.sum(1) for part in cuts], 1)


def draw(paper: Figure, finding: Finding) -> None:
    """The trace against α, and against the gap before and after rescaling."""
    data = finding.data
    left, right = paper.subplots(1, 2)
    left.plot(SCALES, data["predicted"], color=INK, label="tr₁/α² + tr₂ α² + tr₃")
    left.plot(SCALES, data["found"], "o", color=MODEL, markersize=5, label="trace of the Hessian")
    left.axhline(data["found"][3], color=LINEAR, linestyle="--", linewidth=0.9, label="unchanged")
    logarithmic(left.xaxis, left.yaxis)
    left.set(xlabel="scale α of the first layer", ylabel="trace of the Hessian")
    left.set_title("one function, any sharpness")
    left.legend(loc="upper center", fontsize=8)
    right.plot(data["traces"], data["gaps"], "o", color=MODEL, label="as trained")
    right.plot(data["turned"], data["gaps"], "s", color=LINEAR, label="rescaled")
    logarithmic(right.xaxis)
    right.set(xlabel="trace of the Hessian", ylabel="test less training error")
    right.set_title("sharper is worse, unless rescaled")
    right.legend(fontsize=8)


claim = Claim(
    id="sharpness-rescaling",
    title="Sharpness is a matter of scale",
    statement=(
        "Among networks trained alike but for weight decay, the sharper minima generalise worse. "
        "But scaling one rectified layer by α and the next by 1/α leaves the function as it is and "
        "changes the trace of the Hessian at will: flatness is meaningful only with a scale."
    ),
    formula=(
        r"f_{\alpha W, \alpha b, a / \alpha} = f_{W, b, a}, \qquad \mathrm{tr}\, \nabla^2 \ell = "
        r"\alpha^{-2}\, \mathrm{tr}\, \nabla^2_{W, b} \ell + \alpha^2\, \mathrm{tr}\, "
        r"\nabla^2_{a} \ell + \mathrm{tr}\, \nabla^2_{c} \ell"
    ),
    sources=("M362",),
    measure=measure,
    reference="Dinh et al. (2017), Sharp minima can generalize for deep nets. https://arxiv.org/abs/1703.04933",
    full={"units": 40, "steps": 2000},
    draw=draw,
)
