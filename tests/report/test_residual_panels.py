"""Residual panels: what their lines and bands are under the right likelihood."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from ansatz import Classifier, Regressor
from ansatz.figures.section import Figure
from ansatz.figures.style import figure
from ansatz.linear import leverage
from ansatz.report import gather, interval_coverage, pit, quantile_residuals, residual_panels
from ansatz.report.residual_panels import ROOT_MEAN, ROOT_SD, draw_along
from ansatz.structures.vector.report.extrapolation import nearest_distance, novelty


def rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    return x, x[:, 0] + rng.normal(size=n)


def test_the_root_of_a_normal_score_has_the_stated_mean_and_spread():
    root = stats.norm.expect(lambda z: math.sqrt(abs(z)))
    assert root == pytest.approx(ROOT_MEAN, rel=1e-6)
    assert stats.norm.expect(lambda z: abs(z)) - root**2 == pytest.approx(ROOT_SD**2, rel=1e-5)


def test_the_line_of_a_right_likelihood_leaves_its_band_at_one_place_of_twenty():
    shares = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        with figure(2, 2) as paper:
            shares.append(draw_along(paper.subplots(), rng.random(150), rng.normal(size=150)))
    assert abs(np.mean(shares) - 0.05) < 0.04


def test_a_linear_model_shows_leverage():
    x, y = rows()
    model = Regressor(network="linear").fit(x, y)
    found = novelty(gather(model, x, y))
    design = torch.from_numpy(x)
    np.testing.assert_allclose(found.value, leverage(model.linear_, design))
    assert found.name == "leverage"


def test_a_network_shows_the_distance_to_its_training_rows():
    x, y = rows()
    model = Regressor(epochs=2, widths=[8]).fit(x, y)
    far = np.concatenate([x[:50], x[:50] + 10])
    found = novelty(gather(model, far, np.zeros(100), training=(x, y)))
    assert found.title == "extrapolation"
    assert found.value[50:].min() > 5 * np.median(found.value[:50])
    assert novelty(gather(model, far, np.zeros(100))) is None  # training rows are not at hand


def test_a_typical_training_row_has_distance_one():
    learned = torch.randn(500, 3)
    assert np.median(nearest_distance(torch.randn(500, 3), learned)) == pytest.approx(1, abs=0.25)


def test_tables_with_many_levels_have_a_distance_too():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=120), "city": [f"c{k % 40}" for k in range(120)]})
    y = rng.normal(size=120)
    model = Regressor(epochs=1, widths=[4]).fit(frame, y)
    found = residual_panels.section(gather(model, frame, y, training=(frame, y)))
    assert isinstance(found.parts[0], Figure)


def test_sections_do_not_apply_to_classes_and_losses():
    x, y = rows(60)
    classes = gather(Classifier(network="linear").fit(x, y > 0), x, y > 0)
    loss = gather(Regressor("mse", network="linear").fit(x, y), x, y)
    for module in (pit, interval_coverage, quantile_residuals, residual_panels):
        assert module.section(classes) is None
        assert module.section(loss) is None


def test_ensembles_are_evaluated_by_their_mixture():
    x, y = rows(150)
    model = Regressor(inference="ensemble", members=5, epochs=3, widths=[8]).fit(x, y)
    evidence = gather(model, x, y, training=(x, y))
    for module in (pit, interval_coverage, quantile_residuals, residual_panels):
        assert module.section(evidence).parts


def test_figures_are_the_same_for_the_same_rows():
    x, y = rows(80)
    model = Regressor("poisson", network="linear").fit(x, np.round(np.exp(y)))
    evidence = gather(model, x, np.round(np.exp(y)))
    first, second = (
        [p.svg for p in residual_panels.section(evidence).parts if isinstance(p, Figure)]
        for _ in range(2)
    )
    assert first == second
