import pytest

from ansatz import Classifier, Ranker, Regressor, SurvivalRegressor
from ansatz.fitting.kinds import make_estimator, split_options
from ansatz.fitting.problem import pose
from ansatz.fitting.uses import Uses

TIMES = {"x": [1.0, 2.0, 3.0], "t": [1.0, 2.0, 4.0], "e": [1, 0, 1]}
CASES = {
    "numbers": ({"x": [1.0, 2.0, 4.0], "y": [0.1, -2.0, 3.0]}, Uses(target=["y"]), Regressor),
    "classes": ({"x": [1.0, 2.0, 4.0], "y": list("aba")}, Uses(target=["y"]), Classifier),
    "times": (TIMES, Uses(target=["t"], event="e"), SurvivalRegressor),
    "orders": ({"y": ["a>b", "b>a"]}, Uses(target=["y"]), Ranker),
}


@pytest.mark.parametrize("table, uses, kind", CASES.values(), ids=CASES)
def test_outcomes_find_their_estimator(table, uses, kind):
    assert type(make_estimator(pose(table, uses), "mlp")) is kind


def test_options_go_where_they_belong():
    given = {"components": 2, "epochs": 5, "residual": True}
    assert split_options("normal_mixture", given) == (
        {"epochs": 5, "residual": True},
        {"components": 2},
    )
    problem = pose(CASES["numbers"][0], Uses(target=["y"]), likelihood="normal")
    model = make_estimator(problem, "mlp", options={"epochs": 5, "residual": True})
    assert model.epochs == 5 and model.network_options == {"residual": True}
