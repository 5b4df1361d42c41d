"""The gated recurrent unit mixes its state with a candidate; it has two forms."""

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Erratum, Finding, Wrong


def measure(generator: torch.Generator, *, inputs: int = 3, units: int = 4) -> Finding:
    """Both cells beside torch's: with any matrix, and with a diagonal one."""

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    x, h = normal(5, inputs), normal(5, units)
    W, U, b = normal(3 * units, inputs), normal(3 * units, units), normal(3 * units)
    none = torch.zeros(3 * units, dtype=torch.float64)
    diagonal = U.clone()
    diagonal[2 * units :] = torch.diag(normal(units))
    theirs = torch.gru_cell(x, h, W, U, b, none)
    theirs_diagonal = torch.gru_cell(x, h, W, diagonal, b, none)
    after = cell(x, h, W, U, b, reset_after=True)
    before = cell(x, h, W, diagonal, b, reset_after=False)
    apart = cell(x, h, W, U, b, reset_after=False)
    mixed = cell(x, h, W, U, b, reset_after=True, printed=True)
    far = b.clone()
    far[units : 2 * units] = 1_000  # the update gate is 1
    size = float(1 + (x @ W.T).abs().max() + (h @ U.T).abs().max())
    rounding = 16 * (inputs + units) * 2.0**-52 * size
    because = "rounding: 16 eps times the number of terms and their size"
    checks = [
        Check(
            "largest difference of the mix with the candidate from torch's cell",
            float((after - theirs).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "the reset gate ζ mixed in its place",
                measured=float((mixed - theirs).abs().max()),
                erratum="E52",
            ),
        ),
        Check(
            "largest difference of the paper's cell from torch's, U diagonal",
            float((before - theirs_diagonal).abs().max()),
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
            "largest change of the state when the update gate is 1",
            float((torch.gru_cell(x, h, W, U, far, none) - h).abs().max()),
            0.0,
            4 * 2.0**-52 * float(h.abs().max() + 1),
            "rounding of (h - z̃) + z̃: 4 eps times their size",
        ),
    ]
    return Finding(checks)


def cell(
    x: Tensor, h: Tensor, W: Tensor, U: Tensor, b: Tensor, *, reset_after: bool,
    printed: bool = False,
) -> Tensor:  # fmt: skip
    """u ⊙ h + (1 - u) ⊙ candidate; the rows of W, U, b belong to reset, update, candidate."""
    W_r, W_u, W_n = W.chunk(3)
    U_r, U_u, U_n = U.chunk(3)
    b_r, b_u, b_n = b.chunk(3)
    reset = torch.sigmoid(x @ W_r.T + h @ U_r.T + b_r)
    update = torch.sigmoid(x @ W_u.T + h @ U_u.T + b_u)
    memory = reset * (h @ U_n.T) if reset_after else (reset * h) @ U_n.T
    candidate = torch.tanh(x @ W_n.T + memory + b_n)
    return update * h + (1 - update) * (reset if printed else candidate)


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
