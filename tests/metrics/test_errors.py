import math

import pytest
import torch
from torch.testing import assert_close

from ansatz.likelihoods import VonMisesDistribution
from ansatz.metrics import (
    angular_distance,
    mean_angular_error,
    registry,
    sample_circular_crps,
    sample_crps,
)


def test_distances_are_angles_between_unit_vectors():
    a, b = 20 * torch.randn(100), 20 * torch.randn(100)
    exact = torch.acos((torch.cos(a - b)).clamp(-1, 1))
    assert_close(angular_distance(a, b), exact, atol=1e-7, rtol=0)
    assert_close(angular_distance(a, a + math.pi), torch.full((100,), math.pi))


def test_the_mean_angular_error_is_weighted_and_wraps():
    y, point = torch.tensor([3.0, 0.0]), torch.tensor([-3.0, 1.0])
    assert mean_angular_error(y, point).item() == pytest.approx((2 * math.pi - 6 + 1) / 2)
    weight = torch.tensor([3.0, 1.0])
    assert mean_angular_error(y, point, weight).item() == pytest.approx((6 * math.pi - 17) / 4)
    with pytest.raises(ValueError, match="shape of y"):
        mean_angular_error(y, point.unsqueeze(1))


def test_close_directions_are_numbers():
    samples, y = 0.1 * torch.randn(8, 5), 0.1 * torch.randn(5)
    assert_close(sample_circular_crps(samples, y), sample_crps(samples, y))


def test_turning_everything_changes_nothing():
    samples, y = torch.randn(8, 5), torch.randn(5)
    assert_close(sample_circular_crps(samples + 4, y + 4), sample_circular_crps(samples, y))


def test_draws_score_as_their_likelihood_on_average():
    distribution = VonMisesDistribution(torch.full((4000,), 0.8), torch.full((4000,), -0.5))
    y = torch.full((4000,), 2.0)
    found = sample_circular_crps(distribution.sample((4,), torch.Generator().manual_seed(0)), y)
    assert abs(found.mean() - distribution.crps(y)[0]) < 5 * found.std() / 4000**0.5


def test_too_few_draws_are_refused_and_the_registry_knows_it():
    with pytest.raises(ValueError, match="M >= 2"):
        sample_circular_crps(torch.zeros(1, 3), torch.zeros(3))
    assert registry.get("sample_circular_crps") is sample_circular_crps
    assert registry.get("mean_angular_error") is mean_angular_error
