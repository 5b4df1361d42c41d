import numpy as np
import pytest
import torch

import ansatz
from ansatz import Regressor
from ansatz.fitting import recipe, recipe_choice
from ansatz.fitting.recipe_choice import compare_recipes
from ansatz.fitting.refits import out_of_fold
from ansatz.report.what_was_fitted import section

ROWS = 1_300
draw = np.random.default_rng(0)
X = draw.uniform(-1, 1, size=(ROWS, 2))
JUMPS = np.sign(np.sin(25 * X[:, 0])) + 0.1 * draw.normal(size=ROWS)
SMOOTH = X[:, 0] + X[:, 1] ** 2 + 0.1 * draw.normal(size=ROWS)


@pytest.fixture
def short(monkeypatch):
    """A default recipe of few steps."""
    chosen = recipe.choose_recipe

    def choose(rows, **facts):
        return chosen(rows, **facts).model_copy(update={"steps": 1_200})

    monkeypatch.setattr(recipe, "choose_recipe", choose)


def compared(y, x=X, *, steps=1_200, parts=(), **options):
    """The recipe that rows choose, with a smaller budget of steps to begin with."""
    model = Regressor(**options)
    job = model.read(x, y)._replace(**dict(parts))
    task = model.task(x).settle(job)
    default = task.recipe(job).model_copy(update={"steps": steps})
    return compare_recipes(task, default, job, task.likelihood(job.target, job.mass))


def test_bins_are_taken_where_the_mean_jumps_and_left_where_it_bends():
    found, choice = compared(JUMPS)
    assert found.bins == 32 and choice.changed and choice.taken == {"bins": 32}
    assert choice.better > 2 * choice.error > 0
    assert (choice.rows, choice.steps) == (pytest.approx(ROWS / 5, rel=0.1), 300)
    found, choice = compared(SMOOTH)
    assert found.bins == 0 and not choice.changed and choice.left == {"bins": 32}


def test_the_same_seed_chooses_the_same():
    one, again, other = (compared(SMOOTH, steps=240, random_state=seed)[1] for seed in (0, 0, 1))
    assert one == again != other


@pytest.mark.parametrize(
    "options",
    [
        *({"bins": 0}, {"bins": 16}, {"widths": [8]}, {"steps": 50}, {"network": "linear"}),
        *({"network_options": options} for options in ({"depth": 1}, {"numeric_embedding": "ple"})),
    ],
)
def test_what_was_set_leaves_nothing_to_choose(options):
    model = Regressor(**options)
    job, task = model.read(X, JUMPS), model.task(X)
    assert task.alternative(task.default_recipe(task.facts(job)), job) is None


def test_few_rows_many_rows_and_words_have_no_alternative():
    assert compared(JUMPS[:390], X[:390])[1] is None
    x = np.tile(X, (10, 1)) + 1e-6 * draw.normal(size=(10 * ROWS, 2))
    found, choice = compared(np.tile(JUMPS, 10), x)
    assert choice is None and found.bins == 32
    words = ansatz.data.as_frame({"word": np.where(X[:, 0] > 0, "up", "down")})
    assert compared(JUMPS, words)[1] is None
    module = torch.nn.Sequential(torch.nn.Linear(2, 2))
    assert compared(JUMPS, network=module)[1] is None


SCORES = {  # mean difference in units of its standard error, as the formula has it
    "more than two": (2.05, True),
    "less than two": (1.95, False),
    "worse": (-3.0, False),
}


@pytest.mark.parametrize(("errors", "changed"), SCORES.values(), ids=SCORES)
def test_the_rule_is_two_standard_errors(monkeypatch, errors, changed):
    def scores(task, recipe, steps, part, held_out, likelihood):
        if not recipe.bins:
            return np.zeros(len(held_out.y))
        noise = np.random.default_rng(1).normal(size=len(held_out.y))
        noise = (noise - noise.mean()) / noise.std(ddof=1)
        trained = len(part.y) - len(held_out.y)
        unit = len(noise) ** -0.5 * (1 + len(noise) / trained) ** 0.5
        return 0.1 * (noise + errors * unit)

    monkeypatch.setattr(recipe_choice, "_scores", scores)
    found, choice = compared(JUMPS)
    assert choice.changed == changed == bool(found.bins)
    assert choice.better / choice.error == pytest.approx(errors)


def test_short_trainings_must_win_twice(monkeypatch):
    looks = []

    def scores(task, recipe, steps, part, held_out, likelihood):
        looks.append(steps)
        wins = recipe.bins > 0 and steps == 100  # what learns fast is ahead at first
        return np.full(len(held_out.y), float(wins)) + 1e-3 * np.arange(len(held_out.y))

    monkeypatch.setattr(recipe_choice, "_scores", scores)
    found, choice = compared(JUMPS)
    assert looks == [100, 100, 300, 300] and found.bins == 0 and choice.steps == 300


def test_the_latest_rows_evaluate_where_rows_have_a_time(monkeypatch):
    time, seen = draw.permutation(ROWS), []

    def scores(task, recipe, steps, part, held_out, likelihood):
        seen.append((np.delete(part.time, part.valid), part.time[part.valid], held_out.time))
        return np.zeros(len(held_out.y))

    monkeypatch.setattr(recipe_choice, "_scores", scores)
    compared(JUMPS, parts={"time": time})
    for train, valid, held_out in seen:
        assert train.max() < held_out.min() and np.array_equal(valid, held_out)


def test_one_group_is_not_compared():
    assert compared(JUMPS, parts={"group": np.zeros(ROWS)})[1] is None


def test_a_default_that_stays_has_the_weights_that_it_had(short, monkeypatch):
    """The comparison leaves no trace in the fit that follows."""
    monkeypatch.setattr(recipe_choice, "ERRORS", np.inf)
    frame = {"a": X[:, 0], "b": X[:, 1]}
    fits = [Regressor(bins=bins).fit(frame, SMOOTH) for bins in (None, 0)]
    assert fits[0].recipe_choice_.taken == {"bins": 0}
    first, second = ([*each.network_.parameters()] for each in fits)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert not any("bins" in note for note in fits[0].notes_)


def test_the_choice_is_in_notes_recipe_report_and_folder(short, tmp_path, monkeypatch):
    frame = {"a": X[:, 0], "b": X[:, 1], "y": JUMPS}
    fit = ansatz.fit(frame, target="y", likelihood="normal", out=tmp_path / "model")
    (note,) = [each for each in fit.notes if "bins" in each]
    assert note.startswith("recipe 32 bins: with 32 bins the log score") and "better" in note
    assert fit.model.recipe_.bins == 32 and "numbers in 32 bins" in fit.recipe["recipe"]
    again = ansatz.load(tmp_path / "model")
    assert str(again.recipe_choice_) == str(fit.model.recipe_choice_) == note
    made = section(ansatz.report.gather(again.model_, frame_of(frame), JUMPS))
    assert ["choice of the recipe", note] in made.parts[0].rows
    # Refits for an outcome's own estimates have the recipe that was chosen.
    calls = []
    monkeypatch.setattr(recipe_choice, "_compare", lambda *given: calls.append(given))
    out_of_fold(again.model_, again.read(frame_of(frame), JUMPS), folds=2)
    assert not calls


def frame_of(columns):
    return ansatz.data.as_frame({name: columns[name] for name in ("a", "b")})
