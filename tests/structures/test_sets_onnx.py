"""Sets and point clouds as ONNX files, for any number of sets and elements."""

import numpy as np
import pytest

import ansatz
from ansatz import Classifier, Regressor
from ansatz.data import Sets, solids
from ansatz.onnx import feed

RNG = np.random.default_rng(0)
CASES = ["deepsets", "max", "attention", "set_transformer", "linear_set"]


def run(path, values):
    from ansatz.onnx.export import run as answer

    return answer(path.read_bytes(), values)[0]


def check(model, parts, path):
    assert ansatz.export(model, path).difference < 1e-4
    for some in parts:
        found = run(path, feed(model, some))
        raw = model.model_.predictive(model._given(some, None).rows).raw.numpy()
        np.testing.assert_allclose(found, raw, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", CASES)
def test_sets_of_any_number(name, tmp_path):
    pytest.importorskip("onnxruntime")
    X = [RNG.normal(size=(n, 3)) for n in RNG.integers(1, 9, 110)]
    y = np.array([each[:, 0].sum() for each in X])
    pool = {"pool": name} if name in ("max", "attention") else {}
    network = "deepsets" if pool else name
    how = {"x": "set", "network": network, "network_options": pool, "steps": 20, "batch_size": 32}
    check(Regressor("normal", **how).fit(X, y), (X[:1], X[:2], X), tmp_path / "a.onnx")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ["pointnet", "invariant_points"])
def test_clouds_of_any_number_of_points(name, tmp_path):
    pytest.importorskip("onnxruntime")
    clouds, y = solids(100, 12)
    options = {"width": 4} if name == "pointnet" else {}
    how = {"network": name, "network_options": options, "steps": 20, "batch_size": 32}
    model = Classifier(**how).fit(clouds, y)
    check(model, (clouds[:1], clouds[:2], clouds), tmp_path / "a.onnx")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_elements_have_answers_of_their_own(tmp_path):
    pytest.importorskip("onnxruntime")
    sets = Sets.of([RNG.normal(size=(n, 2)) for n in RNG.integers(1, 6, 60)])
    rows = sets.elements()
    model = Regressor("normal", steps=20).fit(rows, sets.values[:, 0])
    parts = [sets[:count].elements() for count in (1, 2, 60)]  # a graph answers for whole sets
    check(model, parts, tmp_path / "a.onnx")
