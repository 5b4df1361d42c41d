"""The tangent kernel of a network moves while it learns, the less the wider it is."""

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure


def measure(
    generator: torch.Generator,
    *,
    widths: tuple[int, ...] = (64, 256, 1024),
    runs: int = 16,
    starts: int = 400,
    steps: int = 20,
) -> Finding:
    """Trains networks of one hidden layer, and compares their kernels before and after."""
    x = torch.randn(4, 3, generator=generator, dtype=torch.float64)
    x = x / x.norm(dim=1, keepdim=True)
    y = torch.randn(4, generator=generator, dtype=torch.float64)
    change, error, fluctuation = [], [], []
    for width in widths:
        fluctuation.append(float(kernel(*start(starts, width, generator), x).var(0).mean()))
        W, a = start(runs, width, generator)
        before = kernel(W, a, x)
        after = kernel(*train(W, a, x, y, steps), x)
        moved = (after - before).norm(dim=(1, 2)) / before.norm(dim=(1, 2))
        change.append(float(moved.mean()))
        error.append(float(moved.std()) / runs**0.5)
    ratio = [change[i] / change[i + 1] for i in range(len(widths) - 1)]
    relative = [e / c for e, c in zip(error, change, strict=True)]
    step = widths[1] / widths[0]
    # Corrections to the leading order are 1/√width.
    slack = 4 * (relative[-2] ** 2 + relative[-1] ** 2) ** 0.5 + widths[-2] ** -0.5
    one = jacobian_kernel(W[0], a[0], x)
    factor = fluctuation[-2] / fluctuation[-1]
    checks = [
        Check(
            f"relative change of the kernel at width {widths[-2]}",
            change[-2],
            step * change[-1],
            slack * step * change[-1],
            "4 standard errors of both widths, and the next order, 1/√width",
            wrong=Wrong("∂K/∂t = 0 at any width", predicted=0.0, erratum="E57"),
        ),
        Check(
            f"factor by which the change falls from width {widths[0]} to {widths[1]}",
            ratio[0],
            step**0.5,
            0.0,
            "the theorem's rate 1/√width is an upper bound",
            ">=",
            Wrong("a change that does not depend on the width", measured=1.0),
        ),
        Check(
            "factor by which the kernel's variance over random weights falls",
            factor,
            step,
            4 * step * (2 * 2 / starts) ** 0.5,
            "4 standard errors of two variances, each √(2 / starts) of itself",
            wrong=Wrong("variance as 1 / width²", predicted=step**2),
        ),
        Check(
            "largest difference of the formula from JJᵀ by automatic differentiation",
            float((kernel(W[:1], a[:1], x)[0] - one).abs().max()),
            0.0,
            widths[-1] * 2.0**-52 * float(one.abs().max()),
            "rounding of sums over the units",
        ),
    ]
    table = Table(["width", "relative change", "standard error", "variance at the start"], [
        list(row) for row in zip(widths, change, error, fluctuation, strict=True)
    ])  # fmt: skip
    return Finding(checks, table, {"widths": widths, "change": change, "error": error})


def start(runs: int, width: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Normal w, and a = ± 1 for each: every network begins as f = 0."""
    W = torch.randn(runs, width // 2, 3, generator=generator, dtype=torch.float64)
    a = torch.ones(runs, width // 2, dtype=torch.float64)
    return torch.cat([W, W], 1), torch.cat([a, -a], 1)


def kernel(W: Tensor, a: Tensor, x: Tensor) -> Tensor:
    """K of f(x) = m^(-1/2) Σ a_i tanh(w_i·x) for each run, ``(R, N, N)``."""
    unit = torch.tanh(x @ W.mT)  # (R, N, m)
    slope = a[:, None] * (1 - unit**2)
    return (unit @ unit.mT + (slope @ slope.mT) * (x @ x.T)) / W.shape[1]


def jacobian_kernel(W: Tensor, a: Tensor, x: Tensor) -> Tensor:
    """The same for one run, from the definition."""
    W, a = W.clone().requires_grad_(), a.clone().requires_grad_()
    outputs = torch.tanh(x @ W.T) @ a / len(a) ** 0.5
    rows = [torch.autograd.grad(each, (W, a), retain_graph=True) for each in outputs]
    J = torch.stack([torch.cat([part.flatten() for part in row]) for row in rows])
    return J @ J.T


def train(W: Tensor, a: Tensor, x: Tensor, y: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """Gradient descent on half the squared error, a step of 1 / (2 trace K)."""
    rate = 0.5 / kernel(W, a, x).diagonal(dim1=1, dim2=2).sum(1).max()
    for _ in range(steps):
        W, a = W.detach().requires_grad_(), a.detach().requires_grad_()
        f = (torch.tanh(x @ W.mT) @ a[..., None]).squeeze(-1) / W.shape[1] ** 0.5  # (R, N)
        gradient = torch.autograd.grad(((f - y) ** 2).sum() / 2, (W, a))
        W, a = W - rate * gradient[0], a - rate * gradient[1]
    return W.detach(), a.detach()


def draw(paper: Figure, finding: Finding) -> None:
    """The change over the width."""
    import numpy as np

    from ansatz.figures.style import INK, MODEL

    axes, data = paper.subplots(), finding.data
    widths, change = np.array(data["widths"]), np.array(data["change"])
    line = change[-1] * widths[-1] / widths
    root = change[0] * (widths[0] / widths) ** 0.5
    axes.loglog(widths, line, color=MODEL, label="one over the width")
    axes.loglog(widths, root, "--", color=INK, lw=1, label="theorem's bound, 1/√width")
    axes.errorbar(widths, change, 4 * np.array(data["error"]), fmt="o", color=MODEL, ms=5,
                  label="measured, ± 4 standard errors")  # fmt: skip
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")
    axes.set_xticks(widths)
    axes.set(xlabel="hidden units", ylabel="relative change of the kernel")
    axes.set_title("the tangent kernel moves in training; it is constant at infinite width only")
    axes.legend()


claim = Claim(
    id="ntk-constancy",
    title="The tangent kernel is constant only at infinite width",
    statement=(
        "In training the tangent kernel changes by at most the order of 1/√width (here, for one "
        "hidden layer that starts at f = 0, by 1/width), and its variance over random weights is "
        "of the order 1/width. It is constant and deterministic only in the limit of infinite "
        "width; ∂K/∂t = 0 is often stated without that condition."
    ),
    formula=(
        r"\sup_t \frac{\|K_t - K_0\|}{\|K_0\|} = O\bigl(m^{-1/2}\bigr), \qquad "
        r"\mathrm{Var}\, K_0 = O\bigl(m^{-1}\bigr)"
    ),
    sources=("E57", "M333", "M334"),
    measure=measure,
    reference=(
        "Lee et al. (2019), Wide neural networks of any depth evolve as linear models under "
        "gradient descent. https://arxiv.org/abs/1902.06720"
    ),
    full={"widths": (64, 256, 1024, 4096), "runs": 50, "starts": 2_000, "steps": 100},
    errata=(Erratum("E57", "∂K/∂t = 0", "∂K/∂t → 0 as the width → ∞"),),
    draw=draw,
)
