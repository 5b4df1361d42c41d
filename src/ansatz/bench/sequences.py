"""Measures the speed of recurrent layers, both passes, beside torch's and beside other scans."""

from collections.abc import Callable
from typing import Any

from ansatz.bench.finding import BenchOptions, Bound, Finding
from ansatz.bench.race import race

WIDTH = 128


def speed_sequences(options: BenchOptions) -> list[Finding]:
    """Measures minGRU on long sequences, and the variants of the LSTM."""
    cases = {"mingru": _mingru, "length": _length, "lstm-variants": _variants}
    return [finding for name in options.pick(cases) for finding in cases[name](options)]


def _mingru(options: BenchOptions) -> list[Finding]:
    """8 x 4,096 steps."""
    import torch

    from ansatz.layers import MinGRU

    layer, gru = MinGRU(WIDTH, WIDTH), torch.nn.GRU(WIDTH, WIDTH, batch_first=True)
    x = torch.randn(8, 4096, WIDTH)
    runs = {
        "ours": _passes(lambda: layer(x)[0]),
        "torch.nn.GRU": _passes(lambda: gru(x)[0]),
        "Hillis-Steele scan": _passes(lambda: doubling_scan(*layer.gate(x))),
        "layer without its scan": _passes(lambda: layer.gate(x)[1]),
    }
    limit = {
        "torch.nn.GRU": Bound(at_least=8.0),
        "Hillis-Steele scan": Bound(at_least=4.0),
        "layer without its scan": Bound(at_most=1.5),
    }
    found = race(runs, rounds=options.rounds or 9, seed=options.seed, notify=options.notify)
    return [Finding.of("mingru", found, limit)]


def _length(options: BenchOptions) -> list[Finding]:
    """As many steps in long sequences as in short ones."""
    import torch

    from ansatz.layers import MinGRU

    layer = MinGRU(WIDTH, WIDTH)
    long, short = torch.randn(2, 16_384, WIDTH), torch.randn(32, 1_024, WIDTH)
    runs = {
        "2 x 16,384": _passes(lambda: layer(long)[0]),
        "32 x 1,024": _passes(lambda: layer(short)[0]),
    }
    found = race(runs, rounds=options.rounds or 15, seed=options.seed, notify=options.notify)
    return [Finding.of("length", found, {"32 x 1,024": Bound(at_most=1.1)}, us="2 x 16,384")]


def _variants(options: BenchOptions) -> list[Finding]:
    """32 x 100 steps."""
    import torch

    from ansatz.layers import LSTM

    x = torch.randn(32, 100, WIDTH)
    torchs = torch.nn.LSTM(WIDTH, WIDTH, batch_first=True)
    layers = {
        "lstm-layer-norm": LSTM(WIDTH, WIDTH, norm="layer"),
        "lstm-peephole": LSTM(WIDTH, WIDTH, peephole=True),
    }
    runs = {name: _passes(lambda layer=layer: layer(x)[0]) for name, layer in layers.items()}  # type: ignore[misc]
    runs["torch.nn.LSTM"] = _passes(lambda: torchs(x)[0])
    found = race(runs, rounds=options.rounds or 15, seed=options.seed, notify=options.notify)
    limit = {"torch.nn.LSTM": Bound(at_most=2.0)}
    return [
        Finding.of(name, found.among([name, "torch.nn.LSTM"]), dict(limit), us=name)
        for name in layers
    ]


def _passes(forward: Callable[[], Any]) -> Callable[[], None]:
    return lambda: forward().sum().backward()


def doubling_scan(a: Any, b: Any) -> Any:
    """The recurrence by pairs at doubling distances: log2 T passes over all steps."""
    import torch

    step = 1
    while step < b.shape[1]:
        later = torch.addcmul(b[:, step:], a[:, step:], b[:, :-step])
        b = torch.cat([b[:, :step], later], 1)
        a = torch.cat([a[:, :step], a[:, step:] * a[:, :-step]], 1)
        step *= 2
    return b
