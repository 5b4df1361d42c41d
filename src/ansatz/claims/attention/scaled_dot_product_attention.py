"""Attention: each output is a convex mixture of all values."""

import torch
from scipy import stats
from torch import Tensor

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.layers import attention


def measure(
    generator: torch.Generator,
    *,
    tokens: int = 7,
    sizes: tuple[int, ...] = (4, 16, 64),
    draws: int = 4_000,
) -> Finding:
    """The sum written out beside torch's, and the variance of a score before it is scaled."""
    q, k, v = torch.randn(3, tokens, 8, generator=generator, dtype=torch.float64)
    exact = attention(q, k, v)
    ours = torch.stack([mix(q[i], k, v) for i in range(tokens)])
    printed = torch.stack([mix(q[i], k, v[i].expand(tokens, -1)) for i in range(tokens)])
    variances = [score_variance(d, draws, generator) for d in sizes]
    # q·k has the fourth moment 3d² + 6d, so its variance is estimated to this.
    errors = [(((3 * d * d + 6 * d) - d * d) / draws) ** 0.5 for d in sizes]
    limit = float(stats.norm.isf(1e-5 / (2 * len(sizes))))
    worst = max(abs(x - d) / e for x, d, e in zip(variances, sizes, errors, strict=True))
    scale = max(abs(x - 1) / e for x, e in zip(variances, errors, strict=True))
    rounding = 64 * tokens * 2.0**-52
    checks = [
        Check(
            "largest difference of Σ_t softmax_t(ω_i) v_t from torch's attention",
            float((ours - exact).abs().max()),
            0.0,
            rounding * float(v.abs().max()),
            "rounding: 64 n eps times the largest value",
            wrong=Wrong(
                "v_i in place of v_t",
                measured=float((printed - exact).abs().max()),
                erratum="E45",
            ),
        ),
        Check(
            "largest output beyond the range of the values",
            float(torch.maximum(ours - v.amax(0), v.amin(0) - ours).max()),
            0.0,
            rounding * float(v.abs().max()),
            "rounding, as above: mixtures are convex",
            "<=",
        ),
        Check(
            "largest deviation of Var(q·k) from d, in standard errors",
            worst,
            0.0,
            limit + 3 * limit**2 / draws**0.5,
            "normal quantile at 1e-5 for all sizes; the second term for skew",
            wrong=Wrong("variance 1 without the division by √d", measured=scale),
        ),
    ]
    table = Table(["d", "Var(q·k)", "standard error"], [
        list(row) for row in zip(sizes, variances, errors, strict=True)
    ])  # fmt: skip
    return Finding(checks, table, {"sizes": sizes, "variances": variances, "errors": errors})


def mix(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """One output: Σ_t softmax_t(q·k_t / √d) v_t."""
    weight = torch.softmax(k @ q / len(q) ** 0.5, 0)
    return torch.stack([w * each for w, each in zip(weight, v, strict=True)]).sum(0)


def score_variance(size: int, draws: int, generator: torch.Generator) -> float:
    """Of q·k for independent standard normal q and k."""
    q, k = torch.randn(2, draws, size, generator=generator, dtype=torch.float64)
    return float(((q * k).sum(1) ** 2).mean())


def draw(paper: Figure, finding: Finding) -> None:
    """The variance of a score over its dimension."""
    from ansatz.figures.style import INK, LINEAR, MODEL

    axes, data = paper.subplots(), finding.data
    axes.loglog(data["sizes"], data["sizes"], color=MODEL, label="d")
    axes.errorbar(data["sizes"], data["variances"], [4 * e for e in data["errors"]], fmt="o",
                  color=INK, ms=5, label="measured Var(q·k), ± 4 standard errors")  # fmt: skip
    scaled = [x / d for x, d in zip(data["variances"], data["sizes"], strict=True)]
    axes.loglog(data["sizes"], scaled, "s", color=LINEAR, label="Var(q·k/√d)")
    axes.axhline(1, color=LINEAR, lw=0.8)
    axes.set_xticks(data["sizes"], [str(d) for d in data["sizes"]])
    axes.set_yticks([1, 10, 100], ["1", "10", "100"])
    axes.minorticks_off()
    axes.set(xlabel="dimension d of queries and keys", ylabel="variance of a score")
    axes.set_title("scores grow with the dimension; dividing by √d keeps the softmax soft")
    axes.legend(loc="upper left")


claim = Claim(
    id="scaled-dot-product-attention",
    title="Attention mixes the values of all tokens",
    statement=(
        "The output at i is the sum over t of softmax_t(q_i·k_t/√d) v_t, a convex mixture of all "
        "values. The score q·k has the variance d, and the division by √d removes it. A common "
        "slip has v_i in the sum, which returns to each token its own value."
    ),
    formula=(
        r"\xi_i = \sum_t \mathrm{softmax}_t\Bigl(\frac{q_i^\top k_t}{\sqrt d}\Bigr) v_t, \qquad "
        r"\mathrm{Var}(q^\top k) = d"
    ),
    sources=("E45", "M262"),
    measure=measure,
    reference=(
        "Vaswani et al. (2017), Attention is all you need, eq. 1. https://arxiv.org/abs/1706.03762"
    ),
    full={"sizes": (4, 16, 64, 256, 1024), "draws": 20_000},
    errata=(Erratum("E45", "Σ softmax_t(ω_i) v_i", "Σ_t softmax_t(ω_i) v_t"),),
    draw=draw,
)
