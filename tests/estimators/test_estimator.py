"""What both estimators do with rows, weights, seeds and earlier fits."""

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from tests.estimators.conftest import TINY
from torch import nn

import ansatz
from ansatz import Classifier, Ranker, Regressor, Segmenter, SurvivalRegressor
from ansatz.data import DataWarning
from ansatz.errors import DataError, NumericalError, UsageError
from ansatz.likelihoods import Normal


def repeated(rows, times):
    if isinstance(rows, pd.DataFrame):
        return rows.loc[rows.index.repeat(times)].reset_index(drop=True)
    return np.repeat(rows, times, axis=0)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_weight_is_a_repetition_of_numbers(numbers, seed):
    X, y = numbers[0][:30], numbers[1][:30]
    weight = np.random.default_rng(seed).integers(0, 4, size=30)
    model = Regressor(random_state=seed)
    expected = model.fit(repeated(X, weight), repeated(y, weight)).predict_dist(X)
    found = model.fit(X, y, sample_weight=weight).predict_dist(X)
    assert_allclose(found.mean, expected.mean, atol=1e-7, rtol=0)
    assert_allclose(found.variance, expected.variance, atol=1e-7, rtol=0)


@pytest.mark.parametrize("options", [{}, {"class_weight": "balanced"}, {"network": "linear"}])
def test_a_weight_is_a_repetition_of_classes_with_categories(mixed, options):
    frame, _, label, _ = (part[:40] for part in mixed)
    weight = np.random.default_rng(5).integers(0, 4, size=40)
    model = Classifier(**options)
    expected = model.fit(repeated(frame, weight), repeated(label, weight)).predict_proba(frame)
    found = model.fit(frame, label, sample_weight=weight).predict_proba(frame)
    assert_allclose(found, expected, atol=1e-7, rtol=0)


@pytest.mark.parametrize("likelihood", ["poisson", "gamma"])
def test_a_weight_is_a_repetition_for_other_likelihoods_and_offsets(mixed, likelihood):
    frame, _, _, count = (part[:40] for part in mixed)
    y, offset = count + (0.5 if likelihood == "gamma" else 0.0), np.linspace(-1, 1, 40)
    weight = np.random.default_rng(6).integers(0, 4, size=40)
    model = Regressor(likelihood, epochs=60)
    many = (repeated(part, weight) for part in (frame, y))
    expected = model.fit(*many, offset=repeated(offset, weight)).predict(frame, offset=offset)
    found = model.fit(frame, y, weight, offset=offset).predict(frame, offset=offset)
    assert_allclose(found, expected, atol=1e-7, rtol=1e-7)


def test_a_row_of_weight_zero_may_hold_anything_finite(numbers):
    X, y = numbers
    more, extra = np.vstack([X, np.full((1, 3), 1e6)]), np.append(y, 1e9)
    weight = np.append(np.ones(60), 0)
    expected = Regressor(**TINY).fit(X, y).predict(X)
    assert_array_equal(Regressor(**TINY).fit(more, extra, weight).predict(X), expected)


@pytest.mark.parametrize("rows", [60, 150])  # full batch in float64; minibatches in float32
def test_one_seed_gives_the_same_bits_and_another_other_ones(rows):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(rows, 3))
    y = X[:, 0] + rng.normal(size=rows)
    options = {**TINY, "dropout": 0.2}
    a, b, c = (Regressor(**options, random_state=s).fit(X, y).predict(X) for s in (3, 3, 4))
    assert_array_equal(a, b)
    assert not np.array_equal(a, c)


@pytest.mark.parametrize("rows", [60, 150])
def test_torchs_default_dtype_does_not_matter(rows):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(rows, 3))
    y = X[:, 0] + rng.normal(size=rows)
    found = []
    for dtype in (torch.float32, torch.float64):
        torch.set_default_dtype(dtype)
        found.append(Regressor(**TINY).fit(X, y).interval(X))
        assert torch.get_default_dtype() == dtype
    assert_array_equal(*found)


