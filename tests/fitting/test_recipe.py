import pytest

from ansatz.errors import AnsatzError
from ansatz.fitting.recipe import Recipe


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
