"""Measures recurrent layers beside torch's and other scans, and a small GPT beside its peers."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from ansatz.bench.finding import BenchOptions, Bound, Finding
from ansatz.bench.race import race

WIDTH = 128


def speed_sequences(options: BenchOptions) -> list[Finding]:
    """Measures minGRU on long sequences, the LSTM and its variants, and a GPT."""
    cases = {
        "mingru": _mingru,
        "length": _length,
        "lstm": _lstm,
        "gpt-step": _gpt_step,
        "gpt-generate": _gpt_generate,
    }
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


def _lstm(options: BenchOptions) -> list[Finding]:
    """32 x 100 steps."""
    import torch

    from ansatz.layers import LSTM

    x = torch.randn(32, 100, WIDTH)
    torchs = torch.nn.LSTM(WIDTH, WIDTH, batch_first=True)
    layers = {
        "lstm": (LSTM(WIDTH, WIDTH), 1.05),
        "lstm-layer-norm": (LSTM(WIDTH, WIDTH, norm="layer"), 2.0),
        "lstm-peephole": (LSTM(WIDTH, WIDTH, peephole=True), 2.0),
    }
    runs = {name: _passes(lambda layer=layer: layer(x)[0]) for name, (layer, _) in layers.items()}  # type: ignore[misc]
    runs["torch.nn.LSTM"] = _passes(lambda: torchs(x)[0])
    found = race(runs, rounds=options.rounds or 15, seed=options.seed, notify=options.notify)
    return [
        Finding.of(
            name,
            found.among([name, "torch.nn.LSTM"]),
            {"torch.nn.LSTM": Bound(at_most=most)},
            us=name,
        )
        for name, (_, most) in layers.items()
    ]


def _gpt_step(options: BenchOptions) -> list[Finding]:
    """Training 4 blocks of width 128, 64 tokens, batches of 12; all steps of a run."""
    from ansatz.bench.gpt_task import TRAINERS, GPTTask

    task = GPTTask()
    trainers, missing = dict(TRAINERS), _without_transformers(["Hugging Face Trainer"])
    for name in missing:
        del trainers[name]
    runs = {name: lambda train=train: train(task) for name, train in trainers.items()}
    found = race(runs, rounds=options.rounds or 7, seed=options.seed, notify=options.notify)
    limit = {"plain torch": Bound(at_most=1.03), "Hugging Face Trainer": Bound(at_least=1.2)}
    facts = {"steps": task.steps}
    return [Finding.of("gpt-step", found, limit, missing=missing, facts=facts)]


def _gpt_generate(options: BenchOptions) -> list[Finding]:
    """512 new tokens of one text, the most probable each time."""
    import torch

    from ansatz.bench.gpt_task import GPTTask, hugging_face, our_network
    from ansatz.networks import generate

    task, tokens, prompt = GPTTask(), 512, torch.ones(1, 8, dtype=torch.long)
    network = our_network(task, 1_024).eval()
    runs: dict[str, Callable[[], Any]] = {
        "ours": lambda: generate(network, prompt, tokens),
        "uncached": lambda: generate(network, prompt, tokens, cache=False),
    }
    missing = _without_transformers(["transformers.generate"])
    if not missing:
        theirs = hugging_face(task, 1_024).eval()
        runs["transformers.generate"] = lambda: theirs.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=tokens, do_sample=False
        )
    found = race(runs, rounds=options.rounds or 5, seed=options.seed, notify=options.notify)
    limit = {"uncached": Bound(at_least=10.0), "transformers.generate": Bound(at_least=3.0)}
    return [Finding.of("gpt-generate", found, limit, missing=missing)]


def _without_transformers(names: list[str]) -> list[str]:
    """Those peers, if transformers and its trainer's package are not installed."""
    there = all(find_spec(package) for package in ("transformers", "accelerate"))
    return [] if there else names


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
