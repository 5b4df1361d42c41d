"""What a search may change of a fit to signals, images or volumes."""

from collections.abc import Sequence

from ansatz.data.augmentation import default_augmentation
from ansatz.fitting.recipe import Recipe
from ansatz.spec import InputSpec
from ansatz.tuning.space import Choice, Range, Space, default_space


def default_grid_space(
    recipe: Recipe,
    inputs: InputSpec,
    *,
    network: str | None,
    laws: Sequence[str],
    rows: float,
    dropout: bool = False,
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
        inputs: what an example looks like.
        network: by name; None where several are tried.
        laws: candidates that can be compared.
        rows: to learn from.
        dropout: whether the network has dropout, or all of several.

    Example:
        >>> from ansatz.structures.grid.recipe import choose_grid_recipe
        >>> from ansatz.spec import InputSpec
        >>> from ansatz.tuning.grid_space import default_grid_space
        >>> inputs = InputSpec.grid(1, 28, 28)
        >>> recipe = choose_grid_recipe(1_000, inputs)
        >>> space = default_grid_space(
        ...     recipe, inputs, network="lenet5", laws=["categorical"], rows=1_000
        ... )
        >>> list(space), space["batch_size"].sentence()
        (['learning_rate', 'weight_decay', 'batch_size', 'augment'], '16, 32, 64')
    """
    space = default_space(recipe, network=network, laws=laws, rows=rows)
    low, high = (float(f"{recipe.learning_rate * factor:.3g}") for factor in (0.1, 10))
    space["learning_rate"] = Range(low, high)
    if recipe.batch_size:
        space["batch_size"] = Choice(_sizes(recipe.batch_size, rows))
    if recipe.augment is True and default_augmentation(inputs, examples=round(rows)) is not None:
        space["augment"] = Choice((True, False))
    if dropout:
        space["dropout"] = Range(0.0, 0.5)
    return space


def _sizes(size: int, rows: float) -> tuple[int, ...]:
    """The size with half of it and, up to a quarter of the rows, twice it."""
    smaller, larger = (size // 2,) if size > 1 else (), (2 * size,) if 8 * size <= rows else ()
    return (*smaller, size, *larger)
