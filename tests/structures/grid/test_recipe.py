"""How grids are fitted by default: recipe and symmetry."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from ansatz import Regressor, Segmenter, load, structures
from ansatz.data.augmentation import Flip
from ansatz.errors import UsageError
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.scores import evaluate_predictive
from ansatz.likelihoods import Normal
from ansatz.spec import InputSpec
from ansatz.structures.grid.recipe import choose_grid_recipe, default_options, linear_grid_recipe

IMAGES = InputSpec.grid(1, 28, 28)


@pytest.mark.parametrize("rows", [1, 30, 200, 3_000, 60_000, 1e6])
@pytest.mark.parametrize("masks", [False, True])
def test_every_size_has_a_recipe_that_passes_over_all_examples_a_few_times(rows, masks):
    recipe = choose_grid_recipe(rows, IMAGES, masks=masks)
    assert recipe.steps >= 1 and recipe.batch_size >= 1
    passes = recipe.steps * recipe.batch_size / rows
    assert 10 <= round(passes) <= 300
    assert recipe.augment


def test_more_examples_are_passed_over_less_often():
    counts = [100, 1_000, 10_000, 100_000]
    recipes = [choose_grid_recipe(rows, IMAGES) for rows in counts]
    passes = [
        r.steps * r.batch_size / (rows * (1 - r.holdout))
        for r, rows in zip(recipes, counts, strict=True)
    ]
    assert passes == pytest.approx([100, 100, 60, 10], rel=0.01)


def test_examples_that_tell_when_to_stop_are_enough_and_not_more():
    assert choose_grid_recipe(30, IMAGES).holdout == 0
    assert choose_grid_recipe(1_000, IMAGES).holdout == 0.1
    assert choose_grid_recipe(60_000, IMAGES).holdout == 0
    assert choose_grid_recipe(24, IMAGES, masks=True).holdout == 0
    assert choose_grid_recipe(200, IMAGES, masks=True).holdout == 0.1


def test_a_loss_that_compares_examples_sees_many_at_once_and_all_as_often():
    alone, compared = (choose_grid_recipe(1_000, IMAGES, coupled=each) for each in (False, True))
    assert compared.batch_size == 128 > alone.batch_size
    assert compared.steps * 128 == pytest.approx(alone.steps * alone.batch_size, rel=0.01)


def test_the_linear_model_sees_examples_as_they_are():
    assert not linear_grid_recipe(1_000).augment
    assert not linear_grid_recipe(30, masks=True).augment


def test_only_u_nets_are_narrower_than_published():
    assert default_options("attention_unet") == default_options("unet") == {"width": 16}
    assert default_options("resnet18") == default_options(object()) == {}


def test_an_augmentation_of_a_damaged_recipe_is_refused():
    assert Recipe(augment=[{"name": "flip"}]).augment == ({"name": "flip"},)
    with pytest.raises(ValidationError, match="needs a name"):
        Recipe.model_validate_json('{"augment": [{"cells": 2}]}')


def test_a_linear_model_of_few_examples_keeps_its_dispersion():
    """Fewer discs than cells: neither penalised nor stopped, its score goes to thousands."""
    rng = np.random.default_rng(0)
    i, j = np.mgrid[:32, :32]
    a, b, radius = (*rng.uniform(10, 22, (2, 40, 1, 1)), rng.uniform(4, 8, (40, 1, 1)))
    x = (np.hypot(i - a, j - b) < radius) + 0.2 * rng.normal(size=(40, 32, 32))
    y = radius.ravel() + rng.normal(size=40)
    model = Regressor("normal")
    learn, test = model.read(x[:32], y[:32]), model.read(x[32:], y[32:])
    linear, _ = structures.create("grid").baseline(Normal(), learn, seed=0)
    found = evaluate_predictive(linear.predictive(test.rows), test.y)
    assert found["nll"] < 2.1  # the constant model's is 2.18


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
    assert "rotations and flips" in again.recipe_.sentence("unet")


def test_few_images_alone_are_averaged():
    def of(rows, *size):
        return choose_grid_recipe(rows, InputSpec.grid(1, *size), masks=True).symmetry

    assert of(20, 512, 512) == "dihedral" and of(20, 300, 400) == "dihedral"
    assert of(20, 100, 120) == "flip"  # crops that are not square are not rotated
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
