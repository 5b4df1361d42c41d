import numpy as np
import pandas as pd
import pytest

import ansatz
from ansatz.fitting.replay import replay


def rare(rows=400):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(rows, 2)), columns=["a", "b"])
    frame["y"] = np.where(frame["a"] + rng.normal(size=rows) > 2, "yes", "no")
    return frame


@pytest.mark.parametrize("weight", ["balanced", {"no": 1.0, "yes": 9.0}])
@pytest.mark.parametrize("network", ["linear", "mlp"])
def test_class_weights_are_no_rows_when_a_fit_is_judged(weight, network):
    """Its scores are those that ``evaluate`` gives for the same rows."""
    frame, options = rare(), {"class_weight": weight}
    if network == "mlp":
        options |= {"widths": [4], "epochs": 2}
    fit = ansatz.fit(frame, target="y", network=network, options=options)
    test = frame.iloc[fit.posed[2].test]
    expected = fit.model.evaluate(test[["a", "b"]], test["y"])
    assert {name: fit.metrics[name] for name in expected} == pytest.approx(expected)
    share = (frame["y"] == "yes").iloc[fit.posed[2].learn].mean()
    right = np.where(test["y"] == "yes", share, 1 - share)
    assert fit.constant["nll"] == pytest.approx(-np.log(right).mean(), rel=0.02)


def test_class_weights_do_not_move_the_split():
    options = {"widths": [4], "epochs": 1}
    plain = ansatz.fit(rare(), target="y", network="mlp", options=options)
    options["class_weight"] = {"no": 1.0, "yes": 30.0}
    tilted = ansatz.fit(rare(), target="y", network="mlp", options=options)
    assert tilted.rows == plain.rows and plain.rows["test"] == 80
    for a, b in zip(plain.posed[2], tilted.posed[2], strict=True):
        np.testing.assert_array_equal(a, b)


def test_class_weights_tilt_no_rival():
    """The report and the fit compare with the same linear and constant models."""
    from ansatz.report import replayed
    from ansatz.report.rivals import rivals

    options = {"class_weight": "balanced", "widths": [4], "epochs": 2}
    fit = ansatz.fit(rare(), target="y", network="mlp", options=options)
    evidence = replayed(replay(fit))
    for name, expected in {"linear": fit.linear, "constant": fit.constant}.items():
        found = rivals(evidence).find(name).judge(evidence.weight)
        assert found["nll"] == pytest.approx(expected["nll"])
