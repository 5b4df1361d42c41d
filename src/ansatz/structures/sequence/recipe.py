"""The default recipe of networks on texts and signals."""

from ansatz.fitting.contracts.structure import Facts
from ansatz.fitting.recipe import SMALL, Recipe, default_recipe


def choose_sequence_recipe(facts: Facts) -> Recipe:
    """Some ten passes over the sequences in batches of 16 to 64; all at once below 100."""
    base = default_recipe(facts)
    if facts.target.axis != "row":  # every step is an outcome
        size = 8 if facts.rows < 2_000 else 32
        return Recipe(
            batch_size=size,
            steps=max(500, min(2_400, round(12 * facts.rows / size))),
            clip=1.0,
            evaluations=12,
            patience=4,
            members=min(5, base.members),
        )
    if facts.rows < SMALL or facts.coupled:
        return base
    size = 16 if facts.rows < 1_000 else 32 if facts.rows < 5_000 else 64
    return base.model_copy(
        update={
            "batch_size": size,
            "steps": max(500, round(12 * facts.rows / size)),
            "learning_rate": 3e-3,
            "weight_decay": 0.1,
            "average": "ema",
            "evaluations": 30,
            "patience": 8,
            "bins": 0,
            "members": min(5, base.members),
        }
    )
