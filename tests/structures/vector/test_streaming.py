"""A fit of a stream is the fit of the same rows in memory."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from torch.testing import assert_close
from typer.testing import CliRunner

import ansatz
from ansatz import structures
from ansatz.cli.main import app
from ansatz.data import Preprocessor, TensorSource, read_table
from ansatz.data.split import TRAIN
from ansatz.errors import DataError, UsageError
from ansatz.fitting import Request
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.contracts.structure import Feed
from ansatz.fitting.problem import read_job
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.scores import PooledMetrics
from ansatz.fitting.task import task_of
from ansatz.metrics import compute_metrics
from ansatz.structures.vector import stream_rows, streaming
from ansatz.structures.vector.reading_again import evaluate_stream
from ansatz.training import loop as training_loop

SMALL = {"epochs": 2, "widths": [8], "batch_size": 32}
Y = ColumnRoles(target=["y"])


def table(rows=600, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(rows, 3)), columns=["a", "b", "c"])
    frame["b"] = frame["b"].where(rng.random(rows) > 0.1)
    frame["town"] = rng.choice(["Jena", "Ulm", "Bonn"], rows)
    frame["street"] = np.char.add("S", rng.integers(30, size=rows).astype(str))
    frame["y"] = frame["a"] + (frame["town"] == "Ulm") + 0.5 * rng.normal(size=rows)
    return frame


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "t.csv"
    table().to_csv(path, index=False)
    return path


def cut(patch, block_bytes=9_000, sampled=stream_rows.SAMPLED):
    """Small blocks, two of which are mixed."""
    small = partial(streaming.open_blocks, block_bytes=block_bytes)
    patch.setattr(streaming, "open_blocks", small)
    patch.setattr(stream_rows, "WINDOW_BYTES", 0)
    patch.setattr(streaming, "SAMPLED", sampled)


def stream(path, column_roles=Y, *, options=None, likelihood="normal", sizes=None, **more):
    more = {
        **column_roles.model_dump(exclude={"spellings", "order"}),
        **more,
        "options": {**SMALL, **(options or {})},
    }
    with pytest.MonkeyPatch.context() as patch:
        cut(patch, **(sizes or {}))
        return ansatz.fit(path, stream=True, likelihood=likelihood, **more)


def weights(model):
    trained = model.model_.posterior.networks[0]
    return {**trained.network.state_dict(), **trained.objective.state_dict()}


@pytest.fixture
def learn(csv, monkeypatch):
    """The training rows of a stream."""
    cut(monkeypatch)
    asked = {"target": "y", "likelihood": "normal", "options": SMALL | {"holdout": 0.125}}
    request = Request.of(csv, {**asked, "x": "vector", "stream": True})
    with streaming.streaming(request, {"likelihood": "normal"}, "") as problem:
        task = task_of(request, problem)
        yield task.structure.split(problem, task, read_job(problem, task), 0.2).learn


def test_the_state_is_that_of_the_training_rows_in_memory(csv, learn):
    parts, blocks = learn.rows.stream.parts, learn.rows.stream.table.disk.blocks
    assert len(blocks) > 5
    frame = read_table(csv).frame
    split = np.concatenate([parts.part_of(k) for k in range(len(blocks))])
    rows = frame[split == TRAIN].drop(columns="y")
    expected = Preprocessor.fit(rows, learn.rows.columns).state()
    found = parts.learner.preprocessor().state()
    numbers, others = found.pop("numeric"), expected.pop("numeric")
    assert found == expected and numbers["masked"] == others["masked"]
    for name in ("center", "scale", "fill"):
        np.testing.assert_allclose(numbers[name], others[name], rtol=0, atol=1e-10)


def test_training_on_the_same_order_of_rows_gives_the_same_weights(learn):
    """Batches from disk and batches from memory differ in nothing that training sees."""
    vector, recipe = structures.create("vector"), Recipe(batch_size=32)
    assert learn.rows.stream.is_held
    encoder = vector.encoder(learn.rows, learn.weight.numpy(), recipe, {})
    memory = TensorSource(vector.batch(learn, encoder, recipe), 32, shuffle=False)
    disk = vector.source(learn, encoder, Feed(recipe, 0, training=True), {})
    assert disk.window == 2
    disk.shuffle = False
    assert len(memory) == len(disk)
    for one, other in zip(memory.batches(0), disk.batches(0), strict=True):
        for left, right in ((one.inputs[0], other.inputs[0]), (one.inputs[1], other.inputs[1])):
            assert torch.equal(left, right)
        assert torch.equal(one.target, other.target) and torch.equal(one.index, other.index)


def test_a_streamed_fit_does_as_well_as_one_in_memory(csv):
    memory = ansatz.fit(csv, target="y", likelihood="normal", options=SMALL | {"epochs": 10})
    streamed = stream(csv, options={"epochs": 10})
    assert sum(streamed.rows.values()) == sum(memory.rows.values()) == 600
    assert [c.role for c in streamed.columns] == [c.role for c in memory.columns]
    assert streamed.metrics["rmse"] == pytest.approx(memory.metrics["rmse"], rel=0.1)
    assert streamed.linear["rmse"] == pytest.approx(memory.linear["rmse"], rel=0.1)
    assert streamed.metrics.keys() == memory.metrics.keys()


def test_a_run_killed_within_an_epoch_resumes_bit_for_bit(csv, tmp_path, monkeypatch):
    expected = stream(csv, out=tmp_path / "straight")
    monkeypatch.setattr(training_loop, "_SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    real, reads = stream_rows.BlockSource, []

    class Dies(real):
        """Ends the process, as far as the run can tell, while a later window is read."""

        def _mixed(self, epoch, number, blocks):
            reads.append((epoch, number))
            if len(reads) == 5:
                raise MemoryError("killed")
            return super()._mixed(epoch, number, blocks)

    monkeypatch.setattr(stream_rows, "BlockSource", Dies)
    with pytest.raises(MemoryError):
        stream(csv, out=tmp_path / "cut")
    assert reads[-1][1] > 0  # in the middle of an epoch
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".tmp-")]
    monkeypatch.setattr(stream_rows, "BlockSource", real)
    with pytest.raises(UsageError, match=r"unfinished run"):
        stream(csv, out=tmp_path / "cut")
    resumed = stream(csv, out=tmp_path / "cut", resume=True)
    for name, value in weights(expected.model).items():
        assert torch.equal(value, weights(resumed.model)[name]), name
    assert resumed.metrics == expected.metrics
    again = stream(csv, out=tmp_path / "cut", resume=True)
    assert "nothing to do" in again.notes[-1]


def test_a_resume_with_other_data_is_refused(csv, tmp_path):
    stream(csv, out=tmp_path / "model")
    table(seed=1).to_csv(csv, index=False)
    with pytest.raises(UsageError, match=r"fitted to other data"):
        stream(csv, out=tmp_path / "model", resume=True)


def test_metrics_of_blocks_are_those_of_all_test_rows(csv):
    at_once, pooled = stream(csv), stream(csv, sizes={"sampled": 40})
    # The likelihood starts from a sample of 40 rows, so the fits differ; the model evaluates itself
    # alike.
    assert any("on a sample" in note or "sample of 40" in note for note in pooled.notes)
    assert pooled.metrics["rmse"] == pytest.approx(at_once.metrics["rmse"], rel=0.2)
    frame = read_table(csv).frame
    found = evaluate_stream(at_once.model, [frame.iloc[:200], frame.iloc[200:]], sampled=50)
    expected = at_once.model.evaluate(frame)
    for name, value in found.metrics.items():
        assert value == pytest.approx(expected[name], rel=1e-10), name
    assert found.sampled == [] and found.rows == 600


def test_pooled_metrics_of_classes_leave_ranks_to_the_sample():
    rng = np.random.default_rng(0)
    y = torch.from_numpy(rng.integers(2, size=300) * 1.0)
    distribution = torch.distributions.Bernoulli(logits=torch.from_numpy(rng.normal(size=300)))

    class Distribution:
        probs, logits = distribution.probs, distribution.logits

        def __init__(self, part=slice(None)):
            self.probs, self.logits = distribution.probs[part], distribution.logits[part]

        def log_prob(self, value):
            return torch.distributions.Bernoulli(probs=self.probs).log_prob(value)

    pooled = PooledMetrics()
    for part in (slice(0, 100), slice(100, 300)):
        pooled.add(
            compute_metrics(y[part], distribution=Distribution(part)),
            y[part],
            torch.ones(len(y[part])),
        )
    whole = compute_metrics(y, distribution=Distribution())
    found = pooled.result(whole)
    for name in ("nll", "accuracy", "brier"):
        assert found[name] == pytest.approx(whole[name], rel=1e-12)
    assert pooled.left(whole) == ["ece", "auc"]


def test_outcomes_that_the_likelihood_cannot_produce_are_named_in_any_block(tmp_path):
    frame = table().assign(y=1)
    frame.loc[570, "y"] = -3
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(DataError, match=r"t.csv, column 'y'.*-3.*row 571"):
        stream(tmp_path / "t.csv", likelihood="poisson")


def test_classes_weights_groups_and_missing_outcomes(tmp_path):
    rng = np.random.default_rng(0)
    frame = table()
    frame["y"] = np.where(frame["y"] > 0.5, "yes", "no")
    frame["who"] = np.repeat(np.arange(120), 5)
    frame["w"] = rng.integers(0, 3, 600)
    frame.loc[::50, "y"] = None
    frame.to_csv(tmp_path / "t.csv", index=False)
    column_roles = ColumnRoles(target=["y"], group="who", weights="w")
    options = {"class_weight": "balanced", "epochs": 10}
    fit = stream(tmp_path / "t.csv", column_roles, likelihood=None, options=options)
    memory = ansatz.fit(
        tmp_path / "t.csv", target="y", group="who", weights="w", options=SMALL | options
    )
    assert fit.likelihood == "bernoulli" and fit.model.classes_.tolist() == ["no", "yes"]
    streamed, held = fit.fitted.outcome.log_weights, memory.fitted.outcome.log_weights
    assert_close(torch.tensor(streamed), torch.tensor(held))
    assert sum(fit.rows.values()) == sum(memory.rows.values())
    assert any("12 rows without a value of 'y' were left out" in note for note in fit.notes)
    assert fit.metrics["auc"] == pytest.approx(memory.metrics["auc"], abs=0.2)


def test_class_weights_are_those_of_all_rows(tmp_path, monkeypatch):
    frame = table()
    frame["y"] = np.where(frame["y"] > 1, "yes", "no")
    frame.to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.setattr(streaming, "SURVEYED", 100)
    options = {"class_weight": "balanced"}
    fit = stream(tmp_path / "t.csv", likelihood="bernoulli", options=options)
    memory = ansatz.fit(
        frame, target="y", likelihood="bernoulli", test=0.0, options=SMALL | options
    )
    streamed, held = fit.fitted.outcome.log_weights, memory.fitted.outcome.log_weights
    assert_close(torch.tensor(streamed), torch.tensor(held))


def test_a_streamed_fit_leaves_no_origin_and_no_row_keys(csv):
    fit = stream(csv)
    assert fit.provenance is None and fit.split_problem is None and not fit.rows_of
    assert fit.fitted.row_keys is None and fit.log_likelihood is None


def test_counts_with_an_exposure_and_censored_times_stream(tmp_path):
    rng = np.random.default_rng(0)
    frame = table()
    frame["years"] = rng.uniform(0.5, 2.0, 600)
    frame["n"] = rng.poisson(frame["years"] * np.exp(0.5 * frame["a"]))
    frame["t"] = rng.exponential(np.exp(frame["a"]))
    frame["died"] = (rng.random(600) < 0.7).astype(int)
    frame.to_csv(tmp_path / "t.csv", index=False)
    few = frame.drop(columns=["t", "died", "y"])
    few.to_csv(tmp_path / "n.csv", index=False)
    column_roles = ColumnRoles(target=["n"], exposure="years")
    counts = stream(tmp_path / "n.csv", column_roles, likelihood="poisson", options={"epochs": 4})
    assert counts.metrics["nll"] < counts.constant["nll"]
    column_roles = ColumnRoles(target=["t"], event="died")
    times = stream(tmp_path / "t.csv", column_roles, likelihood="weibull", options={"epochs": 4})
    assert times.metrics["nll"] < times.constant["nll"]


def test_the_likelihood_is_chosen_on_a_sample_and_a_linear_model_fitted_to_it(csv, tmp_path):
    table(90).to_csv(
        tmp_path / "few.csv", index=False
    )  # few: linear models compare the likelihoods
    chosen = stream(tmp_path / "few.csv", likelihood=None, sizes={"block_bytes": 2_000})
    assert chosen.likelihood in ("normal", "laplace", "student_t") and len(chosen.candidates) == 3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streaming, "SAMPLED", 100)
        linear = ansatz.fit(csv, target="y", network="linear", likelihood="normal", stream=True)
    assert linear.linear == linear.metrics
    assert any("fitted to a sample of 100 training rows" in note for note in linear.notes)


@pytest.mark.parametrize(
    "column_roles, options, message",
    [
        (Y, {"likelihood": "cox"}, "cox compares every row"),
        (Y, {"likelihood": "plackett_luce"}, "rankings do not stream|compares every row"),
        (Y, {"folds": 5}, "--folds needs all rows"),
        (ColumnRoles(target=["y"], time="a"), {}, "--time orders all rows"),
        (Y, {"inference": "ensemble"}, "does not read a stream yet"),
        (Y, {"options": {"calibration": 0.2}}, "calibration needs all rows"),
        (ColumnRoles(target=["y"], event="town=Ulm"), {}, "a stream needs a column of 0 and 1"),
    ],
)
def test_what_needs_all_rows_is_refused_in_one_line(csv, column_roles, options, message):
    with pytest.raises(UsageError, match=message) as caught:
        ansatz.fit(
            csv, **column_roles.model_dump(exclude={"spellings", "order"}), **options, stream=True
        )
    assert "--no-stream" in str(caught.value) and "\n" not in str(caught.value)


def test_the_command_streams_fits_predicts_and_evaluates(csv, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    fit = ["fit", "t.csv", "--target", "y", "--likelihood", "normal", "--stream", "--json"]
    fit += ["--set", "epochs=1", "--set", "widths=[8]", "--out", "model", "--quiet"]
    done = runner.invoke(app, fit)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["rows"]["train"] > 300
    answers = []
    for way in ("--stream", "--no-stream"):
        out = f"p{way}.csv"
        done = runner.invoke(
            app, ["predict", "model", "t.csv", "--interval", "0.9", "--out", out, way]
        )
        assert done.exit_code == 0, done.output
        evaluated = runner.invoke(app, ["evaluate", "model", "t.csv", "--json", way])
        answers.append((pd.read_csv(out), json.loads(evaluated.stdout)))
    pd.testing.assert_frame_equal(answers[0][0], answers[1][0], rtol=1e-12)
    assert answers[0][1]["nll"] == pytest.approx(answers[1][1]["nll"], rel=1e-10)
    assert [p.name for p in tmp_path.glob(".tmp-*")] == []


def test_a_fit_streams_by_itself_beyond_the_memory_limit(csv, monkeypatch):
    from ansatz.data.streams import available

    monkeypatch.setattr(available, "SMALL", 0)
    fit = ansatz.fit(csv, target="y", likelihood="normal", options=SMALL, memory_limit="10KB")
    assert "it was read as a stream" in fit.notes[0]
