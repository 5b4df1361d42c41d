"""A class for every cell."""

import copy

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import ansatz
from ansatz import Segmenter
from ansatz.data import clean
from ansatz.data.grids import Grids, read_grids
from ansatz.errors import DataError, UsageError
from ansatz.outcomes.mask import MASK_LIKELIHOODS

TINY = {"network": "unet", "network_options": {"depth": 1, "width": 4}, "epochs": 2}
LINEAR = {"network": "linear_pixels", "epochs": 40, "batch_size": 4, "learning_rate": 0.05}


def discs(count=12, size=16, classes=2):
    """Discs (and a ring, where there are three classes) in a little noise."""
    rng = np.random.default_rng(0)
    i, j = np.mgrid[:size, :size]
    centre, radius = rng.uniform(5, size - 5, (2, count, 1, 1)), rng.uniform(2, 5, (count, 1, 1))
    away = np.hypot(i - centre[0], j - centre[1]) / radius
    masks = (away < 1).astype(int) + (classes > 2) * (away < 0.5)
    return (masks + 0.1 * rng.normal(size=masks.shape)).astype(np.float32), masks


@pytest.fixture(scope="module")
def bright():
    """Tells discs by their brightness."""
    return Segmenter(**LINEAR).fit(*discs())


@pytest.mark.parametrize("likelihood", MASK_LIKELIHOODS)
@pytest.mark.parametrize("classes", [2, 3])
def test_every_likelihood_of_masks_gives_a_probability_of_every_class_in_every_cell(
    likelihood, classes
):
    images, masks = discs(6, classes=classes)
    model = Segmenter(likelihood, **TINY | {"epochs": 1}).fit(images, masks)
    found = model.predict_proba(images[:3])
    assert found.shape == (3, 16, 16, classes)
    assert_close(found.sum(-1), np.ones((3, 16, 16)), rtol=0, atol=1e-12)
    assert (model.predict(images[:3]) == found.argmax(-1)).all()
    metrics = model.evaluate(images, masks)
    assert ("nll" in metrics) == (likelihood == "categorical")
    assert 0 <= metrics["iou"] <= metrics["dice"] <= 1


@pytest.mark.parametrize("likelihood", ["dice", "sum"])
def test_bright_discs_are_found(likelihood):
    images, masks = discs(20)
    model = Segmenter(likelihood, **LINEAR).fit(images[:12], masks[:12])
    assert model.evaluate(images[12:], masks[12:])["dice"] > 0.9


def test_a_saved_segmenter_predicts_the_same_bits(tmp_path):
    images, masks = discs(classes=3)
    model = Segmenter("sum", **TINY, clean={"min_size": 3}).fit(images, masks)
    again = ansatz.load(model.save(tmp_path / "model"))
    assert (again.predict_proba(images) == model.predict_proba(images)).all()
    assert (again.predict(images) == model.predict(images)).all()
    assert again.clean == {"min_size": 3}


def test_labels_are_those_of_the_masks():
    images, masks = discs()
    model = Segmenter(**LINEAR | {"epochs": 10}).fit(images, masks * 7)
    assert model.classes_.tolist() == [0, 7]
    assert set(np.unique(model.predict(images))) == {0, 7}
    assert model.score(images, masks * 7) == pytest.approx(
        (model.predict(images) == masks * 7).mean()
    )


def test_cells_without_a_label_change_nothing():
    """What stands in them may be anything: masks of -1 there give one model."""
    images, masks = discs()
    hidden = masks.copy()
    hidden[:, :, 8:] = -1
    one = Segmenter(**TINY, augment=False).fit(images, hidden)
    assert one.classes_.tolist() == [0, 1]
    known = one.evaluate(images, hidden)
    expected = (one.predict(images) == masks)[:, :, :8].mean()
    assert known["accuracy"] == pytest.approx(expected)
    # Nothing is known of the right half: the constant model is that of the left one.
    shift = one.model_.posterior.networks[0].objective.shift.double()
    share = torch.tensor([(masks[:, :, :8] == k).mean() for k in (0, 1)])
    assert_close(shift - shift.logsumexp(0), share.log(), rtol=1e-5, atol=1e-5)


