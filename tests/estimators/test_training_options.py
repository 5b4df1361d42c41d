"""Every optimizer, schedule and penalty is an argument away, and the recipe says what was done."""

import shlex
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_diabetes
from torch.testing import assert_close
from typer.testing import CliRunner

import ansatz
from ansatz import Classifier, Regressor, optim
from ansatz.cli.main import app
from ansatz.data import Batch, TensorSource
from ansatz.errors import UsageError
from ansatz.estimators import Segmenter, SurvivalRegressor
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.recipe_options import RecipeOptions
from ansatz.fitting.training import build_step
from ansatz.inference.ensemble import IN_TURN
from ansatz.likelihoods import Normal
from ansatz.report.what_was_fitted import command_line
from ansatz.training import Callback, Supervised, Trainer, penalties

X, Y = (values[:150] for values in load_diabetes(return_X_y=True))
CONSTANT = -Regressor(network="linear").fit(None, Y).log_score(None, Y)


def fit(**options):
    return Regressor(**{"widths": (5,), "epochs": 40, **options}).fit(X, Y)


def test_every_entry_of_a_recipe_is_an_argument():
    fields = set(Recipe.model_fields)
    assert fields - set(Regressor._get_param_names()) == {"symmetry"}  # of masks
    of_tables = {"widths", "activation", "dropout", "bins"}  # U-Nets have network_options
    assert fields - set(Segmenter._get_param_names()) == of_tables
    assert set(RecipeOptions._fields) == fields - {"members"} | {"epochs"}


@pytest.mark.parametrize("name", optim.names())
def test_every_optimizer_fits_from_an_estimator(name):
    model = fit(optimizer=name)
    assert model.recipe_.optimizer == name
    assert -model.log_score(X, Y) < CONSTANT - 0.05


@pytest.mark.parametrize("name", optim.schedules.names())
def test_every_schedule_fits_from_an_estimator(name):
    model = fit(schedule=name)
    assert model.recipe_.schedule == name
    assert -model.log_score(X, Y) < CONSTANT - 0.05
    rates = {round(float(rate), 12) for rate in model.history_.losses("rate")}
    assert len(rates) > 1 or name in ("constant", "plateau")


@pytest.mark.parametrize("name", penalties.names())
def test_every_penalty_fits_from_an_estimator(name):
    free, model = (fit(penalty=f"{name}={much}", holdout=0.0, epochs=15) for much in (0, 0.1))
    cost = penalties.create(name, 1.0)
    network, other = (each.model_.posterior.networks[0].network for each in (model, free))
    assert model.recipe_.penalty == f"{name}=0.1"
    assert cost(network).item() < cost(other).item()


@pytest.mark.parametrize("name", optim.names())
def test_a_resumed_run_of_every_optimizer_ends_with_the_same_weights(name, tmp_path):
    source = TensorSource(Batch.of(torch.randn(24, 3), torch.randn(24)), batch_size=8)
    recipe = RecipeOptions(optimizer=name, dropout=0.0).change(Recipe(steps=6), torch.zeros(1))

    def run(steps, **options):
        torch.manual_seed(0)
        network = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        step = build_step(
            network,
            Supervised(Normal(dispersion=1.0)),
            recipe,
            seed=0,
            schedule=optim.schedules.create("cosine", 6),
        )
        Trainer(steps=steps, progress=0, **options).fit(step, source)
        return network

    whole = run(6)
    run(3, checkpoint=tmp_path)
    parts = run(6, checkpoint=tmp_path, resume=True)
    assert_close(parts.state_dict(), whole.state_dict(), rtol=0, atol=0)


def test_members_are_trained_in_turn_where_the_optimizer_is_another():
    options = {"inference": "ensemble", "members": 2, "epochs": 2}
    assert IN_TURN in fit(optimizer="sgd", **options).model_.notes
    assert IN_TURN in fit(schedule="plateau", **options).model_.notes
    assert IN_TURN not in fit(schedule="linear", average="swa", **options).model_.notes


@pytest.mark.parametrize(
    "options, message",
    [
        ({"optimizer": "adamv"}, "unknown optimizer 'adamv'. Did you mean 'adam"),
        ({"schedule": "cosin"}, "unknown schedule 'cosin'. Did you mean 'cosine'"),
        ({"schedule_options": {"drop": 2}}, "schedule 'cosine'.*drop"),
        ({"optimizer": "rprop", "weight_decay": 0.1}, "no weight_decay: take penalty='l2=0.1'"),
        ({"optimizer": "newton", "widths": (128, 128)}, "at most 5000 parameters"),
        ({"optimizer": "sgd", "optimizer_options": {"beta": 1}}, "optimizer 'sgd'.*beta"),
        ({"patience": 2, "holdout": 0.0}, "patience needs rows that are held out"),
        ({"schedule": "plateau", "holdout": 0.0}, "plateau needs rows that are held out"),
        ({"steps": 5, "epochs": 2}, "give one of them"),
        ({"folds": 3, "batch_size": 16}, "batch_size=0"),
        ({"average": "mean"}, "average"),
        ({"clip": -1.0}, "clip"),
    ],
)
def test_what_does_not_go_is_named(options, message):
    with pytest.raises(UsageError, match=message):
        fit(**options)


