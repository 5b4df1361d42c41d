"""The default recipe or its alternative: the one whose networks predict held-out rows better."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ansatz.fitting.choice import clusters, standard_error
from ansatz.fitting.job import Job, take
from ansatz.fitting.model import Model, PointPosterior
from ansatz.fitting.out_of_fold import choose_folds, log_scores
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.task import Task
from ansatz.fitting.training import train
from ansatz.likelihoods import Likelihood
from ansatz.training.machine import by_first
from ansatz.training.phase import Phase

PARTS = 5  # of the rows, of which one is held out
LOOKS = (12, 4)  # the budget of steps is divided by: a short look first, a longer one to be sure
ERRORS = 2.0  # standard errors by which the alternative must win each time
EVALUATIONS = 12  # of a short training


class RecipeChoice(NamedTuple):
    """What was taken in place of what, and the evidence."""

    taken: dict[str, Any]  # the entries in which the two recipes differ, of the one taken
    left: dict[str, Any]  # of the other
    better: float  # mean log score of held-out rows with the alternative minus the default's
    error: float  # its standard error
    rows: int  # held out
    steps: int  # of the last two trainings
    changed: bool  # whether the alternative was taken

    @classmethod
    def of(cls, model: Model) -> "RecipeChoice | None":
        """The choice that a fit made; None where there was none."""
        record = model.evidence.get("recipe_choice")
        return None if record is None else cls(**record)

    def __str__(self) -> str:
        tried = self.taken if self.changed else self.left
        verdict = "better" if self.better > 0 else "worse"
        why = "" if self.changed or self.better <= 0 else ", within two standard errors of 0"
        return (
            f"recipe {_words(self.taken)}: with {_words(tried)} the log score of {self.rows:,} "
            f"held-out rows is {abs(self.better):.2g} +- {self.error:.2g} {verdict} "
            f"after {self.steps:,} steps{why}."
        )


def compare_recipes(
    task: Task, recipe: Recipe, job: Job, likelihood: Likelihood
) -> tuple[Recipe, RecipeChoice | None]:
    r"""Takes the structure's alternative to a default recipe where it predicts better.

    A network of each recipe is trained on four fifths of the rows for a twelfth of the steps, and
    stopped and evaluated by the last fifth: the latest rows where rows have a time. The alternative
    wins where the mean difference of the log scores :math:`s_i` of the n held-out rows is above
    two standard errors,

    .. math:: \bar d > 2\, \mathrm{se}(\bar d) \sqrt{1 + n / n_{\text{train}}}, \qquad
              d_i = s_i^{\text{alternative}} - s_i^{\text{default}}

    where the root stands for the training rows, which could be others as well (Nadeau and Bengio).
    Scores are hedged (:func:`~ansatz.fitting.choice.hedge`), so that no outlier decides.
    Short trainings favour what learns fast, so that a winner has to win again with a quarter of
    the steps. Options of the training leave nothing to be chosen.

    References:
        Nadeau and Bengio (2003), Inference for the generalization error, section 4.
    """
    trains = getattr(task.inference, "trains", True)
    other = task.alternative(recipe, job) if trains else None
    folds = [] if other is None else choose_folds(job, PARTS, task.settings.seed)
    if other is None or not folds or not len(folds[-1][0]):
        return recipe, None
    taken, left = _differences(other, recipe), _differences(recipe, other)

    def compare() -> dict[str, Any]:
        progress = job.trainer_options.get("progress", task.settings.progress)
        with Phase(f"comparing {_words(left)} and {_words(taken)}", progress):
            return _compare(task, (recipe, other), job, likelihood, folds[-1])

    evidence = by_first(compare)
    if not evidence["changed"]:
        return recipe, RecipeChoice(left, taken, **evidence)
    return other, RecipeChoice(taken, left, **evidence)


def _differences(recipe: Recipe, other: Recipe) -> dict[str, Any]:
    mine, theirs = recipe.model_dump(), other.model_dump()
    return {name: value for name, value in mine.items() if value != theirs[name]}


def _words(entries: dict[str, Any]) -> str:
    return ", ".join(f"{value or 'no'} {name}" for name, value in entries.items())


def _compare(
    task: Task,
    recipes: tuple[Recipe, Recipe],
    job: Job,
    likelihood: Likelihood,
    fold: tuple[NDArray[np.intp], NDArray[np.intp]],
) -> dict[str, Any]:
    learn, evaluated = fold
    rows = np.sort(np.concatenate(fold))
    part = take(job, rows)._replace(valid=np.searchsorted(rows, evaluated), trainer_options={})
    held_out = take(job, evaluated)
    weight = held_out.weight.numpy()
    for look in LOOKS:
        steps = max(1, recipes[0].steps // look)
        default, other = (
            _scores(task, each, steps, part, held_out, likelihood) for each in recipes
        )
        difference = other - default
        better = float(weight @ difference / weight.sum())
        error = standard_error(difference, weight, clusters(job, evaluated))
        error *= (1 + len(evaluated) / len(learn)) ** 0.5
        changed = better > ERRORS * error
        if not changed:
            break
    return {
        **{"better": better, "error": error, "rows": len(evaluated)},
        **{"steps": steps, "changed": changed},
    }


def _scores(
    task: Task, recipe: Recipe, steps: int, part: Job, held_out: Job, likelihood: Likelihood
) -> NDArray[np.float64]:
    """Log scores of the held-out rows by one network of a recipe, trained for few steps."""
    short: dict[str, Any] = {"steps": steps, "members": 1, "folds": 0, "evaluations": EVALUATIONS}
    short |= {"patience": EVALUATIONS, "average": "ema"}
    plan = task.plan(recipe.model_copy(update=short), part)
    plan = plan._replace(trainer_options={**plan.trainer_options, "progress": 0})
    done = train(plan, part, likelihood)
    model = PointPosterior(plan.structure, done.encoder, done.trained, plan.options)
    served = model.predictive(held_out.rows, held_out.offset, notes=[])
    found: NDArray[np.float64] = log_scores(served.likelihood, served.raw, held_out.y).numpy()
    return found