def test_a_random_state_is_drawn_from_and_none_means_numpys_own(numbers):
    X, y = numbers
    model = Regressor(**TINY, random_state=np.random.RandomState(0))
    first, second = model.fit(X, y).predict(X), model.fit(X, y).predict(X)
    assert not np.array_equal(first, second)
    again = Regressor(**TINY, random_state=np.random.RandomState(0)).fit(X, y).predict(X)
    assert_array_equal(first, again)
    np.random.seed(0)
    assert_array_equal(Regressor(**TINY, random_state=None).fit(X, y).predict(X), first)


PROCESS = """
import json, numpy as np
from ansatz import Regressor, Classifier
rng = np.random.default_rng(0)
X = rng.normal(size=(150, 3)); y = X[:, 0] + rng.normal(size=150)
r = Regressor(widths=(8,), epochs=5, dropout=0.1).fit(X, y)
c = Classifier(widths=(8,), epochs=5).fit(X[:60], np.where(y[:60] > 0, "a", "b"))
s = r.sample(X, 2).tolist()
print(json.dumps([r.predict(X).tolist(), c.predict_proba(X).tolist(), s, r.recipe_.sentence()]))
"""


def test_a_fresh_process_agrees_to_the_last_bit_with_one_that_has_lived(capsys):
    """Other hashes of words (those of this process are random), no earlier fits, no seed set."""
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    done = subprocess.run(
        [sys.executable, "-c", PROCESS],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )
    assert done.returncode == 0, done.stderr
    capsys.readouterr()
    exec(PROCESS, {})
    assert json.loads(capsys.readouterr().out) == json.loads(done.stdout)


def test_the_users_random_numbers_are_left_alone(numbers):
    torch.manual_seed(7), np.random.seed(7)
    expected = torch.rand(3), np.random.rand(3)
    torch.manual_seed(7), np.random.seed(7)
    model = Regressor(**TINY, dropout=0.3).fit(*numbers)
    model.sample(numbers[0]), model.residuals(*numbers)
    assert torch.equal(torch.rand(3), expected[0])
    assert_array_equal(np.random.rand(3), expected[1])


def test_inputs_are_never_modified(mixed):
    frame, number, label, _ = mixed
    weight, offset = np.ones(80), np.zeros(80)
    kept = [part.copy() for part in (frame, number, label, weight, offset)]
    for model, y in ((Regressor(**TINY), number), (Classifier(**TINY), label)):
        model.fit(frame, y, weight, offset=offset).predict(frame, offset=offset)
        model.partial_fit(frame, y, sample_weight=weight)
        model.evaluate(frame, y, weight, offset=offset)
    pd.testing.assert_frame_equal(frame, kept[0])
    for after, before in zip((number, label, weight, offset), kept[1:], strict=True):
        assert_array_equal(after, before)


LAYOUTS = {
    "list": lambda X: X.tolist(),
    "Fortran order": np.asfortranarray,
    "not contiguous": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "read-only": lambda X: _read_only(X),
    "tensor": torch.from_numpy,
    "tensor in float64 on the tape": lambda X: torch.from_numpy(X).requires_grad_().detach(),
}


def _read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_of_the_same_numbers_gives_the_same_fit(numbers, layout):
    X, y = numbers
    expected = Regressor(**TINY).fit(X, y).predict(X)
    model = Regressor(**TINY).fit(layout(X), layout(y.reshape(-1, 1)))
    assert_array_equal(model.predict(layout(X))[:, 0], expected)


def test_a_frame_of_numbers_is_an_array_with_names(numbers):
    X, y = numbers
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = Regressor(**TINY).fit(frame, pd.Series(y, name="price"))
    assert_array_equal(model.predict(frame), Regressor(**TINY).fit(X, y).predict(X))
    assert model.target_names_ == ["price"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"a": "z"}))


def test_frames_of_other_libraries_are_tables_too(mixed):
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    frame, number, _, _ = mixed
    expected = Regressor(**TINY).fit(frame, number).predict(frame)
    for other in (polars.from_pandas(frame), pyarrow.Table.from_pandas(frame)):
        assert_allclose(Regressor(**TINY).fit(other, number).predict(other), expected, rtol=1e-9)


def test_a_column_of_texts_is_recognized_in_frames_of_other_libraries(mixed):
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    frame, *_ = mixed
    texts = frame.assign(said=[f"what the row {row} says in words" for row in range(len(frame))])
    for convert in (pd.DataFrame, polars.from_pandas, pyarrow.Table.from_pandas):
        assert Regressor().task(convert(texts)).structure.name == "joined"
        assert Regressor().task(convert(frame)).structure.name == "vector"
        assert Regressor().task(convert(texts[["said"]])).structure.name != "joined"


