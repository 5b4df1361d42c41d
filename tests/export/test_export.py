"""An exported file answers in onnxruntime what the model answers in ansatz."""

import json
import sys

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
import torch
from scipy import stats

import ansatz
from ansatz.cli.main import run
from ansatz.errors import MissingExtraError, UsageError
from ansatz.onnx import feed
from ansatz.onnx.served import curve_times

FAST = {"epochs": 3, "widths": [8]}
pytestmark = pytest.mark.filterwarnings("ignore::ansatz.data.DataWarning")


@pytest.fixture(autouse=True)
def single_precision():
    """As users train; the suite's default is double."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(before)


def table(rows: int = 300, seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": random.normal(50, 10, rows),
            "b": random.normal(size=rows),
            "group": random.choice(list("pqr"), rows),
            "town": random.choice([f"t{k}" for k in range(40)], rows),
            "size": pd.Categorical(
                random.choice(["low", "mid", "high"], rows), ["low", "mid", "high"], ordered=True
            ),
            "day": pd.Timestamp("1995-02-03") + pd.to_timedelta(random.uniform(0, 9000, rows), "D"),
            "raw": random.normal(size=rows),  # the name of an output
        }
    )
    frame.loc[::9, "a"] = np.nan
    frame.loc[::11, "group"] = None
    return frame


def strange(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows with what training did not have: levels, missing cells, a number far away."""
    frame = frame.copy()
    frame["size"] = frame["size"].astype(str).mask(frame.index % 13 == 0)
    frame.loc[3, "group"], frame.loc[4, "town"] = "never seen", None
    frame.loc[5, "b"], frame.loc[6, "day"], frame.loc[7, "b"] = np.nan, pd.NaT, 1e9
    return frame


def outcome(frame: pd.DataFrame) -> np.ndarray:
    noise = np.random.default_rng(1).normal(size=len(frame))
    return (0.5 * frame.b + (frame.group == "p") + 0.3 * noise).to_numpy()


def serve(path, inputs: dict) -> dict:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, inputs), strict=True))


def assert_equal(found, expected, tolerance=1e-5):
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max()


def exported(model, tmp_path, **options):
    written = ansatz.export(model, tmp_path / "model.onnx", **options)
    onnx.checker.check_model(str(written.path), full_check=True)
    return written.path


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return table()


def test_a_network_of_columns_of_every_kind_gives_the_same_likelihood(rows, tmp_path):
    model = ansatz.Regressor(quantile=["b"], **FAST).fit(rows, outcome(rows))
    path = exported(model, tmp_path)
    given = strange(rows)
    for some in (given[:1], given[:7], pd.concat([given] * 4)[:1000]):
        found = serve(path, feed(model, some))
        likelihood = model.predict_dist(some)
        assert_equal(found["prediction"], model.predict(some))
        assert_equal(found["likelihood_mean"], likelihood.mean)
        assert_equal(found["likelihood_sd"], likelihood.stddev)


@pytest.mark.slow
def test_double_precision_has_all_digits_and_a_linear_model_too(rows, tmp_path):
    model = ansatz.Regressor(network="linear").fit(rows, outcome(rows))
    path = exported(model, tmp_path, double=True)
    found = serve(path, feed(model, strange(rows), double=True))
    assert_equal(found["prediction"], model.predict(strange(rows)), 1e-12)


@pytest.mark.slow
def test_classes_come_by_name_with_their_probabilities(rows, tmp_path):
    y = np.where(outcome(rows) > 0.5, "hi", np.where(outcome(rows) > -0.3, "mid", "lo"))
    model = ansatz.Classifier(class_weight="balanced", **FAST).fit(rows, y)
    found = serve(exported(model, tmp_path), feed(model, strange(rows)))
    assert found["prediction"].tolist() == model.predict(strange(rows)).tolist()
    assert_equal(found["probabilities"], model.predict_proba(strange(rows)))


def test_counts_with_exposure_and_an_interval_by_the_files_own_words(tmp_path, rows):
    given = rows[["a", "b"]].assign(years=np.linspace(1, 5, len(rows)))
    given["count"] = np.random.default_rng(2).poisson(given.years * np.exp(0.3 * given.b))
    fit = ansatz.fit(
        given, target="count", exposure="years", likelihood="poisson", network="linear"
    )
    path = exported(fit, tmp_path)
    found = serve(path, feed(fit.model, given))
    assert_equal(found["prediction"], fit.model.predict_frame(given)["prediction"])
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    about = session.get_modelmeta().custom_metadata_map
    assert "mixture" in about["interval"]  # over the estimation error of the coefficients
    weights = np.array(json.loads(about["weights"]))
    expected = fit.model.interval(given[["a", "b"]], 0.9, offset=np.log(given.years))
    nodes = stats.poisson(np.exp(found["likelihood_log_rate"])[:, :, None])  # (N, J)
    counts = np.arange(60)
    cdf = (nodes.cdf(counts) * weights[:, None]).sum(1)  # (N, counts)
    for level, bound in zip((0.05, 0.95), expected.T, strict=True):
        assert np.array_equal((cdf < level).sum(1), bound)
    assert about["ansatz_version"] == ansatz.__version__
    assert json.loads(about["target"]) == ["count"] and about["link"] == "log"
    assert [each["column"] for each in json.loads(about["inputs"])] == ["a", "b", "years"]
    assert json.loads(about["fingerprint"])


