import numpy as np
import pytest
import torch

from ansatz import Regressor
from ansatz.errors import AnsatzError
from ansatz.fitting.recipe import Recipe, choose_recipe, needs_double


def test_below_a_hundred_rows_everything_is_deterministic_and_penalised():
    recipe = choose_recipe(rows=99.9)
    assert recipe.batch_size == 0 and recipe.dtype == "float64" and recipe.holdout == 0
    assert recipe.weight_decay > choose_recipe(rows=100).weight_decay
    assert choose_recipe(rows=100).holdout > 0


@pytest.mark.parametrize("rows", [1, 99, 100, 500, 2_000, 50_000, 50_001, 200_000, 10_000_000])
def test_every_size_of_table_has_a_recipe(rows):
    recipe = choose_recipe(rows=rows)
    assert recipe.steps >= 1 and 0 <= recipe.holdout < 0.5
    assert recipe.batch_size & (recipe.batch_size - 1) == 0  # a power of two, or all rows
    assert recipe.holdout * rows <= 20_000
    assert recipe.batch_size == 0 or 16 <= recipe.batch_size <= 1_024


def test_larger_tables_get_larger_batches():
    sizes = [choose_recipe(rows=rows).batch_size for rows in (100, 1_000, 5_000, 9_999)]
    assert sizes == sorted(sizes) and sizes[0] == 16 and sizes[-1] == 256


def test_the_sentence_says_what_will_be_done():
    assert "all rows at once" in choose_recipe(rows=50).sentence()
    sentence = choose_recipe(rows=1_000).sentence()
    assert "batches of 32" in sentence and "held-out rows" in sentence and "float32" in sentence
    assert "no hidden layer" in Recipe(widths=()).sentence()


@pytest.mark.parametrize(
    "bad",
    [
        {"steps": 0},
        {"dropout": 1.0},
        {"learning_rate": float("nan")},
        {"learning_rate": float("inf")},
        {"dtype": "float16"},
        {"schedule": 3},  # a name may be that of a schedule of the user's own
        {"unknown": 1},
    ],
)
def test_a_recipe_from_a_file_is_checked(bad):
    with pytest.raises((ValueError, AnsatzError)):
        Recipe.model_validate(bad)


def test_only_an_mlp_has_widths():
    assert Recipe().sentence("random_features").startswith("random_features, AdamW")


@pytest.mark.parametrize(
    ("shift", "scale"), [(1e9, 1.0), (-1e6, 1e-3), (0.0, 1e30), (0.0, 1e-30), (1e18, 0.0)]
)
def test_outcomes_that_float32_cannot_tell_apart_need_double(shift, scale):
    assert needs_double(shift + scale * torch.randn(50))


@pytest.mark.parametrize(
    ("shift", "scale"), [(0.0, 1.0), (2000.0, 10.0), (0.0, 1e9), (0.0, 1e-9), (3.0, 0.0)]
)
def test_ordinary_outcomes_do_not(shift, scale):
    assert not needs_double(shift + scale * torch.randn(50))


def test_one_of_several_targets_is_enough_and_classes_never_need_it():
    y = torch.randn(50, 2)
    assert needs_double(y + torch.tensor([0.0, 1e9])) and not needs_double(y)
    assert not needs_double(torch.arange(50))


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_a_network_predicts_outcomes_that_are_far_from_zero_or_far_from_one(scale):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(120, 1))
    y = scale * (x[:, 0] + 0.1 * generator.normal(size=120) + (1e9 if scale == 1 else 0))
    model = Regressor(widths=(16,), epochs=60).fit(x, y)
    assert model.score(x, y) > 0.9
    assert model.recipe_.dtype == "float64"


def test_a_stream_keeps_the_arithmetic_it_began_with():
    x = np.random.default_rng(0).normal(size=(64, 1))
    model = Regressor(widths=(8,)).partial_fit(x, x[:, 0] + 1e9)
    model.partial_fit(x, x[:, 0])
    assert model.recipe_.dtype == "float64"
