"""How a network on grids is trained when the user does not say: by shapes and counts alone."""

from ansatz.data.augmentation.default import labelled_symmetry
from ansatz.fitting.recipe import Recipe
from ansatz.spec import InputSpec

SEEN = 600_000  # examples that training looks at in all, copies counted
FEWEST, MOST = 10, 100  # passes
COMPARED = 128  # examples of a step whose loss compares them
HELD_OUT = 2_000  # examples are enough to tell when a linear model should stop
_DEPTHS = {"unet": 4, "attention_unet": 4, "unet3d": 3}  # of the papers
FEW, MANY = 50, 5_000  # examples: between them, some held out tell when to stop


def choose_grid_recipe(
    rows: float, inputs: InputSpec, *, masks: bool = False, coupled: bool = False
) -> Recipe:
    """The default recipe for signals, images and volumes.

    Args:
        rows: sum of the examples' weights.
        inputs: what an example looks like.
        masks: whether the outcome is a label for every cell.
        coupled: whether the loss compares examples (Cox): then a step needs many of them.
    """
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
    halved less often, so that more than one cell is left.

    Args:
        network: by name, or a module.
        inputs: what an example looks like.
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
    """Few examples of many cells each: one or a few per step.

    Of a few dozen none is held out: each has thousands of cells to learn from, and the schedule's
    end is as good as the best of its steps. What was learned from few images that were turned and
    mirrored is asked of all eight views of a new one, which takes eight times as long.
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
