"""The default recipe of networks on sets."""

from ansatz.fitting.contracts.structure import Facts
from ansatz.fitting.recipe import SMALL, Recipe, default_recipe

EPOCHS = 30


def choose_set_recipe(facts: Facts) -> Recipe:
    """Some 30 passes in batches of 16 to 128 sets; all at once below 100.

    Rows that are elements come with their sets: a batch has as many sets as hold 1,024 of them.
    """
    base = default_recipe(facts)
    of_elements = facts.spec is not None and facts.spec.rows == "elements"
    if facts.rows < SMALL or facts.coupled:
        return base.model_copy(update={"bins": 0})
    size = 1_024 if of_elements else 16 if facts.rows < 1_000 else 32 if facts.rows < 5_000 else 128
    return base.model_copy(
        update={
            "batch_size": size,
            "steps": max(1_000, min(20_000, round(EPOCHS * facts.rows / size))),
            "learning_rate": 1e-3,
            "weight_decay": 0.05,
            "average": "ema",
            "holdout": 0.2 if facts.rows < 2_000 else 0.1,
            "evaluations": 40,
            "patience": 10,
            "dropout": 0.1,
            "bins": 0,
            "members": min(5, base.members),
        }
    )
