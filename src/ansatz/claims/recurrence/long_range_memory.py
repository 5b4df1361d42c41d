"""The first numbers of a sequence, asked for at its end: which layers learn to keep them."""

import torch
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.layers import LRU, LSTM, Elman, MultiHeadAttention, affine

KINDS = ("RNN", "LSTM", "LRU", "attention")


def measure(
    generator: torch.Generator,
    *,
    lags: tuple[int, ...] = (1, 20, 100),
    steps: int = 100,
    width: int = 16,
    rows: int = 16,
    test: int = 300,
) -> Finding:
    """Trains one layer of each kind by the same steps, at each lag."""
    errors = {}
    for lag in lags:
        x, y = draw_rows(test, lag, generator)
        for kind in KINDS:
            network = Reader(kind, x.shape[-1], y.shape[-1], width, generator)
            train(network, lag, steps, rows, generator)
            with torch.no_grad():
                errors[kind, lag] = (network(x) - y).double().square().mean(1)
    short, middle, long = lags[0], lags[len(lags) // 2], lags[-1]
    checks = []
    for worse, better, lag in (
        ("RNN", "LSTM", middle), ("LSTM", "LRU", long), ("LSTM", "attention", long)
    ):  # fmt: skip
        gain, error = difference(errors[worse, lag], errors[better, lag])
        early, _ = difference(errors[worse, short], errors[better, short])
        checks.append(
            Check(
                f"error of the {worse} minus that of {better} at lag {lag}",
                gain,
                0.25,
                -4 * error,
                "a quarter of the variance, and 4 standard errors of the difference",
                ">=",
                Wrong(f"as at lag {short}", measured=early),
            )
        )
    table = Table(["lag", *KINDS], [
        [lag, *(float(errors[kind, lag].mean()) for kind in KINDS)] for lag in lags
    ])  # fmt: skip
    means = {kind: [float(errors[kind, lag].mean()) for lag in lags] for kind in KINDS}
    bars = {
        kind: [2 * float(errors[kind, lag].std()) / test**0.5 for lag in lags] for kind in KINDS
    }
    return Finding(checks, table, {"lags": lags, "means": means, "bars": bars})


def draw_rows(count: int, lag: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Sequences of two signs, noise and a mark in ``lag + 1`` steps; the signs of the first."""
    x = torch.zeros(count, lag + 1, 4)
    x[:, 0, :2] = 2.0 * torch.randint(2, (count, 2), generator=generator) - 1
    x[..., 2] = torch.randn(count, lag + 1, generator=generator)
    x[:, 0, 3], x[:, -1, 3] = 4, -4
    return x, x[:, 0, :2].clone()


class Reader(nn.Module):
    """One layer between two linear maps; the answer is read at the last step."""

    def __init__(
        self, kind: str, features: int, outputs: int, width: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.entrance = affine(features, width, init="lecun_normal", generator=generator)
        self.layer: nn.Module = {
            "RNN": lambda: Elman(width, width, generator=generator),
            "LSTM": lambda: with_open_gates(LSTM(width, width, generator=generator)),
            "LRU": lambda: LRU(width, width, r_min=0.98, max_phase=0.3, generator=generator),
            "attention": lambda: MultiHeadAttention(width, 1, generator=generator),
        }[kind]()
        self.exit = affine(width, outputs, init="lecun_normal", generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        h = self.entrance(x)
        if isinstance(self.layer, MultiHeadAttention):
            return self.exit(self.layer(h[:, -1:], h).squeeze(1))
        return self.exit(self.layer(h)[0][:, -1])


def with_open_gates(layer: LSTM) -> LSTM:
    """Starts with forget gates at σ(3) = 0.95, as Jozefowicz et al. (2015) advise."""
    with torch.no_grad():
        layer.bias_ih_l0[layer.out_features : 2 * layer.out_features] = 3
    return layer


def train(network: nn.Module, lag: int, steps: int, rows: int, generator: torch.Generator) -> None:
    """Adam on new rows at each step."""
    optimizer = torch.optim.Adam(network.parameters(), 1e-2)
    for step in range(steps):
        x, y = draw_rows(rows, lag, generator)
        optimizer.param_groups[0]["lr"] = 1e-2 * (1 - step / steps)
        optimizer.zero_grad()
        (network(x) - y).square().mean().backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()


def difference(one: Tensor, other: Tensor) -> tuple[float, float]:
    """The mean difference on the same rows and its standard error."""
    gap = one - other
    return float(gap.mean()), float(gap.std()) / len(gap) ** 0.5


def draw(paper: Figure, finding: Finding) -> None:
    """The error of each layer by lag."""
    from ansatz.figures.style import FOURTH, INK, LINEAR, MODEL

    axes, data = paper.subplots(), finding.data
    colours = dict(zip(KINDS, (LINEAR, FOURTH, MODEL, INK), strict=True))
    for number, kind in enumerate(KINDS):
        places = [lag * 1.04 ** (number - 1.5) for lag in data["lags"]]
        axes.errorbar(places, data["means"][kind], data["bars"][kind], fmt="o-", ms=5, lw=1,
                      color=colours[kind], label=kind)  # fmt: skip
    axes.axhline(1, color=INK, lw=0.8, ls=":")
    axes.set_xscale("log")
    axes.set_xticks(data["lags"], [str(lag) for lag in data["lags"]])
    axes.minorticks_off()
    axes.set(xlabel="steps between a number and the answer (lag)", ylim=(-0.05, 1.45),
             ylabel="squared error / variance")  # fmt: skip
    axes.set_title("gates reach further than a plain state, eigenvalues on a ring further yet")
    axes.legend(loc="upper left", ncols=4)


claim = Claim(
    id="long-range-memory",
    title="How far back a layer learns to remember",
    statement=(
        "A sequence begins with numbers that are asked for at its end. After the same training an "
        "RNN has learned this over one step but not over twenty, an LSTM whose forget gates start "
        "open over twenty but not over a hundred, an LRU whose eigenvalues start on a ring near "
        "the unit circle over a hundred. Attention reaches every lag in one step."
    ),
    formula=r"y_T = H(x_1, \dots, x_T) = x_1",
    sources=("M259",),
    measure=measure,
    reference=(
        "Hochreiter and Schmidhuber (1997), Long short-term memory, section 5; Arjovsky, Shah and "
        "Bengio (2016), Unitary evolution recurrent neural networks, sections 5.1 and 5.2. "
        "https://arxiv.org/abs/1511.06464"
    ),
    full={"lags": (1, 5, 20, 50, 100, 200), "steps": 200, "test": 2_000},
    draw=draw,
)
