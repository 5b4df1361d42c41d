"""A GRU has three pairs of weight matrices, an LSTM four; a step costs the same at any length."""

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.flop_counter import FlopCounterMode

from ansatz.claims import Check, Claim, Finding, Table, Wrong


def measure(generator: torch.Generator, *, inputs: int = 24, units: int = 40) -> Finding:
    """Counts weights, and the operations that one more token takes after a long context."""
    with torch.device("meta"):
        kinds = {"RNN": nn.RNN, "GRU": nn.GRU, "LSTM": nn.LSTM}
        counts = {k: sum(p.numel() for p in kind(inputs, units).parameters())
                  for k, kind in kinds.items()}  # fmt: skip
    blocks = {k: count / counts["RNN"] for k, count in counts.items()}
    lengths = (64, 128, 256, 512)
    recurrent = [recurrent_step(inputs, units) for _ in lengths]
    attention = [attention_step(units, length) for length in lengths]
    growth = (attention[-1] - attention[-2]) / (lengths[-1] - lengths[-2])
    checks = [
        Check(
            "pairs of weight matrices of a GRU", blocks["GRU"], 3, 0, "whole numbers",
            wrong=Wrong("the LSTM's", measured=blocks["LSTM"]),
        ),
        Check(
            "pairs of weight matrices of an LSTM", blocks["LSTM"], 4, 0, "whole numbers",
            wrong=Wrong("five, as often printed", predicted=5),
        ),
        Check(
            "weights of a GRU",
            counts["GRU"],
            3 * (units * inputs + units * units + 2 * units),
            0,
            "whole numbers: W, U and two biases for each block",
            wrong=Wrong("one bias for each", predicted=3 * (units * inputs + units**2 + units)),
        ),
        Check(
            "operations of attention for one more token, per token of context",
            growth,
            4 * units,
            0,
            "whole numbers: a product with each key and each value, 2 per weight",
            wrong=Wrong("as for a GRU: none", predicted=(recurrent[-1] - recurrent[-2]) / 256),
        ),
    ]  # fmt: skip
    table = Table(["context", "GRU", "attention"], [
        [length, r, a] for length, r, a in zip(lengths, recurrent, attention, strict=True)
    ])  # fmt: skip
    return Finding(checks, table)


def recurrent_step(inputs: int, units: int) -> int:
    """Operations of a GRU for one token: its state is all it has of the context."""
    cell = nn.GRUCell(inputs, units)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        cell(torch.zeros(1, inputs), torch.zeros(1, units))
    return counter.get_total_flops()


def attention_step(units: int, length: int) -> int:
    """Operations of attention for one token with all keys and values kept."""
    query, kept = torch.zeros(1, 1, 1, units), torch.zeros(1, 1, length, units)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            scaled_dot_product_attention(query, kept, kept)
    return counter.get_total_flops()


claim = Claim(
    id="gate-counts",
    title="A GRU has three weight blocks, an LSTM four",
    statement=(
        "A GRU has three pairs of weight matrices (W for inputs, U for states), an LSTM four; five "
        "is a common slip. A recurrent network takes the same number of operations for each new "
        "token; attention takes 4d more for every token of context."
    ),
    formula=r"\# = G\,(h d + h^2 + 2h), \qquad G_{\mathrm{GRU}} = 3,\; G_{\mathrm{LSTM}} = 4",
    sources=("M440",),
    measure=measure,
    reference=(
        "Cho et al. (2014), Learning phrase representations using RNN encoder-decoder. "
        "https://arxiv.org/abs/1406.1078"
    ),
    full={"inputs": 128, "units": 256},
)
