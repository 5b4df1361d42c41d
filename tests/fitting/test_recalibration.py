import math

import pytest
import torch

from ansatz.fitting.recalibration import find_factor, kind_of
from ansatz.likelihoods import Gamma, Normal, Poisson


def test_the_factor_of_a_normal_likelihood_is_the_root_mean_square_score():
    z = torch.randn(400, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 1.6

    def loss(c):
        return 0.5 * (z / c) ** 2 + math.log(c)

    weight = torch.ones(400, dtype=torch.float64)
    assert find_factor(loss, weight) == pytest.approx(float(z.square().mean().sqrt()), rel=1e-3)


def test_what_can_be_recalibrated():
    assert [kind_of(likelihood) for likelihood in (Normal(), Gamma(), Poisson())] == [
        "scale",
        "dispersion",
        None,
    ]