@pytest.mark.slow
def test_survival_gives_medians_and_curves(rows, tmp_path):
    time = np.exp(outcome(rows))
    event = np.arange(len(rows)) % 3 > 0
    model = ansatz.SurvivalRegressor("weibull", network="linear").fit(rows, time, event=event)
    found = serve(exported(model, tmp_path), feed(model, strange(rows)))
    assert_equal(found["prediction"], model.predict(strange(rows)))
    assert {"likelihood_log_scale", "likelihood_sigma"} <= set(found)
    cox = ansatz.SurvivalRegressor("cox", **FAST).fit(rows[["a", "b"]], time, event=event)
    found = serve(exported(cox, tmp_path, overwrite=True), feed(cox, rows))
    assert_equal(found["prediction"], cox.predict(rows[["a", "b"]]))
    times = curve_times(cox.model_.likelihood)
    assert_equal(found["survival"], cox.predict_survival(rows[["a", "b"]], times))


@pytest.mark.slow
def test_an_array_several_targets_and_an_embedding_of_numbers(tmp_path):
    x = np.random.default_rng(0).normal(size=(200, 3))
    y = np.stack([x[:, 0], x[:, 1] ** 2], 1)
    options = {"numeric_embedding": "piecewise_linear", "norm": "layer"}
    model = ansatz.Regressor(network_options=options, **FAST).fit(x, y)
    found = serve(exported(model, tmp_path), {"X": x.astype(np.float32)})
    assert_equal(found["prediction"], model.predict(x))
    assert found["raw"].shape[:2] == (200, 2)


@pytest.mark.slow
def test_an_ensemble_gives_its_members_and_the_mean_of_their_mixture(tmp_path):
    x = np.random.default_rng(0).normal(size=(200, 2))
    model = ansatz.Regressor(inference="ensemble", members=3, **FAST).fit(x, np.sin(x[:, 0]))
    path = exported(model, tmp_path)
    found = serve(path, {"X": x.astype(np.float32)})
    assert_equal(found["prediction"], model.predict(x))
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    weights = json.loads(session.get_modelmeta().custom_metadata_map["weights"])
    assert found["raw"].shape[1] == len(weights)
    assert_equal(np.asarray(weights), model.model_.posterior.weights, 1e-12)
    assert_equal(found["likelihood_means"] @ np.asarray(weights), model.predict(x))


@pytest.mark.slow
def test_rankings_give_the_order_of_the_items(tmp_path):
    random = np.random.default_rng(0)
    x = random.normal(size=(120, 2))
    orders = [">".join(random.permutation(["tea", "rum", "milk"])) for _ in x]
    model = ansatz.Ranker(network="linear").fit(x, orders)
    found = serve(exported(model, tmp_path), {"X": x.astype(np.float32)})
    assert found["prediction"].tolist() == model.predict(x).tolist()
    assert_equal(found["probabilities"], model.predict_proba(x))


class Stubborn(torch.nn.Module):
    """A network whose path depends on its numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(2, 1)

    def forward(self, x):
        return self.linear(x) if x.sum().item() > -1e30 else self.linear(-x)


def test_a_network_that_torch_cannot_trace_is_one_line(tmp_path):
    x = np.random.default_rng(0).normal(size=(60, 2))
    model = ansatz.Regressor(network=Stubborn(), epochs=2).fit(x, x[:, 0])
    with pytest.raises(UsageError, match="cannot write the network Stubborn as ONNX: ") as caught:
        ansatz.export(model, tmp_path / "a.onnx")
    assert len(str(caught.value).splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_what_is_not_fitted_or_has_no_features_is_said(tmp_path):
    with pytest.raises(UsageError, match="not fitted"):
        ansatz.export(ansatz.Regressor(), tmp_path / "a.onnx")
    constant = ansatz.Regressor(network="linear").fit(None, [1.0, 2.0, 4.0])
    with pytest.raises(UsageError, match="no features"):
        ansatz.export(constant, tmp_path / "a.onnx")


def test_the_command_writes_prints_and_refuses(tmp_path, capsys):
    x = np.random.default_rng(0).normal(size=(60, 2))
    ansatz.Regressor("gamma", network="linear").fit(x, np.exp(x[:, 0])).save(tmp_path / "model")
    folder = str(tmp_path / "model")
    assert run(["export", folder, "--onnx", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["path"] == f"{folder}.onnx" and said["outputs"][-1] == "prediction"
    assert run(["export", folder, "--onnx"]) == 2
    assert "exists. To replace it: --overwrite." in capsys.readouterr().err
    assert run(["export", str(tmp_path / "none")]) == 4


def test_without_the_extra_one_line_says_how_to_install_it(tmp_path, monkeypatch):
    model = ansatz.Regressor(network="linear").fit([[1.0], [2.0], [4.0]], [1.0, 2.0, 4.5])
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'ansatz-learn\[onnx\]'"):
        ansatz.export(model, tmp_path / "a.onnx")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, target, likelihood", [("adult", "income", "bernoulli"), ("abalone", "rings", "gamma")]
)
def test_a_real_table_with_missing_cells_and_unseen_levels(name, target, likelihood, tmp_path):
    try:
        frame = ansatz.data.load(name).frame
    except ansatz.errors.AnsatzError as error:
        pytest.skip(str(error))
    target = next(c for c in frame.columns if str(c).lower() == target.lower())
    fit = ansatz.fit(frame[:3000], target=target, options={"epochs": 3}, likelihood=likelihood)
    path = exported(fit.model, tmp_path)
    others = frame[3000:4000].drop(columns=target)
    found, expected = serve(path, feed(fit.model, others)), fit.model.predict_frame(others)
    if "probabilities" in found:
        assert_equal(found["probabilities"], expected.filter(like="p_").to_numpy())
    else:
        assert_equal(found["prediction"], expected["prediction"])
