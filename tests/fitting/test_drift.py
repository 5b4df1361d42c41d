"""The note that the latest rows are not like those before them."""

import numpy as np
import pandas as pd
import pytest

import ansatz


def rows(drift):
    rng, when = np.random.default_rng(0), np.arange(300)
    x = rng.normal(size=300)
    y = x + drift * np.maximum(0, when - 200) / 30 + rng.normal(size=300)
    return pd.DataFrame({"x": x, "when": when, "y": y})


@pytest.mark.parametrize("drift, noted", [(1.0, True), (0.0, False)])
def test_a_drift_of_the_latest_rows_is_noted(drift, noted):
    options = {"target": "y", "likelihood": "normal", "network": "linear"}
    fit = ansatz.fit(rows(drift), time="when", **options)
    assert any("of the latest 60 rows" in note for note in fit.notes) == noted


def test_rows_without_an_order_have_no_such_note():
    options = {"target": "y", "likelihood": "normal", "network": "linear"}
    fit = ansatz.fit(rows(1.0).sort_values("y"), drop="when", **options)
    assert not any("latest" in note for note in fit.notes)
