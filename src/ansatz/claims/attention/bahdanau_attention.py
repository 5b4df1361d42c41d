"""A decoder's context: a mixture of the encoder's states, whose weights sum to one."""

import numpy as np
import torch

from ansatz.claims import Check, Claim, Erratum, Finding, Wrong
from ansatz.layers import BahdanauAttention


def measure(generator: torch.Generator, *, source: int = 6, target: int = 6) -> Finding:
    """Contexts from additive scores; constant states must give that constant."""

    def normal(*shape: int) -> np.ndarray:
        found: np.ndarray = torch.randn(*shape, generator=generator, dtype=torch.float64).numpy()
        return found

    decoder, encoder = normal(target, 3), normal(source, 4)
    layer = BahdanauAttention(3, 4, 5, generator=generator).double()
    with torch.no_grad():
        states = (torch.from_numpy(part).unsqueeze(0) for part in (decoder, encoder))
        context, a = (part.squeeze(0).numpy() for part in layer(*states))
    exact = np.stack([np.average(encoder, axis=0, weights=row) for row in a])
    constant = np.ones((source, 4))
    printed = a.T @ constant[:target]  # c_t = Σ_i a_it ζ_i
    rounding = 16 * source * 2.0**-52
    because = "rounding: 16 n eps"
    outside = np.maximum(context - encoder.max(0), encoder.min(0) - context)
    checks = [
        Check(
            "largest change of a constant: Σ_j a_ij ζ for equal ζ",
            float(np.abs(a @ constant - 1).max()),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "Σ_i a_it ζ_i over the wrong index",
                measured=float(np.abs(printed - 1).max()),
                erratum="E46",
            ),
        ),
        Check(
            "largest difference from a weighted average",
            float(np.abs(context - exact).max()),
            0.0,
            rounding * float(np.abs(encoder).max()),
            because,
            wrong=Wrong(
                "Σ_i a_it ζ_i over the wrong index",
                measured=float(np.abs(a.T @ encoder[:target] - exact).max()),
                erratum="E46",
            ),
        ),
        Check(
            "largest context beyond the range of the states",
            float(outside.max()),
            0.0,
            rounding * float(np.abs(encoder).max()),
            because,
            "<=",
        ),
        Check("largest |row sum - 1|", float(np.abs(a.sum(1) - 1).max()), 0.0, rounding, because),
    ]
    return Finding(checks)


claim = Claim(
    id="bahdanau-attention",
    title="The context of a decoder step is an average of encoder states",
    statement=(
        "With weights a_ij = softmax over j, the context of step i is the sum over j of a_ij ζ_j: "
        "an average, which returns a constant unchanged. A common slip sums a_it ζ_i over i, along "
        "which the weights do not sum to 1."
    ),
    formula=(
        r"c_i = \sum_j a_{ij} \zeta_j, \qquad a_{ij} = \mathrm{softmax}_j\bigl(u^\top "
        r"\tanh(W z_{i-1} + U \zeta_j)\bigr)"
    ),
    sources=("E46", "M258"),
    measure=measure,
    reference=(
        "Bahdanau, Cho and Bengio (2015), Neural machine translation by jointly learning to align "
        "and translate, eqs. 5 and 6. https://arxiv.org/abs/1409.0473"
    ),
    full={"source": 100, "target": 100},
    errata=(Erratum("E46", "c_t = Σ_i a_it ζ_i", "c_i = Σ_j a_ij ζ_j"),),
)
