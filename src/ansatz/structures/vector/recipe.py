"""How a network on a table is trained when the user does not say: by counts and types alone."""

from ansatz.fitting.contracts.structure import Facts
from ansatz.fitting.recipe import SMALL, Recipe

LARGE = 50_000
MANY = 10_000  # from here on there are rows enough to bend sharply: numbers are cut in bins
COUPLED = 100_000  # rows up to which a law that couples rows sees all of them at every step


def choose_recipe(rows: float, *, classes: bool = False, coupled: bool = False) -> Recipe:
    """Chooses the default recipe of one network for a table.

    Args:
        rows: sum of the rows' weights.
        classes: whether the outcomes are classes, whose probabilities a network is quick to
            exaggerate: it learns slower and drops more.
        coupled: whether the loss couples rows (Cox): then a step takes all rows, and beyond
            100,000 batches of 1,024, in each of which the events have their share.

    Example:
        >>> from ansatz.structures.vector.recipe import choose_recipe
        >>> choose_recipe(rows=40).folds
        5
    """
    if rows < SMALL:
        return Recipe(
            widths=(32, 32),
            batch_size=0,
            steps=300,
            schedule="constant",
            weight_decay=1.0,
            holdout=0.0,
            folds=5,
            evaluations=30,
            dtype="float64",
        )
    if coupled:
        few = rows < 10_000  # risks of some thousand patients: one layer, half of it dropped
        return Recipe(
            widths=(64,) if few else (64, 64),
            dropout=0.5 if few else 0.2,
            batch_size=0 if rows <= COUPLED else 1_024,
            steps=500 if rows <= COUPLED else round(10 * rows / 1_024),
            learning_rate=3e-3,
            weight_decay=0.3,
            average="ema",
            holdout=0.2 if few else 0.1,
            evaluations=100,
            patience=25,
        )
    if rows <= LARGE:
        batch_size = _power_of_two(rows / 32, 16, 256)
        steps = max(6_000, round(30 * rows / batch_size))
        holdout = 0.2 if rows < 2_000 else 0.1
        return Recipe(
            dropout=0.3 if classes else 0.1,
            batch_size=batch_size,
            steps=steps,
            learning_rate=1e-3 if classes else 3e-3,
            weight_decay=0.1,
            average="ema",
            holdout=holdout,
            bins=32 if rows >= MANY else 0,
        )
    return Recipe(
        widths=(256, 256),
        batch_size=512,
        steps=round(30 * rows / 512),
        learning_rate=1e-3,
        holdout=min(0.1, 20_000 / rows),
        bins=32,
    )


def table_recipe(facts: Facts) -> Recipe:
    """Chooses the default recipe; of averaged networks ten, one for each of ten folds.

    Beyond 50,000 rows there are five, and one part of the rows stops all of them.
    """
    classes = facts.target.classes > 0
    alone = choose_recipe(facts.rows, classes=classes, coupled=facts.coupled)
    if not facts.averaged:
        return alone
    if facts.rows > LARGE:
        return alone.model_copy(update={"members": 5})
    changes: dict[str, object] = {"members": 10, "holdout": 0.0, "folds": 0}
    if facts.rows >= SMALL and not facts.coupled and not classes:
        changes |= {"weight_decay": 1e-2, "average": None}
    return alone.model_copy(update=changes)


def _power_of_two(value: float, least: int, most: int) -> int:
    size = least
    while size * 2 <= min(value * 2**0.5, most):
        size *= 2
    return size
