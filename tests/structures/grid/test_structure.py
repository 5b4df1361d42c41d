"""Estimators of signals, images and volumes: what is given decides the model, how does not."""

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits
from torch import nn
from torch.testing import assert_close

import ansatz
import ansatz.training.loop as training_loop
from ansatz import Classifier, Regressor, SurvivalRegressor
from ansatz.data.grids import Grids, read_grids
from ansatz.errors import DataError, UsageError
from ansatz.structures.grid import encoder as source

LINEAR = {"network": "linear_grid", "epochs": 2, "batch_size": 16}
RESNET = {"network": "small_resnet", "network_options": {"depth": 8, "width": 4}, "epochs": 1}


def digits(count=64, classes=3):
    """Zeros, ones and twos of 16 x 16 bytes."""
    found = load_digits()
    rows = np.flatnonzero(found.target < classes)[:count]
    images = np.kron(found.images[rows], np.ones((2, 2))) * 255 / 16
    return images.astype(np.uint8), found.target[rows]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The digits as PNG files in folders of their classes."""
    folder = tmp_path_factory.mktemp("digits")
    for place, (image, label) in enumerate(zip(*digits(), strict=True)):
        (folder / "zero one two".split()[label]).mkdir(exist_ok=True)
        Image.fromarray(image).save(folder / "zero one two".split()[label] / f"{place:03d}.png")
    return folder


def weights(estimator):
    return estimator.model_.network.state_dict()


def assert_same_bits(one, two):
    a, b = weights(one), weights(two)
    assert a.keys() == b.keys()
    for name in a:
        assert torch.equal(a[name], b[name]), name


def test_one_seed_gives_one_model_bit_for_bit():
    images, labels = digits()
    one, two = (Classifier(**RESNET).fit(images, labels) for _ in range(2))
    assert_same_bits(one, two)
    other = Classifier(**RESNET, random_state=1).fit(images, labels)
    assert any(not torch.equal(weights(one)[name], weights(other)[name]) for name in weights(one))


def test_the_users_random_numbers_stay_as_they_were():
    images, labels = digits()
    before = torch.random.get_rng_state()
    Classifier(**LINEAR).fit(images, labels)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_arrays_tensors_files_and_grids_of_the_same_images_give_the_same_model(files):
    images, labels = digits()
    expected = Classifier(**LINEAR).fit(images, labels)
    names = "zero one two".split()
    paths = [str(files / names[c] / f"{k:03d}.png") for k, c in enumerate(labels)]
    for given in (
        torch.from_numpy(images),
        images[:, None],
        images[..., None],
        Grids.of(images),
        paths,
    ):
        assert_same_bits(Classifier(**LINEAR).fit(given, labels), expected)


def test_channels_may_stand_first_or_last():
    images, labels = digits(32)
    colours = np.stack([images, 255 - images, images // 2], -1)  # (N, H, W, 3)
    first = Classifier(**RESNET).fit(colours.transpose(0, 3, 1, 2), labels)
    last = Classifier(**RESNET).fit(colours, labels)
    assert first.model_.encoder.preprocessor.shape == (3, 16, 16)
    assert_same_bits(first, last)


def test_images_in_files_and_in_memory_give_the_same_weights_bit_for_bit(files):
    memory, late = (read_grids(files, memory_limit=limit) for limit in (None, "1KB"))
    assert memory.grids.is_in_memory and not late.grids.is_in_memory
    labels = memory.frame["class"].to_numpy()
    one, two = (Classifier(**RESNET).fit(each.grids, labels) for each in (memory, late))
    assert_same_bits(one, two)
    assert (one.predict_proba(memory.grids) == two.predict_proba(late.grids)).all()


def test_a_run_that_was_killed_within_an_epoch_ends_in_the_same_bits(files, tmp_path, monkeypatch):
    options = {"epochs": 3, "depth": 8, "width": 4, "batch_size": 16}
    expected = ansatz.fit(files, options=options, test=0.0)
    monkeypatch.setattr(training_loop, "_SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    real = source.GridSource

    class Dies(real):
        def batches(self, epoch=0, start=0):
            for number, batch in enumerate(super().batches(epoch, start)):
                if epoch == 1 and number == 2:
                    raise MemoryError("killed")
                yield batch

    with monkeypatch.context() as patch:
        patch.setattr(source, "GridSource", Dies)
        with pytest.raises(MemoryError):
            ansatz.fit(files, options=options, test=0.0, out=tmp_path / "cut")
    assert not (tmp_path / "cut").exists()
    resumed = ansatz.fit(files, options=options, test=0.0, out=tmp_path / "cut", resume=True)
    assert_same_bits(resumed.model, expected.model)


def test_a_resume_with_other_images_is_refused(files, tmp_path):
    ansatz.fit(files, network="linear", options={"epochs": 1}, out=tmp_path / "model")
    images, labels = digits(40)
    with pytest.raises(UsageError, match=r"data"):
        ansatz.fit(
            {"x": images, "y": labels},
            network="linear",
            options={"epochs": 1},
            out=tmp_path / "model",
            resume=True,
        )


def test_an_example_of_weight_zero_is_an_example_that_is_not_there():
    images, labels = digits()
    weight = (np.arange(len(images)) % 4 > 0).astype(float)
    assert_same_bits(
        Classifier(**LINEAR).fit(images, labels, sample_weight=weight),
        Classifier(**LINEAR).fit(images[weight > 0], labels[weight > 0]),
    )


def test_training_begins_at_the_weighted_constant_model():
    """The constant Poisson model is the logarithm of the weighted mean."""
    images, counts = digits()
    weight = 1.0 + np.arange(len(images)) % 3
    model = Regressor("poisson", **LINEAR, holdout=0.0).fit(images, counts, weight)
    shift = model.model_.posterior.networks[0].objective.shift.double()
    assert_close(
        shift, torch.tensor([np.log(np.average(counts, weights=weight))]), rtol=1e-6, atol=0
    )


def test_a_warm_start_begins_at_the_last_weights():
    images, labels = digits()
    model = Classifier(**LINEAR, warm_start=True).fit(images, labels)
    before = {name: value.clone() for name, value in weights(model).items()}
    model.set_params(epochs=1, learning_rate=1e-9).fit(images, labels)
    assert_close(weights(model), before, rtol=0, atol=1e-6)
    assert any(not torch.equal(before[name], value) for name, value in weights(model).items())


def test_counts_times_and_directions_of_images_have_their_likelihoods():
    images, labels = digits()
    rng = np.random.default_rng(0)
    counts = rng.poisson(1.0 + 2 * labels)
    model = Regressor("poisson", **LINEAR).fit(images, counts)
    assert model.interval(images[:5]).shape == (5, 2)
    assert model.evaluate(images, counts)["nll"] > 0
    angle = Regressor("von_mises", **LINEAR).fit(images, labels * 2.0 - 2)
    assert np.abs(angle.predict(images)).max() <= np.pi
    times = pd.DataFrame({"time": rng.exponential(1.0 + labels), "event": rng.integers(0, 2, 64)})
    cox = SurvivalRegressor("cox", **LINEAR).fit(images, times)
    curve = cox.predict_survival(images[:3], [0.5, 1.0, 2.0])
    assert curve.shape == (3, 3) and (np.diff(curve, axis=1) <= 0).all()


def test_a_linear_network_on_pixels_learns_what_a_linear_likelihood_generated():
    """Poisson counts with log-mean 1 + brightness."""
    rng = np.random.default_rng(0)
    bright = rng.uniform(-1, 1, (400, 1, 1, 1))
    images = np.broadcast_to(bright, (400, 1, 5, 5)).astype(np.float32)
    counts = rng.poisson(np.exp(1 + bright[:, 0, 0, 0]))
    model = Regressor("poisson", network="linear_grid", epochs=12, augment=False)
    found = np.log(model.fit(images, counts).predict(images))
    slope, intercept = np.polyfit(bright.ravel(), found, 1)
    # The Fisher information of a Poisson slope: sum_i mean_i x_i^2, about 400 * 2.7 * 0.37.
    assert slope == pytest.approx(1, abs=4 * (400 * 2.7 * 0.37) ** -0.5)
    assert intercept == pytest.approx(1, abs=4 * (400 * 2.7) ** -0.5)


@pytest.mark.parametrize("size", [(24,), (6, 8, 8)])
@pytest.mark.parametrize("channels", [1, 2])
def test_signals_and_volumes_are_fitted_like_images(size, channels):
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 2
    x = rng.normal(size=(40, channels, *size)) + labels.reshape(-1, *(1,) * (len(size) + 1))
    grids = Grids.of(x, channels="first")
    model = Classifier(**LINEAR).fit(grids, labels)
    assert model.predict_proba(grids).shape == (40, 2)
    assert model.model_.encoder.preprocessor.shape == (channels, *size)


def test_rows_of_an_array_are_signals_only_when_asked_for():
    x, labels = np.random.default_rng(0).normal(size=(40, 12)), np.arange(40) % 2
    table = Classifier(epochs=1).fit(x, labels)
    signals = Classifier(**LINEAR, x="grid").fit(x, labels)
    assert table.model_.structure.name == "vector"
    assert signals.model_.encoder.preprocessor.shape == (1, 12)


def test_a_network_of_the_users_own_is_trained():
    images, labels = digits()
    network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    network.append(nn.Linear(4, 3))
    model = Classifier(network=network, epochs=1).fit(images, labels)
    assert model.predict_proba(images).shape == (64, 3)


def test_a_network_whose_answer_does_not_fit_the_outcome_is_refused():
    images, labels = digits()
    with pytest.raises(UsageError, match=r"answers \(3, 16, 16\) .* needs \(3,\)"):
        Classifier(network="unet", network_options={"depth": 1, "width": 2}).fit(images, labels)


def test_an_empty_array_and_a_wrong_structure_are_refused():
    with pytest.raises(ValueError, match=r"nothing in it"):
        Classifier(**LINEAR).fit(np.zeros((0, 8, 8)), [])
    with pytest.raises(UsageError, match=r"unknown structure 'cube'"):
        Classifier(x="cube").fit(np.zeros((4, 8, 8)), [0, 1, 0, 1])
    with pytest.raises(DataError, match=r"nan"):
        Classifier(**LINEAR).fit(np.full((4, 8, 8), np.nan), [0, 1, 0, 1])


def test_augmented_batches_are_no_function_of_what_was_trained_before(files):
    """Variations belong to the place in the run: fold models do not depend on each other."""
    grids = read_grids(files)
    images, labels = grids.grids, grids.frame["class"].to_numpy()
    first = Classifier(**RESNET).fit(images, labels)
    Classifier(**RESNET).fit(images[:30], labels[:30])
    assert_same_bits(Classifier(**RESNET).fit(images, labels), first)


def test_a_last_batch_of_one_joins_the_one_before():
    images = np.random.default_rng(0).normal(size=(17, 28, 28)).astype(np.float32)
    model = Classifier(network="resnet18", network_options={"width": 4}, epochs=1, augment=False)
    model.fit(images, np.arange(17) % 2)
    assert np.isfinite(model.predict_proba(images)).all()


def test_outcomes_as_long_as_their_signals_are_numbers_not_masks():
    signals = np.random.default_rng(0).normal(size=(60, 16)).astype(np.float32)
    settings = {"epochs": 60, "holdout": 0.0, "augment": False, "learning_rate": 0.03}
    model = Regressor("normal", x="grid", network="linear_grid", **settings)
    model.fit(signals, signals)
    found = model.predict(signals)
    assert found.shape == (60, 16) and np.corrcoef(found.ravel(), signals.ravel())[0, 1] > 0.9
