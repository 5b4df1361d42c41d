"""The defaults of fits to grids: recipe, search space, symmetry groups."""

from collections.abc import Collection

from ansatz.data.augmentation import default_augmentation
from ansatz.data.augmentation.default import labelled_symmetry
from ansatz.errors import UsageError
from ansatz.fitting.contracts.structure import Facts
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.space import Choice, Range, Space, network_space, training_space
from ansatz.spec import InputSpec
from ansatz.symmetry import Group, create, suitable_groups
from ansatz.symmetry.registry import OF_GRIDS, OF_IMAGES

SEEN = 600_000  # examples that training looks at in all, repeats counted
FEWEST, MOST = 10, 100  # passes
COMPARED = 128  # examples of a step whose loss compares them
HELD_OUT = 2_000  # examples are enough to tell when a linear model should stop
_DEPTHS = {"unet": 4, "attention_unet": 4, "unet3d": 3}  # of the papers
FEW, MANY = 50, 5_000  # examples: between them, some held out tell when to stop


def choose_grid_recipe(
    rows: float, inputs: InputSpec, *, masks: bool = False, coupled: bool = False
) -> Recipe:
    """The default recipe for signals, images and volumes."""
    if masks:
        return _masks(rows, inputs.size)
    batch = 16 if rows < 500 else 32 if rows < 5_000 else 64
    if coupled:
        batch = COMPARED
    passes = min(MOST, max(FEWEST, SEEN / max(rows, 1)))
    # Among many, varied examples the schedule's end is as good as any: the best of thirty looks at
    # a few of them is mostly luck, and often an early step.
    holdout = 0.1 if FEW <= rows < MANY else 0.0
    return Recipe(
        batch_size=batch,
        steps=max(1, int(passes * rows * (1 - holdout) / batch)),
        learning_rate=3e-3,
        weight_decay=5e-2,
        average="ema",
        holdout=holdout,
        evaluations=30,
        patience=30,
        augment=True,
    )


def default_options(network: object, inputs: InputSpec | None = None) -> dict[str, int]:
    """Options of a network that the recipe sets: U-Nets of a quarter of their published width.

    The published one takes an hour of two processor cores for what this one learns in minutes, of
    a few dozen annotated images; ``network_options={"width": 64}`` is the paper's. Small grids are
    halved less often, so that more than one pixel is left.
    """
    options = {"width": 16} if network in ("unet", "attention_unet") else {}
    side = max(inputs.size, default=0) if inputs is not None else 0
    usual = _DEPTHS.get(network) if isinstance(network, str) else None
    if usual is not None and 0 < side < 2 ** (usual + 1):
        options["depth"] = max(1, side.bit_length() - 2)
    return options


def linear_grid_recipe(rows: float, *, masks: bool = False) -> Recipe:
    """The recipe of the linear model beside a network: short, without variations."""
    batch = 2 if masks else 64
    return Recipe(
        batch_size=batch,
        steps=max(200, round(5 * rows / batch)),
        learning_rate=1e-2 if masks else 1e-3,
        weight_decay=1e-1,
        average="ema",
        holdout=0.0 if rows < FEW else min(0.1, HELD_OUT / rows),
        evaluations=20,
        patience=5,
    )


def _masks(rows: float, size: tuple[int, ...]) -> Recipe:
    """Few examples of many pixels each: one or a few per step.

    Of a few dozen none is held out: each has thousands of pixels to train on, and the schedule's
    end is as good as the best of its steps. A network that trained on rotated and flipped images
    predicts all eight views of a new one, which takes eight times as long.
    """
    batch = 1 if rows < 8 else 2 if rows < 100 else 8
    return Recipe(
        batch_size=batch,
        steps=max(300, round(60 * rows / batch)) if rows < 100 else round(30 * rows / batch),
        learning_rate=2e-3,
        weight_decay=1e-2,
        average="ema",
        holdout=0.0 if rows < FEW else 0.1,
        evaluations=20,
        patience=20,
        augment=True,
        symmetry=labelled_symmetry(size) if rows < 100 else None,
    )


def grid_space(
    recipe: Recipe, facts: Facts, *, network: str | None, takes: Collection[str] = ()
) -> Space:
    """The default search space of a fit to grids.

    ================= ==========================================================
    ``learning_rate`` from a tenth of the recipe's to ten times that, log scale
    ``weight_decay``  1e-4 to 1, log scale
    ``batch_size``    half the recipe's, the recipe's, and twice that
    ``augment``       whether examples are varied, where that is safe
    ``dropout``       0 to 0.5, where the network has it
    ================= ==========================================================

    The budget of steps is the recipe's: twice the batch takes twice the time. An ``mlp`` varies in
    its shape as for a table.
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


def acting_group(name: str, size: tuple[int, ...]) -> Group:
    """The group of a name that acts on examples of such a size."""
    acting = OF_IMAGES if len(size) == 2 else OF_GRIDS
    if name not in acting:
        create(name)  # says so if there is none
        raise UsageError(f"{name} does not act on such grids. Take one of: {', '.join(acting)}.")
    known = {each.name: each for each in suitable_groups(size)}
    return known[name] if name in known else create(name)


def mask_symmetry(name: str, size: tuple[int, ...]) -> Group:
    """The group of a name that moves the pixels of such grids; flips along every axis."""
    if name == "flip":
        return create("flip", axes=tuple(range(-len(size), 0)))
    if len(size) < 2:
        raise UsageError(f"signals cannot be turned: symmetry is flip or none, got {name}.")
    return create(name)
