import math

import numpy as np
import torch

from ansatz.fitting.intervals import conformal_interval, conformal_quantile, conformal_scores
from ansatz.likelihoods import Normal, Poisson


def test_conformal_intervals_cover_as_promised_under_a_wrong_likelihood():
    """Exponential outcomes under a normal that is too narrow: coverage over many draws."""
    likelihood, generator = Normal(dispersion=0.3), np.random.default_rng(0)
    hits, count, level = 0, 0, 0.9
    for _ in range(300):
        y = torch.from_numpy(generator.exponential(size=40))
        raw = torch.ones(40, 1, dtype=torch.float64)
        cut = conformal_quantile(conformal_scores(likelihood, raw[:39], y[:39]), level)
        low, high = conformal_interval(likelihood, raw[39:], cut)
        hits += bool(low <= y[39] <= high)
        count += 1
    assert abs(hits / count - level) < 3 * math.sqrt(level * (1 - level) / count)


def test_conformal_intervals_of_counts_hold_their_own_calibration_rows():
    likelihood, y = Poisson(), torch.tensor([0.0, 1, 1, 2, 2, 3, 4, 5, 9])
    raw = torch.zeros(9, 1)
    scores = conformal_scores(likelihood, raw, y)
    cut = conformal_quantile(scores, 0.8)
    low, high = conformal_interval(likelihood, raw, cut)
    inside = (y >= low) & (y <= high)
    assert bool((inside == (scores <= cut + 1e-6)).all()) and int(inside.sum()) >= 8


def test_so_few_rows_promise_nothing():
    assert math.isinf(float(conformal_quantile(torch.arange(5.0), 0.9)))
