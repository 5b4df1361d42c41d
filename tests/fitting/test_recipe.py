import pytest

from ansatz.errors import AnsatzError
from ansatz.fitting.recipe import Recipe, choose_recipe


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
        {"schedule": "triangle"},
        {"unknown": 1},
    ],
)
def test_a_recipe_from_a_file_is_checked(bad):
    with pytest.raises((ValueError, AnsatzError)):
        Recipe.model_validate(bad)


def test_only_an_mlp_has_widths():
    assert Recipe().sentence("random_features").startswith("random_features, AdamW")
