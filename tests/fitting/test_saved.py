"""A saved model: the same predictions, and nothing that a file could do to its reader."""

import json
import pickle
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from tests.estimators.conftest import TINY, mixed_table
from torch import nn

import ansatz
from ansatz import Classifier, Regressor
from ansatz.errors import AnsatzError, ModelError, UsageError
from ansatz.fitting.specification import _of_format_2
from ansatz.likelihoods import Poisson
from ansatz.storage import encode_json, read_json, read_tensors, write_folder

FIXTURES = Path(__file__).parents[1] / "fixtures" / "model-format-1"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    frame, number, _, _ = mixed_table()
    return Regressor(**TINY).fit(frame, number).save(tmp_path_factory.mktemp("saved") / "model")


@pytest.fixture
def saved(original, tmp_path):
    """A copy of one saved model, to do anything to."""
    return shutil.copytree(original, tmp_path / "model")


@pytest.fixture(params=["now", "format 1"])
def of_any_format(request, original, tmp_path):
    """A copy of a model of this version, or of the first format."""
    which = original if request.param == "now" else FIXTURES / "mlp"
    return shutil.copytree(which, tmp_path / "model")


def forge(folder, change, weights=None):
    """The folder with another ansatz.json, or other tensors, and sums that agree with them."""
    record = read_json(folder / "ansatz.json")
    change(record)
    files = {
        "ansatz.json": encode_json(record),
        "weights.safetensors": weights or read_tensors(folder / "weights.safetensors"),
    }
    return write_folder(folder.with_name("forged"), files, kind="model")


def assert_same(model, again, X):
    assert_array_equal(again.predict(X), model.predict(X))
    rows = model.model_.structure.from_python(X, estimator=model, reset=False)
    assert torch.equal(*(m.model_.posterior.predictive(rows).raw for m in (model, again)))
    assert again.describe() == model.describe()


@pytest.mark.parametrize(
    "model, outcome",
    [
        (Regressor(**TINY), "number"),
        (Regressor("student_t", **TINY), "number"),
        (Regressor(Poisson(), **TINY), "count"),
        (Regressor("gamma", network="linear"), "positive"),
        (Regressor("huber", **TINY), "number"),
        (Regressor(network="random_features", epochs=3), "number"),
        (Regressor(**TINY), "several"),
        (Regressor(**TINY), "column"),
        (Classifier(**TINY), "label"),
        (Classifier(class_weight={"no": 1.0, "yes": 3.0}, **TINY), "label"),
        (Classifier(class_weight="balanced", network="linear"), "three"),
        (Classifier(**TINY), "bool"),
        (Classifier(class_weight={0: 1, 1: 2, 2: 3}, **TINY), "three"),
    ],
    ids=str,
)
def test_predictions_are_the_same_bit_for_bit(mixed, tmp_path, model, outcome):
    frame, number, label, count = mixed
    frame = frame[["a", "town"]]
    y = {
        "number": number,
        "count": count,
        "positive": np.exp(number),
        "several": np.stack([number, -number], 1),
        "column": number[:, None],
        "label": label,
        "three": np.minimum(count, 2),
        "bool": number > 0,
    }[outcome]
    model.fit(frame, y)
    again = ansatz.load(model.save(tmp_path / "model"))
    assert type(again) is type(model)
    assert_same(model, again, frame)
    if isinstance(model, Classifier):
        assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
        assert again.classes_.dtype == model.classes_.dtype
    elif model.model_.likelihood.has_distribution:
        assert_array_equal(again.interval(frame), model.interval(frame))
        assert_array_equal(again.sample(frame, 2), model.sample(frame, 2))
    assert again.evaluate(frame, y) == model.evaluate(frame, y)
    # Fitted again, it learns the same: its parameters came back as well.
    assert_array_equal(again.fit(frame, y).predict(frame), model.predict(frame))


