import importlib

import pytest

from ansatz import Classifier, Ranker, Regressor, SurvivalRegressor
from ansatz.fitting import Request
from ansatz.fitting.problem import reading, with_structure
from ansatz.fitting.task import split_options, task_of

TIMES = {"x": [1.0, 2.0, 3.0], "t": [1.0, 2.0, 4.0], "e": [1, 0, 1]}
CASES = {
    "numbers": ({"x": [1.0, 2.0, 4.0], "y": [0.1, -2.0, 3.0]}, {"target": "y"}, Regressor),
    "classes": ({"x": [1.0, 2.0, 4.0], "y": list("aba")}, {"target": "y"}, Classifier),
    "times": (TIMES, {"target": "t", "event": "e"}, SurvivalRegressor),
    "orders": ({"y": ["a>b", "b>a"]}, {"target": "y"}, Ranker),
}


def task(table, **options):
    request = with_structure(Request.of(table, options))
    with reading(request) as problem:
        return task_of(request, problem)


@pytest.mark.parametrize("table, options, kind", CASES.values(), ids=CASES)
def test_outcomes_find_their_estimator(table, options, kind):
    module, _, name = task(table, **options).outcome.estimator.partition(":")
    assert getattr(importlib.import_module(module), name) is kind


def test_options_go_where_they_belong():
    given = {"components": 2, "epochs": 5, "norm": "layer"}
    assert split_options("normal_mixture", given) == (
        {"epochs": 5, "norm": "layer"},
        {"components": 2},
    )
    options = {"epochs": 5, "norm": "layer"}
    found = task(CASES["numbers"][0], target="y", likelihood="normal", options=options).settings
    assert found.get("epochs") == 5 and found.network_options == {"norm": "layer"}
