"""Causal attention: no output depends on a later input."""

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.layers import KeyValueCache, MultiHeadAttention


def measure(
    generator: torch.Generator, *, steps: int = 9, features: int = 8, heads: int = 2
) -> Finding:
    """Derivatives of outputs in inputs, with and without the mask; a cache; one head; a context."""
    x = torch.randn(1, steps, features, generator=generator, dtype=torch.float64)
    causal = MultiHeadAttention(features, heads, causal=True, generator=generator).double()
    free = MultiHeadAttention(features, heads).double()
    free.load_state_dict(causal.state_dict())
    for layer in (causal, free):
        layer.requires_grad_(False)
    masked, open_ = (influence(layer, x) for layer in (causal, free))
    later = torch.ones(steps, steps, dtype=torch.bool).triu(1)
    cache = KeyValueCache()
    in_turn = torch.cat([causal(x[:, t : t + 1], cache=cache) for t in range(steps)], 1)
    fresh = torch.cat([causal(x[:, t : t + 1]) for t in range(steps)], 1)
    one = MultiHeadAttention(features, 1, generator=generator).double().requires_grad_(False)
    size = float(x.abs().max())
    rounding = 64 * steps * features * EPS * size
    because = "rounding: 64 eps for each term of the sums"
    checks = [
        Check(
            "largest derivative of an output in a later input",
            float(masked[later].max()),
            0.0,
            0.0,
            "exact: a weight of zero",
            wrong=Wrong("without the mask", measured=float(open_[later].max())),
        ),
        Check(
            "least derivative of an output in its own or an earlier input",
            float(masked[~later].min()),
            rounding,
            0.0,
            "beyond rounding: the whole past is seen",
            ">=",
            Wrong("of a later input", measured=float(masked[later].max())),
        ),
        Check(
            "largest difference of one token at a time, with a cache, from all at once",
            float((in_turn - causal(x)).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong("without a cache", measured=float((fresh - causal(x)).abs().max())),
        ),
        Check(
            "largest difference of one head from softmax(QKᵀ/√d)V between linear maps",
            float((one(x) - written_out(one, x)).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "several heads of the same weights",
                measured=float((free(x) - written_out(free, x)).abs().max()),
            ),
        ),
        Check(
            "largest difference of cross-attention to itself from self-attention",
            float((free(x, x) - free(x)).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "to another context",
                measured=float((free(x, x.flip(2)) - free(x)).abs().max()),
            ),
        ),
    ]
    return Finding(checks, data={"causal": masked, "free": open_})


def influence(layer: MultiHeadAttention, x: Tensor) -> Tensor:
    """The size of the derivative of each output (rows) in each input (columns)."""
    J = torch.autograd.functional.jacobian(lambda z: layer(z)[0], x)  # (T, D, 1, T, D)
    found: Tensor = torch.linalg.matrix_norm(J.squeeze(2).permute(0, 2, 1, 3))
    return found


def written_out(layer: MultiHeadAttention, x: Tensor) -> Tensor:
    """One attention on all features."""
    q, k, v = (x @ W.T + b for W, b in zip(
        layer.in_proj_weight.chunk(3), layer.in_proj_bias.chunk(3), strict=True
    ))  # fmt: skip
    a = (q @ k.transpose(1, 2) / x.shape[-1] ** 0.5).exp()
    return layer.out_proj(a / a.sum(-1, keepdim=True) @ v)


def draw(paper: Figure, finding: Finding) -> None:
    """Influence of each input on each output."""
    plots = paper.subplots(1, 2, sharey=True)
    top = max(float(finding.data[name].max()) for name in ("causal", "free"))
    for axes, name in zip(plots, ("free", "causal"), strict=True):
        image = axes.imshow(finding.data[name], vmin=0, vmax=top, cmap="viridis")
        axes.set(xlabel="input t", title=f"{name} attention")
    plots[0].set(ylabel="output i")
    paper.colorbar(image, ax=list(plots), label="size of the derivative")


claim = Claim(
    id="causal-attention",
    title="Causal attention looks back only",
    statement=(
        "With the mask t ≤ i no output of attention depends on a later input, and each depends on "
        "its whole past; so keys and values of earlier tokens can be kept and a token at a time "
        "gives what all at once give. One head is plain attention between linear maps, and "
        "cross-attention to the inputs themselves is self-attention."
    ),
    formula=(
        r"y_i = \sum_{t \le i} \mathrm{softmax}_{t \le i}\Bigl(\frac{q_i^\top k_t}{\sqrt d}\Bigr) "
        r"v_t, \qquad \frac{\partial y_i}{\partial x_t} = 0 \text{ for } t > i"
    ),
    sources=("M263", "M264", "M265"),
    measure=measure,
    reference=(
        "Vaswani et al. (2017), Attention is all you need, section 3.2. "
        "https://arxiv.org/abs/1706.03762"
    ),
    full={"steps": 40, "features": 32, "heads": 4},
    draw=draw,
)