def test_masks_by_name_have_their_names():
    images, masks = discs()
    table = read_grids({"x": images, "masks": masks, "class_names": ["field", "disc"]})
    model = Segmenter(**TINY).fit(table.grids, table.masks)
    assert model.classes_.tolist() == ["field", "disc"]
    assert set(model.predict(images).ravel()) <= {"field", "disc"}


def test_the_frame_tells_the_share_of_each_class(bright):
    images, _ = discs()
    frame = bright.predict_frame(images)
    np.testing.assert_allclose(frame["share_1"], bright.predict(images).mean((1, 2)))
    np.testing.assert_allclose(frame.sum(axis=1), 1)


def test_predictions_are_tidied_as_asked_for(bright):
    images, masks = discs()
    tidy = copy.copy(bright).set_params(clean={"min_size": 40})  # small discs are specks
    plain = bright.predict(images)
    expected = clean(torch.as_tensor(plain), min_size=40)
    assert (tidy.predict(images) == expected.numpy()).all()
    assert 0 < tidy.predict(images).sum() < plain.sum()
    assert tidy.evaluate(images, masks)["dice"] < bright.evaluate(images, masks)["dice"]


@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("size", [(16,), (8, 8), (4, 8, 8)])
def test_one_hot_masks_are_reported_their_argmax(size, axis):
    x = np.zeros((4, 1, *size), np.float32)
    shares = np.moveaxis(np.full((4, *size, 3), 1 / 3), -1, axis)
    with pytest.raises(DataError, match=rf"hold 3 numbers for each of .*y\.argmax\({axis}\)"):
        Segmenter(**TINY).fit(x, shares)


def test_the_size_is_reported_before_the_classes(bright):
    images, masks = discs()
    with pytest.raises(DataError, match="masks of 8 x 8 pixels for examples of 16 x 16"):
        Segmenter(**TINY).fit(images, np.zeros((12, 8, 8), int))
    with pytest.raises(ValueError, match="X has 12 rows and y has 5"):
        Segmenter(**TINY).fit(images, np.zeros((5, 16, 16), int))
    with pytest.raises(DataError, match=r"every pixel is of class 0"):
        Segmenter(**TINY).fit(images, 0 * masks)
    with pytest.raises(DataError, match=r"y\.argmax\(-1\)"):
        bright.evaluate(images, np.eye(2, dtype=int)[masks])


@pytest.mark.parametrize("size", [(16,), (4, 8, 8)])
def test_signals_and_volumes_have_masks_too(size):
    rng = np.random.default_rng(0)
    masks = rng.integers(0, 2, (6, *size))
    x = Grids.of((masks + 0.1 * rng.normal(size=masks.shape))[:, None], channels="first")
    model = Segmenter("sum", **TINY | {"epochs": 1}).fit(x, masks)
    assert model.predict(x).shape == masks.shape


def test_images_of_another_size_are_predicted(bright):
    large, truth = discs(2, size=37)
    assert bright.predict(large).shape == truth.shape
    assert (bright.predict(large) == truth).mean() > 0.95


def test_masks_that_do_not_fit_are_refused():
    images, masks = discs()
    with pytest.raises(DataError, match=r"masks of 8 x 16 pixels for examples of 16 x 16"):
        Segmenter(**TINY).fit(images, masks[:, :8])
    with pytest.raises(DataError, match=r"not whole"):
        Segmenter(**TINY).fit(images, masks * 0.5)
    with pytest.raises(DataError, match=r"every pixel is of class 0"):
        Segmenter(**TINY).fit(images, masks * 0)
    model = Segmenter(**TINY).fit(images, masks)
    with pytest.raises(DataError, match=r"masks of 8 x 16 pixels"):
        model.evaluate(images, masks[:, :8])
    with pytest.raises(DataError, match=r"masks hold 7"):
        model.evaluate(images, masks * 7)