def test_an_array_needs_no_names(numbers, tmp_path):
    model = Regressor(**TINY).fit(*numbers)
    again = ansatz.load(model.save(tmp_path / "model"))
    assert not hasattr(again, "feature_names_in_") and again.n_features_in_ == 3
    assert_array_equal(again.predict(numbers[0]), model.predict(numbers[0]))


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("norm", [None, "layer"])
def test_partial_fit_after_loading_is_partial_fit_without_saving(numbers, tmp_path, dropout, norm):
    """Weights, both moments of Adam, the step number and the masks of dropout are all there."""
    X, y = numbers
    options = {} if norm is None else {"norm": norm}
    model = Regressor(
        widths=(8,), batch_size=16, dropout=dropout, network_options=options or None
    ).partial_fit(X, y)
    again = ansatz.load(model.save(tmp_path / "model"))
    for _ in range(3):
        model.partial_fit(X, y)
        again.partial_fit(X, y)
    assert_array_equal(again.predict(X), model.predict(X))
    assert again.n_iter_ == model.n_iter_ == 16


def test_a_loaded_network_goes_on_warm(numbers, tmp_path):
    model = Regressor(**TINY, warm_start=True).fit(*numbers)
    again = ansatz.load(model.save(tmp_path / "model"))
    assert_array_equal(
        again.fit(*numbers).predict(numbers[0]), model.fit(*numbers).predict(numbers[0])
    )


def test_a_refitted_model_has_no_old_summary_or_evidence(numbers, tmp_path):
    X, y = numbers
    model = ansatz.load(Regressor(network="linear").fit(X, y).save(tmp_path / "model"))
    old = str(model.summary())
    model.fit(X, 5 * y + 3)
    assert str(model.summary()) != old


def own():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def test_a_network_of_ones_own_is_given_back_to_load(numbers, tmp_path):
    X, y = numbers
    model = Regressor(network=own(), epochs=20).fit(X, y)
    folder = model.save(tmp_path / "model")
    with pytest.raises(AnsatzError, match=r"Sequential is one of your own.*network=module"):
        ansatz.load(folder)
    again = ansatz.load(folder, network=own())
    assert_array_equal(again.predict(X), model.predict(X))
    again.partial_fit(X, y)
    assert isinstance(again.model_.network, nn.Sequential)
    with pytest.raises(ModelError, match=r"lacks the tensor|holds the unknown tensor"):
        ansatz.load(folder, network=nn.Linear(3, 1))


# Nothing is overwritten, nothing half written.


