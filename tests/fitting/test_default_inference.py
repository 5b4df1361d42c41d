"""The inference that is chosen where none was asked for."""

import numpy as np
import pytest

import ansatz
from ansatz import Classifier, Regressor, SurvivalRegressor
from ansatz.inference.registry import AUTO, choose

rng = np.random.default_rng(0)
X, y = rng.normal(size=(1_200, 2)), rng.normal(size=1_200)


def chosen(model, rows, outcome=y):
    return model.task(X[:rows]).settle(model.read(X[:rows], outcome[:rows])).settings.inference


@pytest.mark.parametrize("rows, name", [(99, "point"), (100, "ensemble"), (1_001, "point")])
def test_the_number_of_rows_decides(rows, name):
    assert chosen(Regressor(), rows) == name
    assert chosen(Regressor(), rows, np.abs(y) + 0.1) == name
    assert chosen(Classifier(), rows, (y > 0).astype(int)) == name


@pytest.mark.parametrize(
    "options",
    [{"epochs": 3}, {"widths": (8,)}, {"network": "linear"}, {"warm_start": True}],
    ids=str,
)
def test_options_of_a_network_mean_one_network(options):
    assert chosen(Regressor(**options), 200) == "point"


def test_what_was_asked_for_is_fitted():
    assert chosen(Regressor(inference="point"), 200) == "point"
    assert chosen(Regressor(inference="ensemble"), 1_200) == "ensemble"
    assert chosen(Regressor(members=3), 1_200) == "ensemble"
    assert chosen(Regressor(bins=8), 200) == "ensemble"


def test_rows_that_are_compared_with_each_other_have_one_network():
    times = np.column_stack([np.abs(y) + 0.1, y > 0])
    assert chosen(SurvivalRegressor("cox"), 200, times) == "point"


def test_weights_count():
    model, weight = Regressor(), np.full(200, 6.0)
    job = model.read(X[:200], y[:200], weight)
    assert model.task(X[:200]).settle(job).settings.inference == "point"
    assert choose(150, networks=True, steered=False, members=False) == "ensemble"


def test_the_command_counts_training_rows_and_notes_its_choice(tmp_path):
    """124 rows, of which a fifth tests the fit, leave 99: one network; 130 rows leave 104."""
    table = {"x": X[:, 0], "y": y}
    options = {"target": "y", "likelihood": "normal", "time_limit": 0.3}
    few = ansatz.fit({name: column[:124] for name, column in table.items()}, **options)
    assert few.inference == "point" and not any("inference" in note for note in few.notes)
    more = ansatz.fit({name: column[:130] for name, column in table.items()}, **options)
    assert more.inference == "ensemble"
    assert any(note.startswith("inference ensemble: the default") for note in more.notes)


def test_a_saved_default_is_served_as_it_was(tmp_path):
    model = Regressor(members=2, epochs=2).fit(X[:120], y[:120])
    model.save(tmp_path / "model")
    again = ansatz.load(tmp_path / "model")
    assert again.model_.task.settings.inference == "ensemble" != AUTO
    np.testing.assert_allclose(again.predict(X[:5]), model.predict(X[:5]))