def test_what_is_no_likelihood_of_masks_is_refused():
    images, masks = discs()
    with pytest.raises(UsageError, match=r"poisson is not a likelihood of masks"):
        Segmenter("poisson", **TINY).fit(images, masks)
    with pytest.raises(UsageError, match=r"laplace has one outcome for each row; take ensemble"):
        Segmenter(inference="laplace", **TINY).fit(images, masks)
    with pytest.raises(UsageError, match=r"no offset"):
        Segmenter(**TINY).fit(images, masks).evaluate(images, masks, offset=np.zeros(12))


def test_masks_that_lack_a_class_are_evaluated_by_its_name():
    images, masks = discs(16, classes=3)
    model = Segmenter(**LINEAR).fit(images, masks)
    few = np.where(masks == 1, 0, masks)  # the classes 0 and 2
    expected = model.evaluate(images, few)
    table = read_grids({"x": images, "masks": few})
    assert table.masks.classes == ("0", "2")
    assert model.evaluate(images, table.masks) == expected
    with pytest.raises(DataError, match="masks hold 7"):
        model.evaluate(images, read_grids({"x": images, "masks": masks * 7}).masks)


@pytest.mark.parametrize(
    "wrong",
    [{"minsize": 3}, {"min_size": "3"}, {"min_size": -1}, 3],
    ids=["name", "kind", "sign", "number"],
)
def test_a_wrong_clean_is_refused_before_the_fit(wrong):
    model = Segmenter(**TINY, clean=wrong)
    with pytest.raises(UsageError, match="min_size"):
        model.fit(*discs(4))
    assert not hasattr(model, "model_")


def test_chosen_classes_are_cleaned(bright):
    images, _ = discs()
    bright = copy.deepcopy(bright)
    plain = bright.predict(images)
    bright.clean = {"classes": [1], "min_size": 10**6}
    assert plain.any() and not bright.predict(images).any()


def test_no_examples_have_no_masks(bright):
    none = Grids.of(discs()[0])[np.arange(0)]
    assert bright.predict(none).shape == (0, 16, 16)
    assert bright.predict_proba(none).shape == (0, 16, 16, 2)


@pytest.mark.parametrize("count", [3, 5, 17])
def test_no_batch_is_too_small_to_normalise_by(count):
    images, masks = discs(count)
    model = Segmenter(network="unet", epochs=1, augment=False).fit(images, masks)
    assert model.predict(images).shape == masks.shape


def test_a_depth_that_leaves_one_pixel_of_one_example_is_refused_in_a_line():
    images, masks = discs(3)
    model = Segmenter(network="unet", network_options={"depth": 4, "width": 4}, epochs=1)
    with pytest.raises(UsageError, match="leaves one number per channel"):
        model.fit(images, masks)


@pytest.mark.parametrize("side", [99, 100, 111])
def test_images_a_little_larger_than_the_fits_have_masks(side):
    images = np.random.default_rng(0).normal(size=(2, side, side)).astype(np.float32)
    settings = {"network_options": {"width": 2}, "epochs": 1, "augment": False}
    model = Segmenter(network="unet", **settings).fit(images, images > 0)
    larger = np.zeros((1, side + 20, side + 20), np.float32)
    assert model.predict(larger).shape == larger.shape


@pytest.mark.parametrize("place", [1, -1])
def test_an_axis_of_one_channel_is_no_part_of_a_mask(place):
    images, masks = discs(6, 12)
    model = Segmenter(network="linear_pixels", epochs=1).fit(images, np.expand_dims(masks, place))
    assert model.predict(images).shape == masks.shape
    evaluated = model.evaluate(images, np.expand_dims(masks, place))
    assert evaluated == model.evaluate(images, masks)


def test_files_of_masks_are_read_with_their_images():
    with pytest.raises(UsageError, match=r"read_grids\(images, masks=masks\)"):
        Segmenter().fit(np.zeros((2, 8, 8)), ["a.png", "b.png"])
