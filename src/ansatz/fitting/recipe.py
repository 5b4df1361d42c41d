"""The default recipe of a training: a function of counts and types alone."""

import inspect
from typing import Annotated, Any, Literal

import torch
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor

from ansatz import optim
from ansatz.fitting.contracts.structure import Facts
from ansatz.training.penalties import Penalty

SMALL = 100  # below this sum of weights: full batch, float64, penalised, stopped by folds
FEW = 500  # below it a dispersion that varies with x costs more than it explains
LARGE = 50_000
SOME = 400  # from here on held-out rows choose whether numbers are cut in bins
MANY = 10_000  # from here on there are rows enough to bend sharply: numbers are cut in bins
BINS = 32
COUPLED = 100_000  # rows up to which a likelihood that couples rows sees all of them at every step
_MOTIONS = {
    "flip": "flips",
    "rotation90": "rotations by 90 degrees",
    "dihedral": "rotations and flips",
}


def _named(record: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(record.get("name"), str):
        raise ValueError("an augmentation needs a name")
    return record


class Recipe(BaseModel):
    """Everything that decides a fit besides the data, the likelihood and the seed.

    Args:
        widths: hidden units per layer.
        activation: as the registry of activations spells it.
        dropout: share of hidden units dropped in training.
        batch_size: rows per step; 0 takes all rows at once.
        steps: the budget of updates.
        optimizer: as the registry of optimisers spells it.
        optimizer_options: of the optimiser.
        schedule: of the learning rate, as the registry of schedules spells it; ``"cosine"`` and
            ``"constant"`` begin with a linear warm-up of 5 % of the steps.
        schedule_options: of the schedule.
        learning_rate: its peak.
        weight_decay: on matrices only; decoupled where the optimiser can.
        penalty: added to the mean loss, as :class:`~ansatz.training.Penalty` reads it; None for
            none.
        clip: the largest norm of a gradient; 0 for any.
        average: ``"ema"`` evaluates and keeps an exponential average of the weights, ``"swa"``
            their mean over the last quarter of the steps.
        holdout: share of the rows kept out to decide when to stop; 0 for none.
        folds: with all rows at once, folds whose out-of-fold loss decides how many steps the fit
            to all rows takes; 0 for none.
        evaluations: how often the held-out rows are scored within the budget.
        patience: evaluations without progress before stopping.
        min_improvement: what counts as progress: a validation loss that is lower than at the last
            progress by this number times the smaller of 1 and the gain since the first evaluation.
        dtype: of the training arithmetic.
        members: networks that are trained; more than one is an ensemble.
        bins: number of bins into which the range of a number is cut, for features beside the number
            itself; 0 for none.
        augment: whether grids are augmented in training; records of
            augmentations in place of the default ones.
        symmetry: the group that predicted masks are averaged over; None for none.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    widths: tuple[int, ...] = (128, 128)
    activation: str = "silu"
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    batch_size: Annotated[int, Field(ge=0)] = 32
    steps: Annotated[int, Field(ge=1)] = 6_000
    optimizer: str = "adamw"
    optimizer_options: dict[str, Any] = {}
    schedule: str = "cosine"
    schedule_options: dict[str, Any] = {}
    learning_rate: Annotated[float, Field(gt=0)] = 3e-3
    weight_decay: Annotated[float, Field(ge=0)] = 1e-2
    penalty: Annotated[str, AfterValidator(lambda given: str(Penalty.read(given)))] | None = None
    clip: Annotated[float, Field(ge=0)] = 5.0
    average: Literal["ema", "swa"] | None = None
    holdout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    folds: Annotated[int, Field(ge=0)] = 0
    evaluations: Annotated[int, Field(ge=1)] = 150
    patience: Annotated[int, Field(ge=1)] = 38
    min_improvement: Annotated[float, Field(ge=0)] = 1e-3
    dtype: Literal["float32", "float64"] = "float32"
    members: Annotated[int, Field(ge=1)] = 1
    bins: Annotated[int, Field(ge=0)] = 0
    augment: bool | tuple[Annotated[dict[str, Any], AfterValidator(_named)], ...] = False
    symmetry: Literal["flip", "rotation90", "dihedral"] | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the steps that compute without autograd can do what it asks for."""
        return self.optimizer == "adamw" and not self.optimizer_options and self.penalty is None

    def make_schedule(self) -> optim.Schedule:
        """Makes the schedule of the learning rate."""
        kind = optim.schedules.get(self.schedule)
        warm = {"warmup": 0.05} if "warmup" in inspect.signature(kind).parameters else {}
        return optim.create_schedule(
            self.schedule, steps=self.steps, **{**warm, **self.schedule_options}
        )

    def sentence(self, network: str = "mlp") -> str:
        """The recipe in one line, for people; widths and dropout are those of an mlp."""
        batch = f"batches of {self.batch_size}" if self.batch_size else "all rows at once"
        stop = "no early stopping"
        if self.members > 1:
            stop = f"{self.members} members that stop on rows they leave out"
        elif self.holdout:
            stop = f"stopping on {self.holdout:.0%} held-out rows"
        elif self.folds:
            stop = f"their number chosen by {self.folds} folds"
        widths = " x ".join(map(str, self.widths)) or "no hidden layer"
        shape = f"{widths} {self.activation}, dropout {self.dropout:g}"
        extras = f"numbers in {self.bins} bins, " if self.bins else ""
        if self.augment:
            named = () if isinstance(self.augment, bool) else self.augment
            how = ", ".join(each["name"] for each in named)
            extras += f"augmented examples ({how}), " if how else "augmented examples, "
        if self.symmetry:
            extras += f"predictions averaged over {_MOTIONS[self.symmetry]}, "
        optimizer = "AdamW" if self.optimizer == "adamw" else self.optimizer
        penalty = f"penalty {self.penalty}, " if self.penalty else ""
        return (
            f"{shape if network == 'mlp' else network}, {extras}{optimizer} {self.learning_rate:g} "
            f"(decay {self.weight_decay:g}), {penalty}at most {self.steps} steps of {batch}, "
            f"{'averaged weights, ' if self.average else ''}{stop}, {self.dtype}"
        )


# What partial_fit does with each part of a stream, whatever the size of the part.
STREAM = Recipe(schedule="constant", learning_rate=1e-3, holdout=0.0)


def choose_recipe(rows: float, *, classes: bool = False, coupled: bool = False) -> Recipe:
    """Chooses the default recipe of one network for rows that are tensors.

    Args:
        rows: sum of the rows' weights.
        classes: whether the outcomes are classes, whose probabilities a network is quick to
            exaggerate: it learns slower and drops more.
        coupled: whether the loss couples rows (Cox): then a step takes all rows, and beyond
            100,000 batches of 1,024, in each of which the events have their share.
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
            bins=BINS if rows >= MANY else 0,
        )
    return Recipe(
        widths=(256, 256),
        batch_size=512,
        steps=round(30 * rows / 512),
        learning_rate=1e-3,
        holdout=min(0.1, 20_000 / rows),
        bins=BINS,
    )


def default_recipe(facts: Facts) -> Recipe:
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


def one_line(error: ValidationError) -> str:
    """The first complaint of a validation: where, and what."""
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}, got {str(first['input'])[:60]}"


def _power_of_two(value: float, least: int, most: int) -> int:
    size = least
    while size * 2 <= min(value * 2**0.5, most):
        size *= 2
    return size


RANGE = 1e15  # its square and the inverse of its square are far inside float32
BLUR = 1e-4  # of sd(y): below the least scale that a likelihood may claim


def needs_double(y: Tensor) -> bool:
    """Tests whether float32 would blur the outcomes, or overflow at their scale.

    A y around 1e9 with an sd of 1 has no digits left in float32, and the square of 1e30 no value.

    Args:
        y: ``(N,)`` or ``(N, K)`` in float64; class codes never need it. Infinite entries, the
            open ends of censored outcomes, count as absent.
    """
    if not y.is_floating_point():
        return False
    seen = y.isfinite()
    count = seen.sum(0).clamp(min=1)
    y = torch.where(seen, y, 0.0)
    largest, mean = y.abs().amax(0), y.sum(0) / count
    sd = (torch.where(seen, (y - mean) ** 2, 0.0).sum(0) / count).sqrt()
    varies = sd > 0
    blurred = largest * torch.finfo(torch.float32).eps > BLUR * sd
    out_of_range = (largest > RANGE) | (sd < 1 / RANGE)
    return bool((varies & (blurred | out_of_range)).any() or (largest > RANGE).any())