def test_options_reach_the_training():
    model = fit(clip=0, average="none", dtype="float64", evaluations=7, steps=14, epochs=None)
    recipe, history = model.recipe_, model.history_
    assert (recipe.clip, recipe.average, recipe.dtype) == (0.0, None, "float64")
    assert (history.steps, len(history.records)) == (14, 7)
    few = Regressor(patience=1, epochs=5).fit(X[:50], Y[:50]).recipe_
    assert (few.holdout, few.folds) == (0.2, 0)


class Count(Callback):
    def __init__(self):
        self.steps = 0

    def on_step(self, run, logs):
        self.steps += 1
        if self.steps == 5:
            run.stop("five")


def test_callbacks_see_the_steps_and_a_saved_model_does_without_them(tmp_path):
    count = Count()
    model = fit(callbacks=[count])
    assert (count.steps, model.history_.stop_reason) == (5, "five")
    assert ansatz.load(model.save(tmp_path / "model")).callbacks is None
    counts = [Count(), Count()]
    fit(callbacks=counts[:1], inference="ensemble", members=2)
    table = {"x": X[:, 2], "y": Y}
    ansatz.fit(table, target="y", likelihood="normal", callbacks=counts[1:])
    assert [each.steps for each in counts] == [5, 5]


def test_validation_rows_stop_the_training_and_do_not_train_it():
    train, valid = slice(100), slice(100, 150)
    model = Regressor(epochs=10).fit(X[train], Y[train], validation_data=(X[valid], Y[valid]))
    assert model.history_.best_loss == pytest.approx(-model.log_score(X[valid], Y[valid]), abs=1e-5)
    assert model.recipe_.holdout == pytest.approx(1 / 3)
    # Steps count the training rows alone, and its scales come from them alone.
    assert model.history_.steps == 10 * -(-100 // model.recipe_.batch_size)
    means = model.model_.encoder.preprocessor.numeric.center
    assert_close(
        torch.as_tensor(means).double(), torch.from_numpy(X[train].mean(0)), atol=1e-9, rtol=0
    )
    few = Regressor(epochs=5).fit(X[:50], Y[:50], validation_data=(X[valid], Y[valid]))
    assert few.recipe_.folds == 0 or few.history_.best_loss is not None


def test_validation_rows_may_be_frames_classes_or_times():
    frame = pd.DataFrame(X).rename(columns=str)
    data = (frame[100:], Y[100:] > 150, np.ones(50))
    model = Classifier(epochs=3).fit(frame[:100], Y[:100] > 150, validation_data=data)
    assert model.history_.best_loss is not None
    times = np.c_[Y, np.ones(150)]
    survival = SurvivalRegressor("weibull", epochs=3)
    survival.fit(X[:100], times[:100], validation_data=(X[100:], times[100:]))
    assert survival.recipe_.holdout == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    "options, more, message",
    [
        ({"network": "linear"}, {}, "a linear model is solved exactly"),
        ({"holdout": 0.1}, {}, "takes the place of holdout"),
        ({}, {"groups": np.arange(100)}, "has no groups"),
        ({}, {"validation_data": (X, Y, Y, Y)}, r"\(X, y\) or"),
        ({}, {"validation_data": (X[:, :2], Y)}, "not like that of the fit"),
    ],
)
def test_validation_data_that_do_not_go_are_named(options, more, message):
    with pytest.raises(UsageError, match=message):
        Regressor(**options).fit(
            X[:100], Y[:100], **{"validation_data": (X[100:], Y[100:]), **more}
        )


def test_the_command_takes_the_options_and_the_report_repeats_them(tmp_path):
    table = tmp_path / "table.csv"
    pd.DataFrame(X[:, :3], columns=list("abc")).assign(y=Y).to_csv(table, index=False)
    asked = {
        "--optimizer": "sgd",
        "--schedule": "linear",
        "--penalty": "ridge=0.01",
        "--clip": "1",
        "--average": "swa",
        "--patience": "3",
        "--min-improvement": "0.01",
        "--time-limit": "60",
    }
    words = [word for pair in asked.items() for word in pair]
    place = ["--target", "y", "--likelihood", "normal", "--out", str(tmp_path / "model")]
    done = CliRunner().invoke(app, ["fit", str(table), *place, *words, "-q", "--set", "epochs=2"])
    assert done.exit_code == 0, done.output
    model = ansatz.load(tmp_path / "model")
    recipe = model.recipe_
    assert (recipe.optimizer, recipe.schedule, recipe.penalty) == ("sgd", "linear", "l2=0.01")
    assert (recipe.clip, recipe.average, recipe.patience) == (1.0, "swa", 3)
    assert recipe.min_improvement == 0.01
    repeated = shlex.split(command_line(SimpleNamespace(model=model.model_)))
    assert asked == {word: repeated[repeated.index(word) + 1] for word in asked}
