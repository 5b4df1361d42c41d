"""Fitted models of grids: kept bit for bit, asked in any portions, refusing what is odd."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch.testing import assert_close

import ansatz
from ansatz import Classifier, Regressor, Segmenter
from ansatz.data.grids import Grids
from ansatz.errors import DataError, UsageError


def digits(count=60):
    found = load_digits(n_class=3)
    images = np.kron(found.images[:count], np.ones((2, 2))) * 255 / 16
    return images.astype(np.uint8), found.target[:count]


@pytest.fixture(scope="module")
def model():
    network = {"network": "small_resnet", "network_options": {"depth": 8, "width": 4}}
    return Classifier(**network, epochs=2).fit(*digits())


def test_a_saved_model_predicts_the_same_bits(model, tmp_path):
    images, _ = digits()
    again = ansatz.load(model.save(tmp_path / "model"))
    assert (again.predict_proba(images) == model.predict_proba(images)).all()
    assert again.model_.encoder.preprocessor.state() == model.model_.encoder.preprocessor.state()
    assert (again.classes_ == model.classes_).all()


def test_the_network_computes_in_float32_and_the_likelihood_in_float64(model):
    assert {p.dtype for p in model.model_.network.parameters()} == {torch.float32}
    images, _ = digits()
    assert model.model_.predictive(Grids.of(images)).raw.dtype == torch.float64
    assert_close(model.predict_proba(images).sum(1), np.ones(60), rtol=0, atol=1e-15)


def test_an_example_alone_and_among_others_has_the_same_answer_to_six_digits(model):
    images, _ = digits()
    together = model.model_.predictive(Grids.of(images)).raw
    alone = torch.cat([model.model_.predictive(Grids.of(images[k : k + 1])).raw for k in range(60)])
    assert (together - alone).abs().max() <= 1e-6 * together.abs().max()


def test_predictions_follow_the_order_of_the_examples(model):
    images, _ = digits()
    order = np.random.default_rng(0).permutation(60)
    assert_close(
        model.predict_proba(images[order]), model.predict_proba(images)[order], rtol=0, atol=1e-6
    )


def test_a_model_of_bytes_standardises_them_by_the_mean_and_scale_of_all_pixels(model):
    images, _ = digits()
    learned = model.model_.encoder.preprocessor
    everything = images.astype(float) / 255
    # No example is held out of the moments of fewer than 500 but those that stop the training.
    assert learned.mean[0] == pytest.approx(everything.mean(), abs=0.02)
    assert learned.scale[0] == pytest.approx(everything.std(), abs=0.02)


@pytest.mark.parametrize(
    "examples, told",
    [
        (np.zeros((2, 8, 16), np.uint8), r"1 channel of 16 x 16, got 1 channel of 8 x 16"),
        (np.zeros((2, 3, 16, 16), np.uint8), r"got 3 channels of 16 x 16"),
        (np.zeros((2, 16, 16)), r"bytes from 0 to 255, got other numbers"),
        (np.zeros((16, 16), np.uint8), r"1 channel of 16 x 16, got 1 channel of 16\."),
    ],
)
def test_examples_unlike_those_of_the_fit_are_refused_in_one_line(model, examples, told):
    with pytest.raises(DataError, match=told) as refusal:
        model.predict(examples)
    assert "\n" not in str(refusal.value)


def test_predictions_as_a_frame_name_the_classes(model):
    images, _ = digits()
    frame = model.predict_frame(images[:4])
    assert list(frame) == ["prediction", "p_0", "p_1", "p_2"]
    assert (frame["prediction"] == model.predict(images[:4])).all()


def test_partial_fit_is_refused(model):
    images, counts = digits()
    with pytest.raises(UsageError, match=r"warm_start"):
        Regressor("poisson", network="linear_grid").partial_fit(images, counts)


def test_a_network_of_the_users_own_is_saved_by_its_weights(tmp_path):
    images, labels = digits()

    def make():
        pooled = [torch.nn.Flatten(), torch.nn.LazyLinear(3)]
        return torch.nn.Sequential(torch.nn.AvgPool2d(4), *pooled)

    make_built = make()
    make_built(torch.zeros(1, 1, 16, 16))
    fitted = Classifier(network=make_built.float(), epochs=1).fit(images, labels)
    other = make()
    other(torch.zeros(1, 1, 16, 16))
    again = ansatz.load(fitted.save(tmp_path / "own"), network=other)
    assert (again.predict_proba(images) == fitted.predict_proba(images)).all()


def test_tiles_of_a_linear_map_of_windows_are_the_whole_image():
    """Its window is smaller than the overlap, so that no cell can tell where tiles end."""
    rng = np.random.default_rng(0)
    masks = rng.integers(0, 2, (6, 24, 24))
    model = Segmenter(network="linear_pixels", epochs=1, augment=False).fit(masks * 1.0, masks)
    large, posterior = Grids.of(rng.normal(size=(2, 61, 50))), model.model_.posterior
    posterior.options = {"tile": 64}  # at once
    whole = posterior.predictive(large).raw
    assert whole.shape == (2, 61, 50, 2)
    for tile in (None, 32):
        posterior.options = {"tile": tile}
        assert_close(posterior.predictive(large).raw, whole, rtol=0, atol=1e-5)
