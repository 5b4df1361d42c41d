"""An exported model of images answers in onnxruntime what the model answers in ansatz."""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch.testing import assert_close

import ansatz
from ansatz import Classifier, Regressor, Segmenter
from ansatz.data.grids import GridPreprocessor, Grids
from ansatz.errors import UsageError
from ansatz.onnx.graph import adaptive_mean
from ansatz.structures.grid.export import GridPixels

QUICK = {"epochs": 1, "holdout": 0.0}


@pytest.fixture(autouse=True)
def single_precision():
    """As users train; the suite's default is double."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(before)


def images(count=30, size=(16, 16)):
    random = np.random.default_rng(0)
    y = np.arange(count) % 3
    x = random.normal(100, 40, (count, *size)) + 20 * y.reshape(-1, *(1,) * len(size))
    return x.clip(0, 255).astype(np.uint8), y


def answers(path, x):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    found = session.run(None, {"X": x[:, None].astype(np.float32)})
    return dict(zip(names, found, strict=True)), session.get_modelmeta().custom_metadata_map


def test_cells_are_standardised_as_in_the_fit():
    x, _ = images()
    grids = Grids.of(x)
    preprocessor = GridPreprocessor.fit(grids)
    assert_close(
        GridPixels(preprocessor)(grids.load().float())[0], preprocessor.transform(grids)[0]
    )


@pytest.mark.slow
@pytest.mark.parametrize("members", [1, 2])
def test_a_class_for_every_cell(members, tmp_path):
    x, _ = images()
    settings = {"network_options": {"depth": 1, "width": 4}, **QUICK}
    if members > 1:
        settings |= {"inference": "ensemble", "members": members}
    model = Segmenter(network="unet", **settings).fit(x, x > 120)
    found, _ = answers(ansatz.export(model, tmp_path / "a.onnx").path, x[:5])
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(x[:5]), atol=1e-5)
    assert found["prediction"].shape == (5, 16, 16)
    tidy = Segmenter(network="linear_pixels", clean={"min_size": 3}, **QUICK).fit(x, x > 120)
    with pytest.raises(UsageError, match="tidied"):
        ansatz.export(tidy, tmp_path / "b.onnx")


@pytest.mark.slow
@pytest.mark.parametrize("network", ["lenet5", "linear_grid"])
def test_numbers_with_their_likelihood_by_an_ensemble_or_one_network(network, tmp_path):
    x, y = images()
    settings = {"inference": "ensemble", "members": 2} if network == "linear_grid" else {}
    model = Regressor("normal", network=network, epochs=1, **settings).fit(x, y + 0.5)
    found, _ = answers(ansatz.export(model, tmp_path / "a.onnx").path, x[:5])
    np.testing.assert_allclose(found["prediction"], model.predict(x[:5]), rtol=1e-4)


def test_only_the_rows_are_called_rows_and_images_get_their_probabilities(tmp_path):
    """The neocognitron folds channels into rows: an axis of 8 N must not be said to have N."""
    x, y = images(count=12, size=(8, 8))
    model = Classifier(network="neocognitron", **QUICK).fit(x, y)
    written = ansatz.export(model, tmp_path / "a.onnx")
    found, _ = answers(written.path, x[:5])
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(x[:5]), atol=1e-6)
    proto = onnx.load(written.path)
    within = list(proto.graph.value_info)
    proto.graph.output.extend(within)  # so that the session gives what is within
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    found = session.run([v.name for v in within], {"X": x[:5, None].astype(np.float32)})
    for value, array in zip(within, found, strict=True):
        for axis, size in zip(value.type.tensor_type.shape.dim, array.shape, strict=True):
            assert not axis.dim_param or (axis.dim_param, size) == ("N", 5), value.name


@pytest.mark.parametrize("size, cells", [((7, 8, 9), (3, 1, 4)), ((2, 5, 4), (3, 5, 2))])
def test_means_over_blocks_of_a_volume_are_torchs(size, cells):
    x = torch.randn(2, 3, *size, dtype=torch.float64)
    assert_close(adaptive_mean(x, cells), torch.nn.functional.adaptive_avg_pool3d(x, cells))


def test_volumes_are_averaged_over_blocks_in_the_graph_and_classes_have_their_names(tmp_path):
    """Torch has no ONNX of its own for such means."""
    x, y = images(count=12, size=(5, 7, 6))
    names = np.array(["ape", "bee", "cat"])[y]
    volumes, options = Grids.of(x[:, None], channels="first"), {"limit": 30}
    model = Classifier(network="linear_grid", network_options=options, **QUICK).fit(volumes, names)
    written = ansatz.export(model, tmp_path / "a.onnx")
    found, about = answers(written.path, x[:5])  # another number of rows than was traced
    assert written.difference < 1e-5
    expected = model.predict_proba(volumes)[:5]
    np.testing.assert_allclose(found["probabilities"], expected, atol=1e-6)
    assert found["prediction"].tolist() == model.predict(volumes)[:5].tolist()
    assert "(N, 1, 5, 7, 6)" in json.loads(about["inputs"])[0]["takes"]
    with pytest.raises(UsageError, match="compute in float32"):
        ansatz.export(model, tmp_path / "b.onnx", double=True)
