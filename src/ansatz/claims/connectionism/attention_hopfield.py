"""One step of the log-sum-exp memory is softmax attention, and lowers its energy."""

import torch
from torch.nn.functional import scaled_dot_product_attention

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.connectionism import DenseAssociativeMemory
from ansatz.figures.style import LINEAR, MODEL, THIRD


def measure(
    generator: torch.Generator, *, patterns: int = 30, features: int = 16, states: int = 40
) -> Finding:
    """The step beside torch's attention, beside the gradient of the energy, and its energy."""
    X = torch.randn(patterns, features, generator=generator, dtype=torch.float64)
    x = torch.randn(states, features, generator=generator, dtype=torch.float64)
    memory = DenseAssociativeMemory(X, beta=features**-0.5)
    attention = scaled_dot_product_attention(x, X, X)
    leaf = x.clone().requires_grad_()
    (slope,) = torch.autograd.grad(memory.energy(leaf).sum(), leaf)
    eps = torch.finfo(torch.float64).eps
    rounding = 4 * (patterns + features) * eps * float(X.abs().max())
    paths = {beta: energies(X, x, beta) for beta in (0.1, features**-0.5, 1.0)}
    largest = max(float(path.abs().max()) for path in paths.values())
    plain = DenseAssociativeMemory(X, beta=1.0).step(x)
    checks = [
        Check(
            "largest difference of a step from softmax attention",
            float((memory.step(x) - attention).abs().max()),
            0,
            rounding,
            "rounding: sums of patterns and features, 4 eps each",
            wrong=Wrong("β = 1, not 1/√d", measured=float((plain - attention).abs().max())),
        ),
        Check(
            "largest difference of a step from ξ − ∇E(ξ)",
            float((memory.step(x) - (x - slope)).abs().max()),
            0,
            rounding + 4 * eps * float(x.abs().max()),
            "rounding: sums of patterns and features, 4 eps each",
            wrong=Wrong(
                "the energy without ½‖ξ‖²",
                measured=float((memory.step(x) - (x - (slope - x))).abs().max()),
            ),
        ),
        Check(
            "largest rise of the energy in one step",
            max(float(path.diff(dim=0).max()) for path in paths.values()),
            0,
            4 * (patterns + features) * eps * largest,
            "rounding: sums of patterns and features, 4 eps each",
            relation="<=",
            wrong=Wrong(
                "the log-sum-exp with a plus",
                measured=max(
                    float(energies(X, x, beta, sign=1.0).diff(dim=0).max()) for beta in paths
                ),
            ),
        ),
    ]
    return Finding(checks, data={"paths": {beta: p.numpy() for beta, p in paths.items()}})


def energies(X: torch.Tensor, x: torch.Tensor, beta: float, sign: float = -1.0) -> torch.Tensor:
    """±lse(β, Xξ) + ½‖ξ‖² along the steps of the memory, (steps + 1, B)."""
    memory, found = DenseAssociativeMemory(X, beta=beta), []
    for _ in range(8):
        lse = (beta * x @ X.T).logsumexp(-1) / beta
        found.append(sign * lse + 0.5 * x.square().sum(-1))
        x = memory.step(x)
    return torch.stack(found)


def draw(paper: Figure, finding: Finding) -> None:
    """The energy along the steps, for three temperatures."""
    panels = paper.subplots(1, 3)
    for panel, (beta, path), colour in zip(
        panels, finding.data["paths"].items(), (THIRD, MODEL, LINEAR), strict=True
    ):
        panel.plot(path[:, :15], color=colour, lw=0.9)
        panel.set(title=f"β = {beta:.3g}", xlabel="steps of attention")
    panels[0].set_ylabel("energy E(ξ)")
    paper.suptitle("each step of attention lowers the energy of the memory", fontsize=9.5)


claim = Claim(
    id="attention-hopfield",
    title="Attention is one step of a Hopfield network",
    statement=(
        "In the memory with the log-sum-exp energy, one update of a continuous state is softmax "
        "attention: the state is the query, the patterns are keys and values, and β is 1/√d. The "
        "new state is the old one minus the gradient of the energy, and the energy never rises."
    ),
    formula=(
        r"E(\xi) = -\tfrac{1}{\beta} \log \sum_t e^{\beta x_t^\top \xi} + "
        r"\tfrac{1}{2} \lVert \xi \rVert^2, \qquad "
        r"\xi' = \xi - \nabla E(\xi) = X^\top \mathrm{softmax}(\beta X \xi)"
    ),
    sources=("M020",),
    measure=measure,
    reference="Ramsauer et al. (2020), Hopfield networks is all you need. "
    "https://arxiv.org/abs/2008.02217",
    full={"patterns": 300, "features": 64, "states": 400},
    draw=draw,
)
