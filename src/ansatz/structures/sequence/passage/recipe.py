"""The default recipe of language models: by the number of tokens."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from ansatz.fitting.contracts.structure import Facts
from ansatz.fitting.recipe import Recipe
from ansatz.spec import InputSpec

WINDOWS, PASSES = 16, 20  # of a batch, over the tokens
MOST, FEWEST = 6_000, 200  # steps


def choose_passage_recipe(facts: Facts) -> Recipe:
    """Batches of 16 windows; 20 passes over few tokens, at most 6,000 steps over many.

    Small batches of short windows take more steps in the same time: after 37 s of one processor
    on tiny Shakespeare 16 windows of 128 reach 1.86 nats, 32 windows of 256 reach 2.03.
    """
    length = facts.spec.size[0] if facts.spec is not None and facts.spec.size else 256
    tokens = facts.rows * (facts.target.shape or (length,))[0]  # of a passage
    steps = round(PASSES * tokens / (WINDOWS * length))
    return Recipe(
        batch_size=WINDOWS,
        steps=min(MOST, max(FEWEST, steps)),
        learning_rate=5e-3,
        weight_decay=0.1,
        clip=1.0,
        average="ema",
        evaluations=20,
        patience=6,
        bins=0,
    )


def network_rate(network: str | nn.Module) -> float:
    """Learning rates of transformers are lower."""
    return 2e-3 if network in ("gpt", "bert", "transformer", "distilbert") else 5e-3


def network_shape(network: str | nn.Module, spec: InputSpec | None) -> Mapping[str, Any]:
    """Width, depth and dropout of language networks."""
    return SHAPES.get(network, {}) if isinstance(network, str) else {}


SHAPES: dict[str, dict[str, Any]] = {
    "bert": {"width": 128, "depth": 4, "heads": 4, "dropout": 0.1},
    "gpt": {"width": 128, "depth": 4, "heads": 4, "dropout": 0.0},
    **{
        name: {"width": 256, "depth": 3, "dropout": 0.1}
        for name in ("mingru", "minlstm", "lru", "gru", "lstm", "rnn")
    },
}
