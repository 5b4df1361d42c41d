"""Predicted masks of few images are averaged over turns and mirror images."""

import numpy as np
import pytest
import torch

from ansatz import Segmenter, load
from ansatz.data.augmentation import Flip
from ansatz.errors import UsageError
from ansatz.spec import InputSpec
from ansatz.structures.grid.recipe import choose_grid_recipe

SMALL = {"network": "unet", "network_options": {"width": 2, "depth": 1}, "epochs": 1}


def examples(count=6, size=(16, 16)):
    images = np.random.default_rng(0).normal(size=(count, *size)).astype(np.float32)
    return images, images > 0


@pytest.fixture(scope="module")
def fitted():
    return Segmenter(**SMALL).fit(*examples())


@pytest.fixture(scope="module")
def plain():
    return Segmenter(**SMALL, symmetry="none").fit(*examples())


def test_masks_move_with_their_images(fitted):
    images, _ = examples()
    found = fitted.predict_proba(images)
    for turns in range(4):
        turned = fitted.predict_proba(np.rot90(images, turns, (1, 2)).copy())
        np.testing.assert_allclose(turned, np.rot90(found, turns, (1, 2)), atol=1e-5)
    mirrored = fitted.predict_proba(images[:, :, ::-1].copy())
    np.testing.assert_allclose(mirrored, found[:, :, ::-1], atol=1e-5)


def test_without_it_they_do_not(fitted, plain):
    images, _ = examples()
    a, b = plain.model_.network.state_dict(), fitted.model_.network.state_dict()
    assert all(torch.equal(a[name], b[name]) for name in a)  # learned alike, asked otherwise
    found = plain.predict_proba(images)
    turned = plain.predict_proba(images[:, ::-1].copy())
    assert np.abs(turned - found[:, ::-1]).max() > 1e-3


def test_a_saved_model_answers_alike(fitted, tmp_path):
    again = load(fitted.save(tmp_path / "model"))
    images, _ = examples()
    np.testing.assert_array_equal(again.predict_proba(images), fitted.predict_proba(images))
    assert again.recipe_.symmetry == "dihedral"
    assert "turns and mirror images" in again.recipe_.sentence("unet")


def test_few_images_alone_are_averaged():
    def of(rows, *size):
        return choose_grid_recipe(rows, InputSpec.grid(1, *size), masks=True).symmetry

    assert of(20, 512, 512) == "dihedral" and of(20, 300, 400) == "dihedral"
    assert of(20, 100, 120) == "flip"  # pieces that are not square are not turned
    assert of(100, 512, 512) is None and of(20, 64) is None and of(20, 32, 32, 32) is None


def test_what_was_not_learned_is_not_asked():
    images, masks = examples(4)
    for augment in (False, [Flip()]):
        assert Segmenter(**SMALL, augment=augment).fit(images, masks).recipe_.symmetry is None
    asked = Segmenter(**SMALL, augment=False, symmetry="flip").fit(images, masks)
    found = asked.predict_proba(images)
    for axes in ((1,), (2,), (1, 2)):
        flipped = asked.predict_proba(np.flip(images, axes).copy())
        np.testing.assert_allclose(flipped, np.flip(found, axes), atol=1e-5)


def test_signals_cannot_be_turned_and_other_names_are_refused():
    signals, masks = examples(4, (24,))
    with pytest.raises(UsageError, match="signals cannot be turned"):
        Segmenter(**SMALL, symmetry="rotation90").fit(signals, masks)
    images, masks = examples(4)
    with pytest.raises(UsageError, match=r"symmetry: .*'dihedral'"):
        Segmenter(**SMALL, symmetry="turns").fit(images, masks)


def test_the_report_certifies_what_answers(fitted, plain):
    from ansatz.report import gather
    from ansatz.structures.grid.report.pictures import multiply_adds
    from ansatz.structures.grid.report.robustness import certificates

    images, masks = examples()

    def broken(model):
        found, _ = certificates(gather(model, images, masks))
        return {each.group: each.largest for each in found}

    averaged, once = broken(fitted), broken(plain)
    for group in ("flip", "rotation90"):
        assert averaged[group] < 1e-5 and once[group] > 1e-3
    assert averaged["cyclic_shift"] > 1e-3
    assert multiply_adds(fitted.model_) == 8 * multiply_adds(plain.model_)