@pytest.mark.parametrize(
    "change, says",
    [
        ({"sample_weight": -np.ones(60)}, "[Nn]egative"),
        ({"sample_weight": np.zeros(60)}, "zero"),
        ({"sample_weight": np.full(60, np.nan)}, "NaN"),
        ({"sample_weight": np.full(60, np.inf)}, "infinity"),
        ({"sample_weight": np.ones(59)}, "60"),
        ({"offset": np.full(60, np.nan)}, "offset must be finite, got nan at row 0"),
        ({"offset": np.ones((60, 1))}, r"offset must have shape \(60,\), got \(60, 1\)"),
        ({"offset": np.ones(59)}, r"offset must have shape \(60,\), got \(59,\)"),
        ({"X": np.full((60, 3), np.inf)}, "infinity"),
        ({"y": np.full(60, np.nan)}, "y contains NaN"),
        ({"y": np.full(60, np.inf)}, "y contains infinity"),
        ({"y": np.ones(59)}, "X has 60 rows and y has 59"),
        ({"y": np.ones((60, 2, 2))}, r"\(N,\) or \(N, K\)|dim"),
        ({"y": None}, "y is None|requires y"),
    ],
)
def test_a_fault_in_the_rows_is_named(numbers, change, says):
    arguments = {"X": numbers[0], "y": numbers[1], **change}
    with pytest.raises(ValueError, match=says):
        Regressor(**TINY).fit(**arguments)


def test_missing_numbers_are_marked_and_infinite_ones_refused(mixed):
    frame, number, _, _ = mixed
    model = Regressor(**TINY).fit(frame, number)
    assert "b[missing]" in model.model_.encoder.preprocessor.feature_names
    bad = frame.assign(a=np.where(np.arange(80) == 4, np.inf, frame["a"]))
    with pytest.raises(ValueError, match=r"(?s)'a'.*inf|inf.*'a'"):
        Regressor(**TINY).fit(bad, number)


@pytest.mark.parametrize(
    "options, says",
    [
        ({"dropout": 1.5}, "dropout"),
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"holdout": 1.0}, "holdout"),
        ({"batch_size": -3}, "batch_size"),
        ({"likelihood": "poison"}, "poisson"),
        ({"network": "mpl"}, "mlp"),
        ({"inference": "bayes"}, "inference"),
        ({"activation": "relo"}, "relu"),
        ({"device": "gpu"}, "gpu"),
        ({"network_options": {"width": 3}}, "width"),
        ({"widths": (0,)}, "width"),
        ({"widths": (2**31,)}, "width|weights|parameters|large"),
        ({"epochs": 0}, "epochs"),
        ({"epochs": -1}, "epochs"),
        ({"time_limit": -1}, "time_limit"),
    ],
)
def test_a_wrong_option_is_named(numbers, options, says):
    with pytest.raises(UsageError, match=says):
        Regressor(**{**TINY, **options}).fit(*numbers)


def test_nothing_can_be_asked_of_an_unfitted_model(numbers):
    X, y = numbers
    faces = (Regressor(), Classifier(), SurvivalRegressor(), Ranker(), Segmenter())
    for model in faces:
        for ask in (
            lambda m: m.predict(X),
            lambda m: m.predict_dist(X),
            lambda m: m.interval(X),
            lambda m: m.sample(X),
            lambda m: m.evaluate(X, y),
            lambda m: m.residuals(X, y),
            lambda m: m.summary(),
            lambda m: m.describe(),
            lambda m: m.save("nowhere"),
            lambda m: m.predict_frame(X),
            lambda m: m.duplicates(X),
            lambda m: m.evaluate(X),
            lambda m: m.calibrate(X, y),
            lambda m: m.report(X, y),
        ):
            with pytest.raises(NotFittedError):
                ask(model)
        for name in dir(model):
            if name.startswith("predict_") or name == "between_entropy":
                with pytest.raises(NotFittedError):
                    getattr(model, name)(X)


