"""The gated recurrent unit mixes its state with a candidate; it has two forms."""

from typing import get_args

import torch

from ansatz.claims import Check, Claim, Erratum, Finding, Wrong
from ansatz.layers import GRU
from ansatz.layers.gru import Reset


def measure(generator: torch.Generator, *, inputs: int = 3, units: int = 4) -> Finding:
    """Both forms of the layer beside torch's cell: with any matrix, and with a diagonal one."""
    after, before = (
        GRU(inputs, units, reset=reset, generator=generator).double() for reset in get_args(Reset)
    )
    x, h = (torch.randn(5, n, generator=generator, dtype=torch.float64) for n in (inputs, units))
    with torch.no_grad():
        after.bias_hh_l0.zero_()
        before.load_state_dict(after.state_dict())
        theirs = torch.gru_cell(x, h, *after.weights)
        apart = before.step(h, x)[0]
        for layer in (after, before):
            layer.bias_hh_l0[:units] = 1_000  # the reset gate is 1: both forms are one
        open_theirs = torch.gru_cell(x, h, *after.weights)
        ours = before.step(h, x)[0]
        rows = slice(units, 2 * units)  # of the update gate
        gate = torch.sigmoid(
            x @ after.weight_ih_l0[rows].T + h @ after.weight_hh_l0[rows].T + after.bias_ih_l0[rows]
        )
        mixed = gate * h + (1 - gate)
        for layer in (after, before):
            layer.bias_hh_l0.zero_()
        for layer in (after, before):
            own = layer.weight_hh_l0[2 * units :]
            own.copy_(torch.diag(own.diagonal()))
        theirs_diagonal = torch.gru_cell(x, h, *after.weights)
        diagonal = before.step(h, x)[0]
        after.bias_ih_l0[units : 2 * units] = 1_000  # the update gate is 1
        kept = after(x.unsqueeze(0), None, h[:1])[1]
    rounding = 16 * (inputs + units) * 2.0**-52 * float(1 + x.abs().max() + h.abs().max())
    because = "rounding: 16 eps times the number of terms and their size"
    checks = [
        Check(
            "largest difference of our cell from torch's, reset gate 1",
            float((ours - open_theirs).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "the reset gate ζ mixed in its place",
                measured=float((mixed - open_theirs).abs().max()),
                erratum="E52",
            ),
        ),
        Check(
            "largest difference of the paper's cell from torch's, U diagonal",
            float((diagonal - theirs_diagonal).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "any U: torch resets after the product",
                measured=float((apart - theirs).abs().max()),
                erratum="E52",
            ),
        ),
        Check(
            "largest change of the state over 5 steps with an update gate of 1",
            float((kept - h[:1]).abs().max()),
            0.0,
            20 * 2.0**-52 * float(h.abs().max() + 1),
            "rounding of (h - z̃) + z̃: 4 eps times their size at each step",
        ),
    ]
    return Finding(checks)


claim = Claim(
    id="gru-cell",
    title="The gated recurrent unit has two forms",
    statement=(
        "A GRU mixes its state with the candidate, z = σ ⊙ z₋ + (1-σ) ⊙ z̃; the reset gate ζ in "
        "place of the candidate is a common slip. The paper resets the state before the matrix "
        "product and torch after it: two cells, equal only for a diagonal matrix."
    ),
    formula=(
        r"z_t = \sigma_t \odot z_{t-1} + (1 - \sigma_t) \odot \tilde z_t, \qquad "
        r"\tilde z_t = \tanh(V [\zeta_t \odot z_{t-1}, x_t])"
    ),
    sources=("E52", "M250"),
    measure=measure,
    reference=(
        "Cho et al. (2014), Learning phrase representations using RNN encoder-decoder for "
        "statistical machine translation, eqs. 5 to 8. https://arxiv.org/abs/1406.1078"
    ),
    full={"inputs": 64, "units": 64},
    errata=(Erratum("E52", "z = σ ⊙ z₋ + (1-σ) ⊙ ζ", "z = σ ⊙ z₋ + (1-σ) ⊙ z̃"),),
)
