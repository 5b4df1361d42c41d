import numpy as np
import pytest
from pydantic import ValidationError

from ansatz import Regressor, structures
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


def test_a_linear_model_of_few_examples_keeps_its_spread():
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
