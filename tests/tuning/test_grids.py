"""A search of images, signals and masks is the same search: nothing of the test is seen."""

import time

import numpy as np
import pandas as pd
import pytest

import ansatz
from ansatz import Classifier
from ansatz.errors import UsageError
from ansatz.fitting import Request
from ansatz.fitting.contracts.structure import Facts
from ansatz.fitting.problem import reading, with_structure
from ansatz.fitting.replay import replay
from ansatz.spec import InputSpec, TargetSpec
from ansatz.structures.grid.recipe import choose_grid_recipe, grid_space
from ansatz.tuning import inner_folds, search_problem, tune
from ansatz.tuning.inner_folds import InnerFolds, OutOfTime
from ansatz.tuning.space import point_of

FAST = {"searches": 2, "folds": 2, "network": "linear", "options": {"epochs": 2}}


def images(count=40, seed=0):
    """Noise that is brighter above in one class, below in the other, and in the third nowhere."""
    rng = np.random.default_rng(seed)
    y = np.arange(count) % 3
    x = rng.integers(0, 120, (count, 8, 8))
    x[y == 1, :4] += 100
    x[y == 2, 4:] += 100
    return x.astype(np.uint8), y


def search(data=None, **options):
    x, y = images()
    return tune({"x": x, "y": y} if data is None else data, **{**FAST, **options})


def told(found):
    return [(trial.parameters, trial.scores) for trial in found.trials]


@pytest.fixture
def no_work(monkeypatch):
    """What is refused is refused before anything is fitted."""
    monkeypatch.setattr(InnerFolds, "scores", lambda *_: pytest.fail("a trial was begun"))


def test_each_trial_is_the_mean_of_folds_fitted_by_hand():
    found = search(searches=1)
    assert list(found.space) == ["learning_rate", "weight_decay", "batch_size", "augment"]
    assert found.trials[0].parameters["augment"] is True  # the default recipe lies in the space
    learn = replay(found.fit).learn
    for trial in found.trials:
        options = trial.parameters
        for k, (inside, outside) in enumerate(inner_folds.make_folds(learn, 2, seed=0)):
            state = ansatz.seeds.derive(0, "inner", k) >> 32
            model = Classifier(
                "categorical", network="linear", epochs=2, random_state=state, **options
            )
            X, y = learn.rows.load().numpy(), learn.y.numpy()
            model.fit(X[inside], y[inside])
            score = model.log_score(X[outside], y[outside])
            assert trial.scores[k] == pytest.approx(score, rel=1e-6)


def test_the_test_examples_change_no_trial():
    """They are the data's own here; with other pixels and other labels the search is the same."""
    x, y = images()
    parts = {"x_train": x[:30], "y_train": y[:30], "x_test": x[30:], "y_test": y[30:]}
    found = search(parts)
    assert found.fit.rows["test"] == 10 and any("data's own, 10" in note for note in found.notes)
    again = search({**parts, "x_test": 255 - x[30:], "y_test": y[30:][::-1]})
    assert told(found) == told(again) and found.best.number == again.best.number
    assert found.default.metrics["nll"] != again.default.metrics["nll"]


def test_a_search_that_was_interrupted_goes_on_with_the_same_trials(tmp_path, monkeypatch):
    whole = search()
    evaluate, calls = InnerFolds.scores, []

    def scores(self, parameters, deadline=None):
        calls.append(parameters)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return evaluate(self, parameters, deadline)

    monkeypatch.setattr(InnerFolds, "scores", scores)
    with pytest.raises(KeyboardInterrupt):
        search(out=tmp_path / "model")
    monkeypatch.setattr(InnerFolds, "scores", evaluate)
    x, y = images(seed=1)
    with pytest.raises(UsageError, match="a search with other data"):
        search({"x": x, "y": y}, out=tmp_path / "model", resume=True)
    again = search(out=tmp_path / "model", resume=True)
    assert told(again) == told(whole) and again.fit.metrics == whole.fit.metrics
    done = search(out=tmp_path / "model", resume=True)
    assert told(done) == told(whole) and "nothing to do" in done.notes[-1]


def test_the_network_is_a_dimension_like_any_other():
    space = ["network=mlp,linear", "learning_rate=3e-3..3e-2", "augment=false"]
    found = search(space=space, searches=3, network="mlp")
    tried = {trial.parameters.get("network") for trial in found.trials[1:]}
    assert tried == {"mlp", "linear"} and "width" not in found.space
    chosen = found.best.parameters["network"]
    assert found.best.number and found.model.network == chosen
    assert found.fit.network == {"mlp": "mlp", "linear": "linear_grid"}[chosen]
    assert found.fit.model.augment is False and found.comparison.b == "default"
    assert found.default.network == "mlp"


