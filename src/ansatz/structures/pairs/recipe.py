"""The default recipe of networks that write texts."""

from ansatz.fitting.contracts.structure import Facts
from ansatz.fitting.recipe import Recipe


def choose_pair_recipe(facts: Facts) -> Recipe:
    """Some 12 passes over the pairs, more where they are few, in batches of 16 to 96."""
    size = 16 if facts.rows < 2_000 else 32 if facts.rows < 10_000 else 96
    passes = max(12.0, min(60.0, 60_000 / max(1.0, facts.rows)))
    return Recipe(
        batch_size=size,
        steps=max(200, round(passes * facts.rows / size)),
        learning_rate=2e-3,
        weight_decay=0.0,
        optimizer_options={"betas": (0.9, 0.98)},
        clip=1.0,
        average="ema",
        holdout=min(0.1, 1_000 / max(1.0, facts.rows)),
        evaluations=20,
        patience=8,
    )
