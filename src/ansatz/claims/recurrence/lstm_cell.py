"""The cell of long short-term memory, equation by equation."""

from typing import get_args

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Erratum, Finding, Wrong
from ansatz.layers import LSTM
from ansatz.layers.lstm import Output


def measure(generator: torch.Generator, *, inputs: int = 3, units: int = 4) -> Finding:
    """The layer beside torch's cell, its variants, gates of 0 and 1, and the weights."""
    layers = {
        kind: LSTM(inputs, units, output=kind, generator=generator).double()
        for kind in get_args(Output)
    }
    # Peepholes of 0: the plain cell by our own equations, where the layer calls torch's kernel.
    layer = layers["tanh"] = LSTM(inputs, units, peephole=True, generator=generator).double()
    torch.nn.init.zeros_(layer.peephole)  # type: ignore[arg-type]
    x, h, c = (
        torch.randn(5, n, generator=generator, dtype=torch.float64) for n in (inputs, units, units)
    )
    c = 2 * c
    torchs = torch.nn.LSTMCell(inputs, units).double()
    weights = {k: w for k, w in layer.state_dict().items() if k != "peephole"}
    torchs.load_state_dict({k.removesuffix("_l0"): w for k, w in weights.items()})
    for other in (layers["plain"], layers["matrix"]):
        other.load_state_dict(weights, strict=False)
    with torch.no_grad():
        theirs, their_c = torchs(x, (h, c))
        right, new_c = layer.step((h, c), x)[0]
        plain = layers["plain"].step((h, c), x)[1]
        extra = layers["matrix"].step((h, c), x)[1]
        swap = LSTM(inputs, units).double()
        swap.load_state_dict({k: exchange(w) for k, w in weights.items()})
        swapped = swap.step((h, c), x)[0][1]
        layers["matrix"].readout.copy_(torch.eye(units))  # type: ignore[union-attr]
        identity = layers["matrix"].step((h, c), x)[1]
        shut = LSTM(inputs, units).double()
        for weight in shut.parameters():
            weight.zero_()
        shut.bias_ih_l0[:units], shut.bias_ih_l0[units : 2 * units] = -1_000, 1_000  # i = 0, f = 1
        kept = shut(x.unsqueeze(0), None, (h[:1], c[:1]))[1][1]
    rounding = 16 * (inputs + units) * 2.0**-52 * float(1 + x.abs().max() + h.abs().max())
    because = "rounding: 16 eps times the number of terms and their size"
    counted = sum(weight.numel() for weight in LSTM(inputs, units).parameters())
    more = sum(weight.numel() for weight in layers["matrix"].parameters())
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
            4 * units * (inputs + units) + 8 * units,
            0,
            "whole numbers",
            wrong=Wrong("o ⊙ tanh(Uc) has one more matrix", measured=more, erratum="E51"),
        ),
        Check(
            "largest difference of o ⊙ tanh(Uc) with U = I",
            float((identity - theirs).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong("any other U", measured=float((extra - theirs).abs().max())),
        ),
        Check(
            "largest change of c over 5 steps with f = 1 and i = 0",
            float((kept - c[:1]).abs().max()),
            0.0,
            2.0**-52,
            "the sigmoid of 1000 is 1 to rounding",
        ),
    ]  # fmt: skip
    return Finding(checks)


def exchange(weight: Tensor) -> Tensor:
    """The blocks of the input gate and of the candidate in each other's place."""
    i, f, g, o = weight.chunk(4)
    return torch.cat([g, f, i, o])


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