def test_masks_are_searched_by_the_log_score_of_their_cells():
    x, _ = images(24)
    masks = (x > 60).astype(np.uint8)
    masks[0, :4] = 9  # not known
    found = search({"x": x, "masks": masks}, unlabelled=9, searches=1)
    learn = replay(found.fit).learn
    fold, (inside, outside) = 1, inner_folds.make_folds(learn, 2, seed=0)[1]
    state = ansatz.seeds.derive(0, "inner", fold) >> 32
    model = ansatz.Segmenter(network="linear", epochs=2, random_state=state)
    pixels, codes = learn.rows.load().numpy(), learn.y.numpy()
    model.fit(pixels[inside], np.where(codes < 0, -1, codes)[inside])
    p, y = model.predict_proba(pixels[outside]), codes[outside]
    right = np.take_along_axis(p, y.clip(0)[..., None], -1)[..., 0]
    each = [np.log(a[b >= 0]).mean() for a, b in zip(right, y, strict=True)]
    assert found.trials[0].scores[fold] == pytest.approx(np.mean(each), rel=1e-5)
    assert {"dice", "nll"} <= set(found.fit.metrics)


def test_signals_and_numbers_are_searched_too():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 12)).round(3)).add_prefix("t")
    frame["age"] = np.exp(frame["t3"] + rng.normal(size=40))
    found = search(frame, x="grid", target="age", likelihood="gamma", searches=1)
    assert found.fit.structure == "grid" and found.fit.likelihood == "gamma"
    assert found.fit.metrics["crps"] is not None


@pytest.mark.parametrize(
    "options, said",
    [
        ({"space": ["network=unet,linear"]}, "unet labels every pixel"),
        ({"space": ["network=lenet,linear"]}, "Did you mean 'lenet5'"),
        ({"space": ["network=1..2"]}, "give names, network=A,B"),
        ({"space": ["network=linear,mlp", "width=4..8"]}, "unknown option 'width'"),
        ({"space": ["bins=2..4"]}, "unknown option 'bins'"),
        ({"space": ["likelihood=categorical,normal"]}, "have no score in common"),
        (
            {"space": ["network=linear,mlp"], "options": {"pretrained": "w.pth"}},
            "weights is that of one network",
        ),
        ({"roles": {"y": "numeric"}}, "'roles' .* is an option of tables"),
        ({"delimiter": ";"}, "'delimiter' is an option of tables"),
    ],
)
def test_what_cannot_be_searched_is_refused_before_any_work(no_work, options, said):
    with pytest.raises(UsageError, match=said):
        search(**options)


@pytest.mark.parametrize("options", [{"likelihood": "dice"}, {"space": ["likelihood=focal"]}])
def test_losses_of_masks_that_are_no_likelihood_are_refused(no_work, options):
    x, _ = images()
    with pytest.raises(UsageError, match="is a loss, not a likelihood of masks"):
        search({"x": x, "masks": x > 60}, **options)


def test_tables_have_no_options_of_images(no_work):
    table = pd.DataFrame({"x": np.arange(20.0), "y": np.arange(20.0)})
    words = {"target": "y", "network": "mlp", "likelihood": "normal"}
    for options, said in [
        ({"size": 8}, "'size' is an option of images"),
        ({"stream": True}, "reads a table at once"),
        ({"space": ["augment=true,false"]}, "unknown option 'augment'"),
        ({"space": ["network=mlp,small_resnet"]}, "For rows of a table take mlp"),
        ({"space": ["network=mlp,linear"]}, "a linear model has nothing to search"),
    ]:
        with pytest.raises(UsageError, match=said):
            search(table, **words, **options)


def test_the_default_recipe_is_a_point_of_the_default_space():
    for rows, masks in [(6, True), (40, True), (60, False), (100_000, False)]:
        inputs = InputSpec.grid(1, 16, 16)
        recipe = choose_grid_recipe(rows, inputs, masks=masks)
        space = grid_space(recipe, Facts(rows, inputs, TargetSpec(classes=2)), network="x")
        assert point_of(recipe, "categorical", space)["learning_rate"] == recipe.learning_rate
        assert min(space["batch_size"].values) >= 1
        assert space["learning_rate"].low == pytest.approx(recipe.learning_rate / 10)
    few = Facts(60, InputSpec.grid(1, 4, 4), TargetSpec(classes=2))
    tiny = grid_space(recipe, few, network="x")
    assert "augment" not in tiny  # too coarse to vary anything


def test_dropout_is_the_networks_own():
    """Its default is no part of the recipe, and what is tried reaches the network."""
    x, y = images(12)
    data = {"x": np.kron(x, np.ones((1, 8, 8), np.uint8)), "y": y}
    given = {"epochs": 1, "width": 4, "hidden": 8}
    inner, space, _ = posed_search(data, network="vgg11", options=given)
    assert search_problem.default_point(inner, space)["dropout"] == 0.5
    made = inner.task({"dropout": 0.2})[0].settings
    assert made.get("dropout") is None and made.network_options["dropout"] == 0.2


def posed_search(data, **options):
    request = with_structure(Request.of(data, {"target": "y", "device": "cpu", **options}))
    with reading(request) as problem:
        return search_problem.build_search(request, problem, (), 2)


def test_a_training_that_the_deadline_cuts_short_evaluates_nothing():
    data = dict(zip("xy", images(), strict=True))
    inner, _, _ = posed_search(data, network="linear", options={"epochs": 10**6})
    began = time.monotonic()
    with pytest.raises(OutOfTime):
        inner.scores({}, began + 0.2)
    assert 0.2 <= time.monotonic() - began < 5
