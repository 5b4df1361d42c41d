"""A likelihood of your own: the logistic distribution, with tails heavier than normal ones.

Data: progression of diabetes in 442 patients (shipped with scikit-learn).
"""

import math

import torch
from sklearn.datasets import load_diabetes
from torch.nn.functional import logsigmoid, softplus

from ansatz import Regressor, likelihoods


class LogisticDistribution(likelihoods.Distribution):
    """F(y) = 1 / (1 + e^-z) with z = (y - location) / scale."""

    def __init__(self, location, scale):
        self.location, self.scale = location, scale

    mean = mode = property(lambda self: self.location)
    variance = property(lambda self: (math.pi * self.scale) ** 2 / 3)

    def log_prob(self, y):
        z = (y - self.location) / self.scale
        return logsigmoid(z) + logsigmoid(-z) - self.scale.log()

    def cdf(self, y):
        return torch.sigmoid((y - self.location) / self.scale)


class Logistic(likelihoods.Likelihood):
    """Two raw numbers for each outcome: the location, and the scale through softplus."""

    name = "logistic"

    def outputs(self, target):
        return 2

    def start(self, y, weight):
        mean = (weight * y).sum() / weight.sum()
        scale = ((weight * (y - mean) ** 2).sum() / weight.sum()).sqrt() * 3**0.5 / math.pi
        return torch.stack([mean, scale]), torch.stack(
            [scale, scale]
        )  # raw = shift + scale * network

    def distribution(self, raw):
        return LogisticDistribution(raw[..., 0], softplus(raw[..., 1]) + 1e-3)

    def loss(self, raw, y):
        return -self.distribution(raw).log_prob(y)


likelihoods.register("logistic", Logistic)  # from here on a name like any other

X, y = load_diabetes(return_X_y=True)
for name in ("logistic", "normal"):
    model = Regressor(name, random_state=0).fit(X[:330], y[:330])
    scores = model.evaluate(X[330:], y[330:])
    low, high = model.interval(X[330:], 0.9).T  # by bisection of the cdf
    held = ((low <= y[330:]) & (y[330:] <= high)).mean()
    print(
        f"{name:>8}: nll {scores['nll']:.3f}, crps {scores['crps']:.1f}, intervals cover {held:.0%}"
    )