def test_a_failed_fit_with_an_exploding_rate_names_step_and_tensor(numbers):
    X, y = numbers
    with pytest.raises(NumericalError, match=r"step \d+"):
        Regressor("poisson", widths=(8,), epochs=500, learning_rate=1e6, activation="relu").fit(
            X, np.exp(y).round()
        )


# Going on.


def test_partial_fit_goes_on_where_it_was(numbers):
    """Two calls with the same rows are not one call twice: weights and moments are carried on."""
    X, y = numbers
    model = Regressor(widths=(8,), learning_rate=1e-2)
    losses = [-model.partial_fit(X, y).log_score(X, y) for _ in range(30)]
    assert losses[-1] < losses[0] - 0.3
    steps = 30 * -(-len(y) // 32)  # batches of 32
    assert model.n_iter_ == steps and int(model.model_.optimizer_state["number"]) == steps


def test_partial_fit_over_parts_is_a_pass_over_all_rows(numbers):
    X, y = numbers
    model = Regressor(widths=(8,), batch_size=20, learning_rate=1e-2)
    model.partial_fit(X, y)
    assert model.n_iter_ == 3
    for part in np.split(np.arange(60), 3):
        model.partial_fit(X[part], y[part])
    assert model.n_iter_ == 6


def test_partial_fit_keeps_what_the_first_rows_taught(numbers):
    X, y = numbers
    model = Regressor(widths=(8,)).partial_fit(X, y)
    before = model.model_.encoder.preprocessor.state()
    model.partial_fit(100 + X, y)
    assert model.model_.encoder.preprocessor.state() == before
    with pytest.raises(ValueError, match="2 features"):
        model.partial_fit(X[:, :2], y)


def test_partial_fit_of_classes_needs_them_once(mixed):
    frame, _, label, _ = mixed
    with pytest.raises(ValueError, match="first call"):
        Classifier(widths=(8,)).partial_fit(frame, label)
    only = frame[label == "yes"], label[label == "yes"]
    model = Classifier(widths=(8,)).partial_fit(*only, classes=["no", "yes"])
    model.partial_fit(frame, label)
    assert model.classes_.tolist() == ["no", "yes"]
    assert np.isfinite(model.predict_proba(frame)).all()
    with pytest.raises(ValueError, match="maybe"):
        model.partial_fit(frame, np.where(label == "yes", "maybe", "no"))
    with pytest.raises(ValueError, match="differ"):
        model.partial_fit(frame, label, classes=["no", "maybe"])


def test_a_linear_model_has_no_partial_fit(numbers):
    with pytest.raises(UsageError, match="use fit"):
        Regressor(network="linear").partial_fit(*numbers)


def test_warm_start_begins_at_the_last_weights(numbers):
    X, y = numbers
    options = {"widths": (8,), "epochs": 30, "learning_rate": 1e-2, "weight_decay": 0.0}
    warm = Regressor(**options, warm_start=True)
    first = warm.fit(X, y).log_score(X, y)
    weight = next(warm.model_.network.parameters()).clone()
    second = warm.fit(X, y).log_score(X, y)
    moved = (next(warm.model_.network.parameters()) - weight).abs().max()
    assert second > first and moved < 30 * 1e-2 * 3  # Adam moves about a rate per step
    cold = Regressor(**options).fit(X, y)
    assert cold.log_score(X, y) == pytest.approx(first, rel=1e-12)


def test_warm_start_refuses_other_classes(mixed):
    frame, _, label, count = mixed
    model = Classifier(**TINY, warm_start=True).fit(frame, label)
    for other in (np.where(label == "yes", "ja", "nein"), np.minimum(count, 2)):
        with pytest.raises(ValueError, match="warm_start"):
            model.fit(frame, other)


def test_a_network_of_ones_own_is_copied_not_trained(numbers):
    X, y = numbers
    torch.set_default_dtype(torch.float32)
    own = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    before = [p.clone() for p in own.parameters()]
    model = Regressor(network=own, epochs=200, learning_rate=1e-2).fit(X, y)
    assert all(torch.equal(p, q) for p, q in zip(own.parameters(), before, strict=True))
    assert model.score(X, y) > 0.5


@pytest.mark.parametrize("rows", [60, 600])
@pytest.mark.parametrize("outputs, dispersion", [(1, "constant"), (2, "predicted")])
@pytest.mark.parametrize("likelihood", ["normal", Normal()], ids=["by name", "made"])
def test_the_outputs_of_a_module_decide_the_dispersion_whatever_the_rows(
    rows, outputs, dispersion, likelihood
):
    X = np.random.default_rng(0).normal(size=(rows, 3))
    model = Regressor(likelihood, network=nn.Linear(3, outputs), epochs=1).fit(X, X[:, 0])
    assert model.model_.likelihood.dispersion.kind == dispersion
    with pytest.raises(UsageError, match=r"gives 3 numbers.* takes 2 \(normal.*or 1 \(normal"):
        Regressor(likelihood, network=nn.Linear(3, 3), epochs=1).fit(X, X[:, 0])


def test_a_dispersion_that_was_asked_for_stays(numbers):
    X, y = numbers
    for likelihood, options in (
        (Normal(dispersion=0.5), {}),
        ("normal", {"dispersion": "constant"}),
    ):
        with pytest.raises(DataError, match="gives 2 numbers per row, the likelihood needs 1"):
            Regressor(likelihood, likelihood_options=options, network=nn.Linear(3, 2)).fit(X, y)


@pytest.mark.parametrize("outputs, name", [(1, "bernoulli"), (2, "categorical")])
def test_a_module_may_have_one_logit_or_two_for_two_classes(numbers, outputs, name):
    X, y = numbers
    model = Classifier(network=nn.Linear(3, outputs), epochs=2).fit(X, y > 0)
    assert model.model_.likelihood.name == name
    assert model.predict_proba(X).shape == (60, 2)


def test_two_targets_and_images_count_their_outputs_alike(numbers):
    X, y = numbers
    both = Regressor(network=nn.Linear(3, 4), epochs=1).fit(X, np.stack([y, y**2], 1))
    assert both.model_.likelihood.dispersion.kind == "predicted"
    images = np.random.default_rng(0).normal(size=(12, 1, 6, 6)).astype(np.float32)
    network = nn.Sequential(nn.Conv2d(1, 2, 6), nn.Flatten(), nn.Linear(2, 2))
    one = Regressor(network=network, epochs=1).fit(images, y[:12])
    assert one.model_.likelihood.dispersion.kind == "predicted"


def test_a_column_must_vary(numbers):
    _, y = numbers
    with pytest.raises(ValueError, match=r"minimum of 1|0 feature"):
        Regressor(**TINY).fit(np.empty((60, 0)), y)


def test_training_rows_are_known_where_a_model_is_evaluated(mixed, tmp_path):
    frame, y, *_ = mixed
    model = Regressor(network="linear").fit(frame[:60], y[:60])
    model.evaluate(frame[60:], y[60:])
    for each in (model, ansatz.load(model.save(tmp_path / "model"))):
        with pytest.warns(DataWarning, match="trained on 10 of these 20 rows"):
            each.evaluate(frame[50:70], y[50:70])
        with pytest.warns(DataWarning, match="trained on 10 of these 20 rows"):
            report = each.report(frame[50:70], y[50:70], refits=0)
        assert "trained on 10 of these 20 rows" in report.verdict[-1]
        assert "test rows" not in report.page and "rows that were given" in report.page
    report = model.report(frame[60:], y[60:], refits=0)
    assert len(report.verdict) == 2 and "rows that were given" not in report.page
    model.model_.row_keys = None  # as one that an older version saved
    report = model.report(frame[60:], y[60:], refits=0)
    assert report.verdict[-1] == "Whether the model was trained on these rows is not known."


def test_rows_of_every_pass_are_training_rows(numbers):
    X, y = numbers[0][:40], numbers[1][:40]
    model = Regressor(**TINY).partial_fit(X[:10], y[:10]).partial_fit(X[10:20], y[10:20])
    with pytest.warns(DataWarning, match="trained on 20 of these 40 rows"):
        model.evaluate(X, y)


def test_a_report_calls_columns_by_their_names(numbers):
    X = pd.DataFrame(numbers[0]).add_prefix("height_")
    model = Regressor(network="linear").fit(X[:-40], numbers[1][:-40])
    page = model.report(X[-40:], numbers[1][-40:], refits=0).page
    assert all(name in page for name in X) and ">x1<" not in page
