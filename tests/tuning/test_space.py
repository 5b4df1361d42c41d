import pytest

from ansatz.errors import UsageError
from ansatz.fitting.recipe import choose_recipe
from ansatz.fitting.space import Choice, Range, network_space, training_space
from ansatz.tuning.space import check_space, parse_space, point_of, settings_of


def default_space(recipe, rows):
    return network_space("mlp", training_space(recipe, rows))


def test_ranges_and_choices_are_read_from_words():
    space = parse_space(
        ["dropout=0..0.3", "width=16..256", "activation=relu, tanh", "depth=2", "widths=[64],[8,8]"]
    )
    assert space["dropout"] == Range(0, 0.3) and not space["dropout"].whole
    assert space["width"].whole and space["width"].log
    assert space["activation"] == Choice(("relu", "tanh"))
    assert space["depth"] == Choice((2,))
    assert space["widths"] == Choice(([64], [8, 8]))
    assert parse_space(["learning-rate=1e-4..1e-2"])["learning_rate"].log


@pytest.mark.parametrize(
    "word", ["dropout", "=1..2", "dropout=", "dropout=a..b", "dropout=0..inf", "dropout=1..2..3"]
)
def test_what_is_no_dimension_is_named(word):
    with pytest.raises(UsageError, match="expected --space NAME=LOW"):
        parse_space([word])


def test_a_range_goes_up_and_choices_differ():
    with pytest.raises(UsageError, match=r"must go up, got 3\.\.1"):
        parse_space(["depth=3..1"])
    with pytest.raises(UsageError, match="given twice"):
        parse_space(["depth=3,3"])


def test_width_and_depth_are_the_widths_of_a_fit():
    assert settings_of({"width": 32, "depth": 3}) == {"widths": [32, 32, 32]}
    assert settings_of({"depth": 1, "likelihood": "gamma"}) == {
        "likelihood": "gamma",
        "widths": [128],
    }


def test_the_default_recipe_is_a_point_of_the_default_space():
    for rows in (300, 5_000, 200_000):
        recipe = choose_recipe(rows)
        space = {**default_space(recipe, rows), "likelihood": Choice(("normal", "laplace"))}
        point = point_of(recipe, "laplace", space)
        assert point["width"] == recipe.widths[0] and point["likelihood"] == "laplace"
        assert settings_of(point)["widths"] == list(recipe.widths)
    assert point_of(recipe, "normal", parse_space(["width=2..4"])) is None


def test_a_recipe_that_takes_all_rows_keeps_doing_so():
    few = default_space(choose_recipe(60), 60)
    coupled = choose_recipe(1_000, coupled=True)
    assert "batch_size" not in few
    assert "batch_size" not in default_space(coupled, 1_000)


def test_names_that_are_no_options_are_refused():
    with pytest.raises(UsageError, match=r"unknown option 'dropuot'. Did you mean 'dropout'\?"):
        check_space(parse_space(["dropuot=0..1"]), ["dropout"])
    with pytest.raises(UsageError, match="widths takes the place of width"):
        check_space(parse_space(["widths=[8]", "width=4..8"]), ["widths", "width"])
