import math

import pytest
import torch
from scipy import stats
from torch.testing import assert_close

from ansatz.errors import DataError
from ansatz.likelihoods import EnergyForces
from ansatz.likelihoods.energy_forces import RATE


def sample(atoms=(2, 3)):
    widest = max(atoms)
    raw = torch.zeros(len(atoms), 11 + 3 * widest)
    y = torch.full((len(atoms), 1 + 3 * widest), torch.nan)
    for b, n in enumerate(atoms):
        raw[b, 0], raw[b, 1] = torch.randn(()), n
        raw[b, 11 : 11 + 3 * n] = torch.randn(3 * n)
        y[b, : 1 + 3 * n] = torch.randn(1 + 3 * n)
    return raw, y


def test_the_loss_is_scipys_density_of_an_energy_and_of_forces():
    likelihood = EnergyForces()
    likelihood.set_scales(0.3, 0.7)
    raw, y = sample()
    for b, n in enumerate((2, 3)):
        energy = stats.norm(raw[b, 0], 0.3 * math.sqrt(n)).logpdf(y[b, 0])
        forces = stats.norm(raw[b, 11 : 11 + 3 * n], 0.7).logpdf(y[b, 1 : 1 + 3 * n]).sum()
        assert likelihood.loss(raw, y)[b].item() == pytest.approx(-(energy + forces))


def test_what_is_unknown_takes_no_part():
    likelihood = EnergyForces()
    raw, y = sample((3,))
    known = likelihood.loss(raw, y)
    y[0, 4] = torch.nan
    term = -stats.norm(raw[0, 14].item(), 1).logpdf(y[0, 4].item())
    assert math.isnan(term)
    wide = torch.nn.functional.pad(y, (0, 6), value=torch.nan)
    assert_close(likelihood.loss(raw, wide), likelihood.loss(raw, y))
    assert likelihood.loss(raw, y) < known
    y[0, 0] = torch.nan
    raw.requires_grad_()
    likelihood.loss(raw, y).sum().backward()
    assert raw.grad.isfinite().all() and raw.grad[0, 0] == 0


def test_scales_are_learned_five_times_as_fast_as_weights():
    likelihood = EnergyForces()
    raw, y = sample()
    optimizer = torch.optim.Adam(likelihood.parameters(), lr=1e-3)
    before = likelihood.force_scale.log().item()
    likelihood.loss(raw, y).sum().backward()
    optimizer.step()
    assert abs(likelihood.force_scale.log().item() - before) == pytest.approx(RATE * 1e-3, rel=1e-4)


def test_draws_have_the_moments():
    likelihood = EnergyForces()
    likelihood.set_scales(0.5, 2.0)
    raw, _ = sample((2,))
    distribution = likelihood.distribution(raw)
    draws = distribution.sample((20_000,), torch.Generator().manual_seed(0))
    error = distribution.variance.sqrt() / 20_000**0.5
    assert ((draws.mean(0) - distribution.mean).abs() < 5 * error).all()
    assert_close(distribution.variance[0, :2], torch.tensor([0.5, 4.0]))


def test_infinite_and_unknown_frames_are_named():
    _, y = sample()
    y[1, 2] = torch.inf
    with pytest.raises(DataError, match=r"must be finite numbers, see y\[1\]"):
        EnergyForces().check(y)
