"""Boosted trees have the likelihood of the model around their mean."""

import numpy as np
import pytest
import torch

from ansatz.likelihoods import create
from ansatz.structures.vector.report.boosting import _around


@pytest.mark.parametrize("name", ["normal", "gamma", "negative_binomial", "log_normal"])
def test_the_dispersion_is_fitted_around_out_of_fold_means(name):
    rng = np.random.default_rng(0)
    mean = np.exp(rng.normal(size=4000))
    y = {
        "normal": mean + 0.5 * rng.normal(size=4000),
        "gamma": rng.gamma(4, mean / 4),
        "negative_binomial": rng.negative_binomial(2, 2 / (2 + mean)).astype(float),
        "log_normal": mean * np.exp(0.5 * rng.normal(size=4000) - 0.125),
    }[name]
    variance = {
        "normal": 0.25 + 0 * mean,
        "gamma": mean**2 / 4,
        "negative_binomial": mean + mean**2 / 2,
        "log_normal": mean**2 * (np.exp(0.25) - 1),
    }[name]
    likelihood = create(name, dispersion="constant")
    at = torch.from_numpy(mean[:50])
    _, _, distribution = _around(likelihood, at, y, mean, np.ones(4000))
    assert np.allclose(distribution.mean, mean[:50], rtol=0.1, atol=0.05)
    assert np.allclose(distribution.variance.detach(), variance[:50], rtol=0.3)