def test_an_existing_folder_is_kept_unless_reported_otherwise(numbers, saved):
    before = (saved / "manifest.json").read_bytes()
    model = Regressor(**TINY).fit(*numbers)
    with pytest.raises(UsageError, match="exists"):
        model.save(saved)
    assert (saved / "manifest.json").read_bytes() == before
    model.save(saved, overwrite=True)
    assert_array_equal(ansatz.load(saved).predict(numbers[0]), model.predict(numbers[0]))
    assert [path.name for path in saved.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("name", ["a model", "模型", "m" * 200])
def test_a_folder_may_have_any_name(numbers, tmp_path, name):
    model = Regressor(**TINY).fit(*numbers)
    folder = model.save(tmp_path / "deep" / name) if name != "模型" else model.save(tmp_path / name)
    assert_array_equal(ansatz.load(folder).predict(numbers[0]), model.predict(numbers[0]))


# Damage.


def test_any_damaged_byte_is_noticed(saved, tmp_path):
    for file in sorted(saved.iterdir()):
        content = file.read_bytes()
        places = np.linspace(0, len(content) - 1, 12).astype(int)
        for place in places:
            damaged = bytearray(content)
            damaged[place] ^= 1 << (place % 8)
            file.write_bytes(bytes(damaged))
            with pytest.raises(ModelError):
                ansatz.load(saved)
        for share in (0, 0.5, 0.95):
            file.write_bytes(content[: int(len(content) * share)])
            with pytest.raises(ModelError):
                ansatz.load(saved)
        file.unlink()
        with pytest.raises(ModelError, match=file.name):
            ansatz.load(saved)
        file.write_bytes(content)
    ansatz.load(saved)


@pytest.mark.parametrize("what", ["nothing", "a file", "an empty folder", "a newer format"])
def test_what_is_no_model_is_refused(saved, tmp_path, what):
    path = tmp_path / "other"
    if what == "a file":
        path.write_text("hello")
    elif what == "an empty folder":
        path.mkdir()
    elif what == "a newer format":
        shutil.copytree(saved, path)
        text = (path / "manifest.json").read_text()
        newer = re.sub(r'"format": \d+', '"format": 99', text)
        (path / "manifest.json").write_text(newer)
    with pytest.raises(ModelError, match=r"other"):
        ansatz.load(path)


# Strangers (S1, S2): a canary that must never be made.


class Canary:
    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return Path.touch, (Path(self.path),)


@pytest.mark.parametrize("name", ["weights.safetensors", "ansatz.json", "manifest.json"])
@pytest.mark.parametrize("how", ["pickle", "torch", "numpy"])
def test_a_pickle_is_never_unpickled(saved, tmp_path, name, how):
    canary = tmp_path / "canary"
    target = saved / name
    if how == "pickle":
        target.write_bytes(pickle.dumps(Canary(canary)))
    elif how == "torch":
        torch.save({"network.output.weight": Canary(canary)}, target)
    else:
        with target.open("wb") as file:
            np.save(file, np.array([Canary(canary)], dtype=object), allow_pickle=True)
    with pytest.raises(ModelError):
        ansatz.load(saved)
    # Also when the sums agree with it.
    files = {p.name: p.read_bytes() for p in saved.iterdir() if p.name != "manifest.json"}
    if name != "manifest.json":
        with pytest.raises(ModelError):
            ansatz.load(write_folder(tmp_path / "forged", files, kind="model"))
    assert not canary.exists()


NAMES = ["os.system", "builtins.eval", "ansatz.networks.mlp:MLP", "__import__('os')", "mpl", ""]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", ["likelihood", "network"])
def test_an_unknown_name_is_refused(saved, place, name):
    forged = forge(saved, lambda record: record[place].update(name=name))
    with pytest.raises(ModelError, match="unknown"):
        ansatz.load(forged)


def test_a_near_name_is_suggested(saved):
    forged = forge(saved, lambda record: record["network"].update(name="mpl"))
    with pytest.raises(ModelError, match="'mlp'"):
        ansatz.load(forged)


CHANGES = {
    "an unknown key": lambda r: r.update(_target_="os.system"),
    "an unknown parameter": lambda r: r["parameters"].update(callback="os.system"),
    "an unknown estimator": lambda r: r.update(estimator="os.system"),
    "a likelihood's unknown option": lambda r: r["likelihood"]["options"].update(scale=3),
    "a likelihood's wrong option": lambda r: r["likelihood"]["options"].update(dispersion=-1),
    "an unknown layer option": lambda r: r["network"]["options"].update(hook="os.system"),
    "an unknown activation": lambda r: r["network"]["options"].update(activation="os.system"),
    "ten thousand layers": lambda r: r["network"]["options"].update(widths=[8] * 10_000),
    "a width of 2^31": lambda r: r["network"]["options"].update(widths=[2**31]),
    "a product of 2^40": lambda r: r["network"]["options"].update(widths=[2**20, 2**20]),
    "a negative width": lambda r: r["network"]["options"].update(widths=[-8]),
    "half a width": lambda r: r["network"]["options"].update(widths=[8.5]),
    "a true width": lambda r: r["network"]["options"].update(widths=[True]),
    "another width": lambda r: r["network"]["options"].update(widths=[9]),
    "text for a width": lambda r: r["network"]["options"].update(widths="8"),
    "no outputs": lambda r: r["network"].update(outputs=0),
    "many outputs": lambda r: r["network"].update(outputs=2**40),
    "an impossible dropout": lambda r: r["network"]["options"].update(dropout=2.0),
    "another likelihood": lambda r: r["likelihood"].update(name="categorical", options={}),
    "a missing key": lambda r: r.pop("preprocessing"),
    "damaged preprocessing": lambda r: r["preprocessing"].update(numeric={}),
    "a huge preprocessing": lambda r: r["preprocessing"]["columns"].append("os.system"),
    "a wrong recipe": lambda r: r["recipe"].update(dtype="os.system"),
    "wrong column roles": lambda r: r.update(
        {"uses" if "uses" in r else "column_roles": {"target": ["y"], "hook": "os.system"}}
    ),
    "a wrong history": lambda r: r.update(history={"records": "os.system"}),
    "no dictionary": lambda r: r.clear(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_forged_record_is_refused_in_one_line(of_any_format, change):
    with pytest.raises(ModelError) as caught:
        ansatz.load(forge(of_any_format, change))
    message = str(caught.value)
    assert "\n" not in message
    assert "forged/ansatz.json: " in message or "forged/weights.safetensors: " in message


PARTS = {
    "an unknown structure": lambda r: r.update(structure="os.system"),
    "an unknown outcome": lambda r: r["outcome"].update(name="os.system"),
    "an unknown inference": lambda r: r["inference"].update(name="os.system"),
    "another outcome": lambda r: r["outcome"].update(name="ranking"),
    "an outcome without a state": lambda r: r["outcome"].update(state={}),
    "an outcome's wrong shape": lambda r: r["outcome"]["state"].update(shape=["os.system"]),
    "another inference": lambda r: r["inference"].update(name="ensemble"),
    "no features": lambda r: r.update(features={}),
    "names that are none": lambda r: r["features"].update(names=3),
    "columns that are none": lambda r: r["features"].update(columns=["os.system"]),
    "a count that is none": lambda r: r["features"].update(count="os.system"),
    "a recalibration that is none": lambda r: r.update(recalibration={"hook": "os.system"}),
}


@pytest.mark.parametrize("change", PARTS.values(), ids=PARTS)
def test_a_forged_member_of_an_axis_is_refused_in_one_line(saved, change):
    test_a_forged_record_is_refused_in_one_line(saved, change)


@pytest.mark.parametrize("change", [{"temperature": "os.system"}, {"log_weights": "os.system"},
                                    {"class_kind": "V"}, {"classes": 3},
                                    {"classes": ["no"]}], ids=str)  # fmt: skip
def test_a_forged_state_of_classes_is_refused_in_one_line(tmp_path, change):
    frame, _, label, _ = mixed_table()
    saved = Classifier(**TINY).fit(frame, label).save(tmp_path / "model")
    test_a_forged_record_is_refused_in_one_line(
        saved, lambda record: record["outcome"]["state"].update(change)
    )


def test_nesting_without_end_is_refused(saved, tmp_path):
    files = {p.name: p.read_bytes() for p in saved.iterdir() if p.name != "manifest.json"}
    files["ansatz.json"] = b'{"a":' * 1_000 + b"1" + b"}" * 1_000
    with pytest.raises(ModelError, match=r"nest|deep"):
        ansatz.load(write_folder(tmp_path / "forged", files, kind="model"))


def test_tensors_must_fit_the_architecture(saved):
    weights = read_tensors(saved / "weights.safetensors")
    name = next(n for n in weights if n.startswith("network.") and n.endswith("weight"))
    cases = {
        "missing": {n: t for n, t in weights.items() if n != name},
        "extra": {**weights, "network.extra": torch.zeros(1)},
        "shape": {**weights, name: torch.zeros(1, 1, dtype=torch.float64)},
        "shift": {**weights, "objective.shift": torch.zeros(7, dtype=torch.float64)},
        "no shift": {n: t for n, t in weights.items() if n != "objective.shift"},
    }
    for changed in cases.values():
        with pytest.raises(ModelError):
            ansatz.load(forge(saved, lambda record: None, changed))
        shutil.rmtree(saved.with_name("forged"))


# Earlier formats are read for ever.


@pytest.mark.parametrize("name", ["linear", "mlp"])
def test_the_first_format_is_still_read(name):
    expected = json.loads((FIXTURES / "expected.json").read_text())
    model = ansatz.load(FIXTURES / name)
    rows = pd.DataFrame(expected["rows"])
    found = model.predict(rows)
    if name == "mlp":
        assert found.tolist() == expected[name]["predict"]
        assert_allclose(model.predict_proba(rows), expected[name]["predict_proba"], rtol=1e-12)
    else:
        assert_allclose(found, expected[name]["predict"], rtol=1e-12)
        assert_allclose(model.interval(rows, 0.9), expected[name]["interval"], rtol=1e-9)
        assert "(Intercept)" in str(model.summary())


@pytest.mark.parametrize("name", ["linear", "mlp", "ensemble", "cox", "ranker", "masks"])
def test_the_second_format_is_still_read(name):
    folder = FIXTURES.with_name("model-format-2")
    expected = json.loads((folder / "expected.json").read_text())
    rows = pd.DataFrame(expected["rows"])
    if name == "masks":
        rows = np.array(expected["images"], dtype=np.float32)
    found = ansatz.load(folder / name).predict_frame(rows)
    pd.testing.assert_frame_equal(found, pd.DataFrame(expected[name]), rtol=1e-6)


def test_class_weights_found_by_a_rule_come_back(tmp_path):
    x, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 5 // 2
    options = {"class_weight": "balanced"}
    model = Classifier("cross_entropy", likelihood_options=options, **TINY).fit(x, y)
    again = ansatz.load(model.save(tmp_path / "model"))
    assert_array_equal(again.predict_proba(x), model.predict_proba(x))


def test_format_2_called_tiles_pieces():
    old = {"uses": None, "evidence": {"origin": {"request": {"pieces": 4, "size": [8]}}}}
    asked = _of_format_2(old)["evidence"]["provenance"]["request"]
    assert asked == {"tiles": 4, "size": [8]}


def test_format_2_called_options_and_candidates_otherwise():
    asked = {
        "options": {"law": "gamma", "augment": "flip, turn", "likelihood.law": "gamma"},
        "roles": {"law": "categorical"},  # a column of the user
    }
    origin = {"request": asked, "law_options": {"law": "gamma"}}
    fit = {"candidates": [{"law": "normal", "score": -1.0}]}
    missing = {"missing": {"law": 3}}
    old = {"uses": None, "evidence": {"origin": origin, "fit": fit}, "preprocessing": missing}
    found = _of_format_2(old)
    assert found["evidence"]["fit"]["candidates"] == [{"likelihood": "normal", "score": -1.0}]
    assert found["evidence"]["provenance"]["likelihood_options"] == {"likelihood": "gamma"}
    assert found["evidence"]["provenance"]["request"] == {
        "options": {
            "likelihood": "gamma",
            "augment": "flip,rotate90",
            "likelihood.likelihood": "gamma",
        },
        "roles": {"law": "categorical"},
    }
    assert found["preprocessing"] == missing


def test_a_network_of_ones_own_may_have_a_layer_called_law_or_spread(tmp_path):
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.law, self.spread = nn.Linear(2, 3), nn.Linear(3, 1)

        def forward(self, x):
            return self.spread(self.law(x))

    x = np.random.default_rng(0).normal(size=(40, 2))
    model = Regressor("normal", network=Own(), epochs=1).fit(x, x[:, 0])
    again = ansatz.load(model.save(tmp_path / "model"), network=Own())
    assert_array_equal(again.predict(x), model.predict(x))
