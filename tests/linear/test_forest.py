import numpy as np
import pandas as pd

from ansatz import Regressor, load
from ansatz.report import gather
from ansatz.structures.vector.report import coefficients, data_summary


def make(errors=None):
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"age": rng.normal(50, 10, 120), "sex": rng.choice(["f", "m"], 120)})
    y = rng.poisson(np.exp(0.02 * X["age"])).astype(float)
    return Regressor("poisson", network="linear", errors=errors).fit(X[:80], y[:80]), X[80:], y[80:]


def test_the_report_of_a_linear_model_has_its_coefficients(tmp_path):
    model, X, y = make("HC3")
    model.save(tmp_path / "model")
    for each in (model, load(tmp_path / "model")):
        found = coefficients.section(gather(each, X, y))
        table, drawing = found.parts[:2]
        assert table.head[-1] == "exp(estimate)" and "HC3 standard errors" in table.caption
        fit = model.linear_
        low, high = fit.confint(0.95)[1, 0].tolist()
        expected = [float(fit.coefficients[1, 0]), float(fit.standard_errors[1, 0]), low, high]
        np.testing.assert_allclose(table.rows[1][1:5], expected)
        assert "sex[m]" in drawing.svg


def test_widths_are_standard_deviations_of_numbers_and_1_of_levels():
    model, X, y = make()
    found = coefficients._widths(gather(model, X, y), model.model_.estimates[0])
    np.testing.assert_allclose(found, [X["age"].std(ddof=0), 1.0])


def test_a_network_has_no_coefficients():
    _, X, y = make()
    model = Regressor("poisson", epochs=1).fit(X, y)
    assert coefficients.section(gather(model, X, y)) is None


def test_the_report_describes_the_columns_by_the_outcome():
    model, X, y = make()
    parts = data_summary.section(gather(model, X, y)).parts
    heads = [part.head for part in parts if hasattr(part, "head")]
    assert any("all (n = 40)" in head for head in heads)
