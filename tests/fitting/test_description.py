import json

from tests.estimators.conftest import TINY

import ansatz
from ansatz import Classifier, Regressor


def test_what_is_described_is_plain_data(mixed):
    frame, number, label, _ = mixed
    for model, y in ((Regressor(**TINY), number), (Classifier(network="linear"), label)):
        described = model.fit(frame, y).describe()
        assert json.loads(json.dumps(described)) == described
        assert [column["name"] for column in described["columns"]] == ["a", "b", "town"]
    assert described["classes"] == ["no", "yes"] and described["network"] == "linear"


def test_a_fit_describes_its_evidence(mixed, tmp_path):
    frame, number, _, _ = mixed
    table = frame.assign(price=number)
    fit = ansatz.fit(
        table, target="price", likelihood="normal", out=tmp_path / "model", options=TINY
    )
    described = ansatz.load(tmp_path / "model").describe()
    assert described == fit.model.describe()
    assert described["metrics"] == fit.metrics and described["rows"] == fit.rows
    assert described["recipe"] == fit.recipe["recipe"] and described["target"] == ["price"]
