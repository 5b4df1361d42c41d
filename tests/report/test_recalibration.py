"""Before and after recalibration on test rows."""

import re
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
import torch
from scipy import stats

from ansatz import Classifier, Regressor, SurvivalRegressor
from ansatz.figures.section import Figure, Table
from ansatz.fitting.contracts.inference import Predictive
from ansatz.likelihoods import BernoulliDistribution, NormalDistribution
from ansatz.report import gather
from ansatz.report.recalibration import NONE, paired_change, section


class Done(NamedTuple):
    kind: str
    value: float
    before: dict
    after: dict


def served_before(model, likelihood, done):
    """A model that was recalibrated: what it served before is the likelihood given here."""
    before = SimpleNamespace(
        has_distribution=True, additive=True, given=lambda raw, y: (likelihood, y)
    )
    plain = SimpleNamespace(predictive=lambda *rows, notes: Predictive(before, torch.zeros(1)))
    model.model_.posterior.without_recalibration = lambda: plain
    model.model_.recalibration = done
    return model


def test_without_recalibration_one_sentence_says_so():
    x = np.linspace(0, 1, 50).reshape(-1, 1)
    model = Regressor(network="linear").fit(x, x[:, 0] ** 2)
    found = section(gather(model, x, x[:, 0] ** 2))
    assert found.lead == NONE and not found.parts


def test_the_change_is_the_mean_difference_with_its_paired_error():
    y = torch.randn(300)
    narrow = NormalDistribution(torch.zeros(300), torch.full((300,), 0.6))
    right = NormalDistribution(torch.zeros(300), torch.ones(300))
    found = paired_change(-narrow.log_prob(y), -right.log_prob(y))
    gain = stats.norm.logpdf(y, 0, 0.6) - stats.norm.logpdf(y)
    assert found.difference.value == pytest.approx(gain.mean())
    error = gain.std(ddof=1) / np.sqrt(300)
    assert found.difference.high - found.difference.low == pytest.approx(2 * 1.96 * error)
    assert found.after - found.before == pytest.approx(found.difference.value)


def test_numbers_show_histograms_and_coverage_of_both():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 1))
    y = x[:, 0] + rng.normal(size=400)
    model = Regressor(network="linear").fit(x, y)
    likelihood = model.predict_dist(x)
    done = Done("scale", 2.0, {"nll": 2.1}, {"nll": 1.4})
    model = served_before(model, NormalDistribution(likelihood.mean, 0.5 * likelihood.stddev), done)
    found = section(gather(model, x, y))
    assert "multiplied by 2.000" in found.lead and "improved" in found.lead
    out_of_fold, test = (part for part in found.parts if isinstance(part, Table))
    assert out_of_fold.rows == [["nll", 2.1, 1.4]]
    assert float(test.rows[0][1]) == pytest.approx(2 * float(test.rows[1][1]), rel=0.01)
    assert sum(isinstance(part, Figure) for part in found.parts) == 1


def test_classes_show_reliability_of_both():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 1))
    y = (rng.random(300) < 1 / (1 + np.exp(-x[:, 0]))).astype(int)
    model = Classifier(network="linear").fit(x, y)
    logits = torch.logit(torch.from_numpy(model.predict_proba(x)[:, 1]))
    done = Done("temperature", 4.0, {"nll": 1.0}, {"nll": 0.6})
    model = served_before(model, BernoulliDistribution(4 * logits), done)
    found = section(gather(model, x, y))
    assert "temperature of 4.000" in found.lead and "improved" in found.lead
    test = [part for part in found.parts if isinstance(part, Table)][-1]
    assert float(test.rows[0][2]) > 3 * float(test.rows[1][2])


def test_an_ensemble_is_compared_with_itself_without_its_factor():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 1))
    y = x[:, 0] + rng.normal(size=150)
    model = Regressor(inference="ensemble", members=5, epochs=4, widths=[8]).fit(x, y)
    found = section(gather(model, x, y))
    assert model.recalibration_.kind == "scale"
    assert f"{model.recalibration_.value:.3f}" in found.lead
    assert any(isinstance(part, Figure) for part in found.parts)


def test_censored_rows_change_by_the_likelihood_of_what_is_known():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 1))
    y = np.stack([rng.gamma(2, 1, 120), rng.random(120) < 0.7], 1)
    options = {"inference": "ensemble", "members": 5, "epochs": 2, "widths": [4]}
    model = SurvivalRegressor("weibull", **options).fit(x, y)
    found = section(gather(model, x, y))
    after = re.search(r"before, ([0-9.]+) after", found.lead)
    assert model.evaluate(x, y)["nll"] == pytest.approx(float(after[1]), abs=1e-3)
