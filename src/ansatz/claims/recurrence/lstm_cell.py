"""The cell of long short-term memory, equation by equation."""

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Erratum, Finding, Wrong


def measure(generator: torch.Generator, *, inputs: int = 3, units: int = 4) -> Finding:
    """The equations beside torch's cell; gates of 0 and 1; the weights."""

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    x, h, c = normal(5, inputs), normal(5, units), 2 * normal(5, units)
    W, U, b, b2 = normal(4 * units, inputs), normal(4 * units, units), *normal(2, 4 * units)
    theirs, their_c = torch.lstm_cell(x, (h, c), W, U, b, b2)
    i, f, g, o = (x @ W.T + h @ U.T + b + b2).chunk(4, 1)
    new_c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    right = torch.sigmoid(o) * torch.tanh(new_c)
    plain = torch.sigmoid(o) * new_c
    extra = torch.sigmoid(o) * torch.tanh(new_c @ normal(units, units).T)
    swapped = torch.sigmoid(f) * c + torch.sigmoid(g) * torch.tanh(i)
    far = torch.zeros(4 * units, dtype=torch.float64)
    far[:units], far[units : 2 * units] = -1_000, 1_000  # i = 0, f = 1
    kept = torch.lstm_cell(x, (h, c), W, U, far, b2)[1]
    size = float(1 + (x @ W.T + h @ U.T).abs().max())
    rounding = 16 * (inputs + units) * 2.0**-52 * size
    because = "rounding: 16 eps times the number of terms and their size"
    weights = 4 * units * (inputs + units) + 8 * units
    counted = sum(weight.numel() for weight in (W, U, b, b2))
    checks = [
        Check(
            "largest difference of o ⊙ tanh(c) from torch's cell",
            float((right - theirs).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "o ⊙ c", measured=float((plain - theirs).abs().max()), erratum="E51"
            ),
        ),
        Check(
            "largest difference of the state c",
            float((new_c - their_c).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "input gate and candidate exchanged",
                measured=float((swapped - their_c).abs().max()),
                erratum="E51",
            ),
        ),
        Check(
            "weights",
            counted,
            weights,
            0,
            "whole numbers",
            wrong=Wrong(
                "o ⊙ tanh(Uc) has one more matrix",
                measured=counted + units * units,
                erratum="E51",
            ),
        ),
        Check(
            "largest difference of o ⊙ tanh(Uc) with U = I",
            float((torch.sigmoid(o) * torch.tanh(new_c @ torch.eye(units).double()) - theirs)
                  .abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong("any other U", measured=float((extra - theirs).abs().max())),
        ),
        Check(
            "largest change of c when f = 1 and i = 0",
            float((kept - c).abs().max()),
            0.0,
            2.0**-52,
            "the sigmoid of 1000 is 1 to rounding",
        ),
    ]  # fmt: skip
    return Finding(checks)


claim = Claim(
    id="lstm-cell",
    title="The LSTM cell",
    statement=(
        "The output of an LSTM cell is o ⊙ tanh(c), and with f = 1, i = 0 the state stays for "
        "ever, as in torch. Common slips are o ⊙ c, o ⊙ tanh(Uc) with a matrix that the cell does "
        "not have, and the names of input gate and candidate exchanged."
    ),
    formula=(
        r"c_t = f \odot c_{t-1} + i \odot \tanh(W_g x + U_g h + b_g), \qquad "
        r"h_t = o \odot \tanh(c_t)"
    ),
    sources=("E51", "M249"),
    measure=measure,
    reference=(
        "Gers, Schmidhuber and Cummins (2000), Learning to forget: continual prediction with LSTM. "
        "https://doi.org/10.1162/089976600300015015"
    ),
    full={"inputs": 64, "units": 64},
    errata=(Erratum("E51", "h = o ⊙ c, or o ⊙ tanh(Uc)", "h = o ⊙ tanh(c)"),),
)
