"""A linear recurrence in chunks is its loop, with work in proportion to the length."""

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.layers import MinGRU, scan


def measure(
    generator: torch.Generator, *, lengths: tuple[int, ...] = (64, 512, 4_096), features: int = 2
) -> Finding:
    """States and gradients of three ways to compute a recurrence, and the operations they take."""

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    layer = MinGRU(3, features, generator=generator).double()
    T = int(torch.randint(200, 500, (), generator=generator))
    a, b = (each.detach().requires_grad_() for each in layer.gate(normal(1, T, 3)))
    weight = normal(1, T, features)
    found = {way.__name__: way(a, b) for way in (scan, loop, doubling_scan)}
    slopes = {name: torch.autograd.grad((weight * h).sum(), (a, b)) for name, h in found.items()}
    states = {name: h.detach() for name, h in found.items()}
    size = max(float(weight.abs().max()), 1.0) * max(float(g.abs().max()) for g in slopes["loop"])
    shifted = torch.cat([torch.ones_like(a[:, :1]), a[:, :-1]], 1)  # the factor of the step before
    c = [(normal(features).tanh(), normal(features)) for _ in range(3)]
    left, right = join(join(c[0], c[1]), c[2]), join(c[0], join(c[1], c[2]))
    swapped = join(c[2], join(c[1], c[0]))
    costs = {way.__name__: [cost(way, T, features) for T in lengths]
             for way in (scan, loop, doubling_scan)}  # fmt: skip
    growth = {name: each[-1][0] / each[-2][0] for name, each in costs.items()}
    ratio = lengths[-1] / lengths[-2]
    checks = [
        Check(
            f"largest difference of the scan from its loop over {T} steps",
            float((states["scan"] - states["loop"]).abs().max()),
            0.0,
            64 * EPS * float(states["loop"].abs().max() + 1) / (1 - float(a.detach().max())),
            "rounding: 64 eps a step, which fades like the state",
            wrong=Wrong(
                "the factor of the step before",
                measured=float((scan(shifted, b) - states["loop"]).detach().abs().max()),
            ),
        ),
        Check(
            "largest difference of its gradients",
            max(float((p - q).abs().max())
                for p, q in zip(slopes["scan"], slopes["loop"], strict=True)),
            0.0,
            64 * EPS * size / (1 - float(a.detach().max())) ** 2,
            "rounding, as above, of a recurrence of states that are rounded",
            wrong=Wrong(
                "forwards in time",
                measured=float((scan(a, weight).detach() - slopes["loop"][1]).abs().max()),
            ),
        ),
        Check(
            "largest |(p∘q)∘r - p∘(q∘r)| of (a, b)∘(c, d) = (ca, cb + d)",
            max(float((p - q).abs().max()) for p, q in zip(left, right, strict=True)),
            0.0,
            16 * EPS * max(1.0, float(left[1].abs().max())),
            "rounding: associative, not commutative",
            wrong=Wrong("in the other order", measured=float((swapped[1] - left[1]).abs().max())),
        ),
        Check(
            f"work of {lengths[-1]} steps over that of {lengths[-2]}",
            growth["scan"],
            ratio,
            0.05 * ratio,
            "a share of 1/64 for the starts of chunks, whose own chunks come and go",
            wrong=Wrong("a log T for each step, as at doubling distances",
                        measured=growth["doubling_scan"]),
        ),
        Check(
            f"operations in turn for {lengths[-1]} steps",
            costs["scan"][-1][1],
            64 * 4 * (lengths[-1].bit_length() // 6 + 1),
            0,
            "at most 4 for each of 64 places in a chunk, at each of log T / log 64 levels",
            "<=",
            Wrong("one for each step, as in the loop", measured=costs["loop"][-1][1]),
        ),
    ]  # fmt: skip
    head = ["steps", *(f"work, {name}" for name in costs), *(f"in turn, {name}" for name in costs)]
    table = Table(head, [
        [T, *(costs[name][k][0] for name in costs), *(costs[name][k][1] for name in costs)]
        for k, T in enumerate(lengths)
    ])  # fmt: skip
    return Finding(checks, table, {"costs": costs, "lengths": lengths})


def loop(a: Tensor, b: Tensor) -> Tensor:
    """h_t = a_t h_{t-1} + b_t, step by step."""
    states = [b[:, 0]]
    for t in range(1, b.shape[1]):
        states.append(torch.addcmul(b[:, t], a[:, t], states[-1]))
    return torch.stack(states, 1)


def doubling_scan(a: Tensor, b: Tensor) -> Tensor:
    """By pairs at doubling distances (Hillis and Steele): log2 T passes over all steps."""
    step = 1
    while step < b.shape[1]:
        later = torch.addcmul(b[:, step:], a[:, step:], b[:, :-step])
        b = torch.cat([b[:, :step], later], 1)
        a = torch.cat([a[:, :step], a[:, step:] * a[:, :-step]], 1)
        step *= 2
    return b


Pair = tuple[Tensor, Tensor]


def join(first: Pair, then: Pair) -> Pair:
    """Two steps of a recurrence as one."""
    return then[0] * first[0], then[0] * first[1] + then[1]


class _Counter(TorchDispatchMode):
    """Counts multiplications, and the operations that multiply."""

    def __init__(self) -> None:
        super().__init__()
        self.work = self.turns = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ in ("addcmul", "mul", "mul_"):
            self.work, self.turns = self.work + out.numel(), self.turns + 1
        return out


def cost(way: Any, length: int, features: int) -> tuple[float, int]:
    """Multiplications for each feature, and operations that wait for each other."""
    a = torch.full((1, length, features), 0.5, dtype=torch.float64)
    with torch.no_grad(), _Counter() as counter:
        way(a, a)
    return counter.work / features, counter.turns


def draw(paper: Figure, finding: Finding) -> None:
    """Work for each step, and operations in turn, over the length."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, LINEAR, MODEL

    work, turns = paper.subplots(1, 2)
    lengths = finding.data["lengths"]
    shown = (("scan", "scan, in chunks", MODEL, "o-"), ("loop", "loop", INK, "s-"),
             ("doubling_scan", "doubling distances", LINEAR, "^-"))  # fmt: skip
    for name, label, colour, mark in shown:
        costs = finding.data["costs"][name]
        work.plot(lengths, [c[0] / T for c, T in zip(costs, lengths, strict=True)], mark,
                  color=colour, label=label)  # fmt: skip
        turns.plot(lengths, [c[1] for c in costs], mark, color=colour)
    for axes in (work, turns):
        axes.set_xscale("log")
        logarithmic(axes.xaxis)
        axes.set(xlabel="steps T")
    turns.set_yscale("log")
    logarithmic(turns.yaxis)
    work.set(ylabel="multiplications for each step", ylim=(0, None))
    turns.set(ylabel="operations in turn")
    work.legend(loc="upper left")
    paper.suptitle("a scan in chunks: work like the loop, few operations in turn", fontsize=9.5)


claim = Claim(
    id="prefix-scan",
    title="A linear recurrence is a scan",
    statement=(
        "Steps of a linear recurrence combine associatively, so that chunks can be computed side "
        "by side. In chunks of 64 the work grows like T and the operations in turn like log T; at "
        "doubling distances the work has a factor log T. States and gradients are those of the "
        "loop. A minGRU is such a recurrence."
    ),
    formula=(
        r"h_t = a_t h_{t-1} + b_t, \qquad (a, b) \circ (c, d) = (ca,\; cb + d), \qquad "
        r"\text{work } O(T),\; \text{depth } O(\log T)"
    ),
    sources=("M252", "M253"),
    measure=measure,
    reference=(
        "Blelloch (1990), Prefix sums and their applications, section 1.4; Martin and Cundy "
        "(2018), Parallelizing linear recurrent neural nets over sequence length. "
        "https://arxiv.org/abs/1709.04057"
    ),
    full={"lengths": (64, 512, 4_096, 32_768)},
    draw=draw,
)
