"""What a search varies of a fit to signals, images or volumes."""

from collections.abc import Collection

from ansatz.data.augmentation import default_augmentation
from ansatz.fitting.contracts.structure import Facts
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.space import Choice, Range, Space, network_space, training_space


def grid_space(
    recipe: Recipe, facts: Facts, *, network: str | None, takes: Collection[str] = ()
) -> Space:
    """What is searched of a fit to grids unless the user says otherwise.

    ================= ==========================================================
    ``learning_rate`` from a tenth of the recipe's to ten times that, log scale
    ``weight_decay``  1e-4 to 1, log scale
    ``batch_size``    half the recipe's, the recipe's, and twice that
    ``augment``       whether examples are varied, where that is safe
    ``dropout``       0 to 0.5, where the network has it
    ================= ==========================================================

    The budget of steps is the recipe's: twice the batch takes twice the time. An ``mlp`` varies in
    its shape as for a table.

    Args:
        recipe: the default for these examples.
        facts: about the examples.
        network: by name; None where several are tried.
        takes: the options of all networks that are tried.
    """
    assert facts.spec is not None
    space = network_space(network, training_space(recipe, facts.rows))
    low, high = (float(f"{recipe.learning_rate * factor:.3g}") for factor in (0.1, 10))
    space["learning_rate"] = Range(low, high)
    if recipe.batch_size:
        space["batch_size"] = Choice(_sizes(recipe.batch_size, facts.rows))
    examples = round(facts.rows)
    if recipe.augment is True and default_augmentation(facts.spec, examples=examples) is not None:
        space["augment"] = Choice((True, False))
    if "dropout" in takes:
        space["dropout"] = Range(0.0, 0.5)
    return space


def _sizes(size: int, rows: float) -> tuple[int, ...]:
    """The size with half of it and, up to a quarter of the rows, twice it."""
    smaller, larger = (size // 2,) if size > 1 else (), (2 * size,) if 8 * size <= rows else ()
    return (*smaller, size, *larger)
