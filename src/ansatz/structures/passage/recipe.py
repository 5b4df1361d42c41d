"""The default recipe of language models: by the number of tokens."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from ansatz.fitting.contracts.structure import Facts
from ansatz.fitting.recipe import Recipe
from ansatz.spec import InputSpec

WINDOWS = 32  # of a batch
MOST, FEWEST = 6_000, 200  # steps


def choose_passage_recipe(facts: Facts) -> Recipe:
    """Batches of 32 windows; some 50 passes over few tokens, at most 6,000 steps over many."""
    length = facts.spec.size[0] if facts.spec is not None and facts.spec.size else 256
    tokens = facts.rows * (facts.target.shape or (length,))[0]  # of a passage
    steps = round(50 * tokens / (WINDOWS * length))
    return Recipe(
        batch_size=WINDOWS,
        steps=min(MOST, max(FEWEST, steps)),
        learning_rate=3e-3,
        weight_decay=0.1,
        clip=1.0,
        average="ema",
        evaluations=20,
        patience=6,
        bins=0,
    )


def network_shape(network: str | nn.Module, spec: InputSpec | None) -> Mapping[str, Any]:
    """Width, depth and dropout of language networks."""
    return SHAPES.get(network, {}) if isinstance(network, str) else {}


# Found on tiny Shakespeare by the loss of its validation part.
SHAPES: dict[str, dict[str, Any]] = {
    "bert": {"width": 128, "depth": 4, "heads": 4, "dropout": 0.1},
    "gpt": {"width": 192, "depth": 4, "heads": 6, "dropout": 0.1},
    **{
        name: {"width": 256, "depth": 4, "dropout": 0.2}
        for name in ("mingru", "minlstm", "lru", "gru", "lstm", "rnn")
    },
}
