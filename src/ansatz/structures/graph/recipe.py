"""Default recipes for graphs and nodes: functions of counts alone."""

from typing import Any

from ansatz.fitting.contracts.structure import Facts
from ansatz.fitting.recipe import Recipe

LARGE = 5_000  # graphs from which on batches are larger


def node_recipe(facts: Facts) -> Recipe:
    """All nodes at once: a decay for matrices, stopped by the loss of the held-out nodes."""
    return Recipe(
        batch_size=0,
        steps=200,
        schedule="constant",
        learning_rate=1e-2,
        weight_decay=0.0,
        penalty="l2=0.00025",
        holdout=0.2,
        evaluations=100,
        patience=20,
        min_improvement=0.0,
        clip=0.0,
        **_members(facts),
    )


def graph_recipe(facts: Facts) -> Recipe:
    """Some hundred passes over few graphs, fewer over many."""
    size = 32 if facts.rows < LARGE else 128
    passes = 100 if facts.rows < LARGE else 50
    return Recipe(
        dropout=0.2 if facts.target.classes else 0.0,
        batch_size=size,
        steps=max(300, round(passes * facts.rows / size)),
        learning_rate=5e-3,
        weight_decay=1e-2,
        holdout=0.1,
        evaluations=50,
        patience=15,
        min_improvement=0.0,
        **_members(facts),
    )


def link_recipe(facts: Facts) -> Recipe:
    """A fifth of the edges at every step, stopped by held-out edges."""
    return Recipe(
        batch_size=0,
        steps=300,
        schedule="constant",
        learning_rate=1e-2,
        weight_decay=0.0,
        holdout=0.1,
        evaluations=100,
        patience=20,
        min_improvement=0.0,
        clip=0.0,
        **_members(facts),
    )


def linear_recipe(base: Recipe) -> Recipe:
    """A linear model of the same rows: all at once, at a high rate, hardly penalised."""
    return base.model_copy(
        update={
            "batch_size": 0,
            "steps": 300,
            "learning_rate": 0.02,
            "penalty": "l2=0.001",
            "weight_decay": 0.0,
            "schedule": "cosine",
        }
    )


def _members(facts: Facts) -> dict[str, Any]:
    return {"members": 5} if facts.averaged else {}
