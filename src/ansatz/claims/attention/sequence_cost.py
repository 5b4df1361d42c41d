"""What a longer sequence costs: a recurrence T, attention T²."""

from collections.abc import Callable
from math import log

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.layers import GRU, MinGRU, MultiHeadAttention


def measure(
    generator: torch.Generator, *, lengths: tuple[int, ...] = (32, 128, 512), features: int = 16
) -> Finding:
    """Operations of matrix products in one pass over sequences of growing length."""
    D = features
    layers: dict[str, Callable[[Tensor], object]] = {
        "attention": MultiHeadAttention(D, 1, generator=generator),
        "minGRU": MinGRU(D, D, generator=generator),
        "GRU": GRU(D, D, reset="before", generator=generator),
    }
    flops = {name: [count(layer, T, D) for T in lengths] for name, layer in layers.items()}
    far = lengths[-2:]
    power = {name: log(c[-1] / c[-2]) / log(far[1] / far[0]) for name, c in flops.items()}
    T = lengths[-1]
    checks = [
        Check(
            f"operations of attention over {T} steps",
            flops["attention"][-1],
            8 * T * D**2 + 4 * T**2 * D,
            0,
            "whole numbers: four maps of each step, and two products for each pair",
            wrong=Wrong("without the pairs", predicted=8 * T * D**2),
        ),
        Check(
            "power of T in the operations of a minGRU",
            power["minGRU"],
            1.0,
            1e-12,
            "rounding of logarithms",
            wrong=Wrong("as attention", measured=power["attention"]),
        ),
        Check(
            "power of T in the operations of attention",
            power["attention"],
            2.0,
            log(1 + 2 * D / far[0]) / log(far[1] / far[0]),
            "the share 2D/T of the maps, which grow like T",
            wrong=Wrong("as a minGRU", measured=power["minGRU"]),
        ),
        Check(
            f"attention over GRU at T = {T}",
            flops["attention"][-1] / flops["GRU"][-1],
            (8 * D + 4 * T) / (12 * D),
            1e-12,
            "rounding: they cost the same at T = D, then attention grows",
            wrong=Wrong("the ratio of short sequences",
                        measured=flops["attention"][0] / flops["GRU"][0]),
        ),
    ]  # fmt: skip
    table = Table(["steps", *flops], [
        [T, *(each[k] for each in flops.values())] for k, T in enumerate(lengths)
    ])  # fmt: skip
    return Finding(checks, table, {"lengths": lengths, "flops": flops})


def count(layer: Callable[[Tensor], object], length: int, features: int) -> int:
    """Operations of matrix products in one pass; a multiplication and an addition are two."""
    x = torch.zeros(1, length, features)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        with sdpa_kernel(SDPBackend.MATH):
            layer(x)
    return counter.get_total_flops()


def draw(paper: Figure, finding: Finding) -> None:
    """Operations over the length."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, LINEAR, MODEL

    axes, lengths = paper.subplots(), finding.data["lengths"]
    for (name, flops), colour in zip(
        finding.data["flops"].items(), (LINEAR, MODEL, INK), strict=True
    ):
        axes.loglog(lengths, flops, "o-", color=colour, label=name)
    axes.set_xticks(lengths, [f"{T:,}" for T in lengths])
    axes.minorticks_off()
    logarithmic(axes.yaxis)
    axes.set(xlabel="steps T", ylabel="operations of a pass")
    axes.set_title("recurrent layers cost T, attention T²")
    axes.legend()


claim = Claim(
    id="sequence-cost",
    title="A recurrence costs T, attention T²",
    statement=(
        "A pass over T steps of D numbers takes 12 T D² operations in the matrix products of a "
        "GRU, and 8 T D² + 4 T² D in those of attention: the same at T = D, then attention grows "
        "with the square of the length."
    ),
    formula=r"12\, T D^2 \;\text{(GRU)}, \qquad 8\, T D^2 + 4\, T^2 D \;\text{(attention)}",
    sources=("M253", "M262", "M440"),
    measure=measure,
    reference=(
        "Vaswani et al. (2017), Attention is all you need, table 1. "
        "https://arxiv.org/abs/1706.03762"
    ),
    full={"lengths": (64, 256, 1_024, 4_096)},
    draw=draw,
)
