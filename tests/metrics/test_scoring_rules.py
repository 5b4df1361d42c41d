import pytest
import torch
from sklearn.metrics import mean_pinball_loss
from torch.testing import assert_close

from ansatz.likelihoods import MultivariateNormalDistribution, NormalDistribution, Quantiles
from ansatz.metrics import (
    compute_metrics,
    energy_score,
    pinball,
    registry,
    sample_crps,
    sample_energy_score,
)


def naive(samples, y):
    """The two double sums, transcribed."""
    m = len(samples)
    near = sum((x - y).norm() for x in samples) / m
    apart = sum(
        (a - b).norm() for i, a in enumerate(samples) for j, b in enumerate(samples) if i != j
    )
    return near - apart / (2 * m * (m - 1))


def test_it_is_the_formula():
    samples, y = torch.randn(7, 5, 3), torch.randn(5, 3)
    exact = torch.stack([naive(samples[:, i], y[i]) for i in range(5)])
    assert_close(sample_energy_score(samples, y), exact)


def test_of_one_number_it_is_the_crps():
    samples, y = torch.randn(9, 6), torch.randn(6)
    found = sample_energy_score(samples.unsqueeze(-1), y.unsqueeze(-1))
    assert_close(found, sample_crps(samples, y))


def test_blocks_do_not_change_it(monkeypatch):
    samples, y = torch.randn(10, 4, 2), torch.randn(4, 2)
    whole = sample_energy_score(samples, y)
    monkeypatch.setattr("ansatz.metrics.scoring_rules._BLOCK", 3 * samples.numel())
    assert_close(sample_energy_score(samples, y), whole)


def test_few_draws_are_unbiased_and_a_likelihood_agrees_with_its_draws():
    likelihood = MultivariateNormalDistribution.of(
        torch.zeros(2000, 2), torch.tensor([[1.0, 0.8], [0.8, 2.0]])
    )
    y = torch.tensor([1.0, -1.0]).expand(2000, 2)
    few = sample_energy_score(likelihood.sample((3,), torch.Generator().manual_seed(0)), y)
    many = likelihood.energy_score(y, 50, torch.Generator().manual_seed(1))
    assert abs(few.mean() - many.mean()) < 5 * (few.var() + many.var()).sqrt() / 2000**0.5


def test_the_truth_scores_best():
    """A proper score: on average the distribution behind the outcomes beats its neighbours."""
    n, cov = 2000, torch.tensor([[1.0, 0.9], [0.9, 1.0]])
    truth = MultivariateNormalDistribution.of(torch.zeros(n, 2), cov)
    y = truth.sample((), torch.Generator().manual_seed(0))

    def score(likelihood):  # the same random numbers for all: only the distributions differ
        return likelihood.energy_score(y, 100, torch.Generator().manual_seed(1)).mean()

    best = score(truth)
    for mean, covariance in (
        (0.3, cov),
        (0.0, 2 * cov),
        (0.0, 0.4 * cov),
        (0.0, cov * torch.tensor([[1.0, -1.0], [-1.0, 1.0]])),
    ):
        other = MultivariateNormalDistribution.of(torch.full((n, 2), mean), covariance)
        assert score(other) > best


def test_weights_are_repetitions():
    likelihood = MultivariateNormalDistribution.of(torch.zeros(3, 2), torch.eye(2))

    class Fixed:
        def energy_score(self, y):
            return y.norm(dim=-1)

    y, weight = torch.randn(3, 2), torch.tensor([2.0, 0.0, 1.0])
    assert_close(energy_score(Fixed(), y, weight), (2 * y[0].norm() + y[2].norm()) / 3)
    assert energy_score(likelihood, y).shape == ()


def test_wrong_shapes_are_named_and_the_registry_knows_it():
    with pytest.raises(ValueError, match=r"M >= 2.*got \(1, 3, 2\)"):
        sample_energy_score(torch.zeros(1, 3, 2), torch.zeros(3, 2))
    assert registry.get("energy_score") is energy_score
    assert registry.get("sample_energy_score") is sample_energy_score


def test_judging_vectors_gives_their_energy_score_instead_of_the_crps():
    likelihood = MultivariateNormalDistribution.of(torch.zeros(5, 2), torch.eye(2))
    y = torch.randn(5, 2)
    found = compute_metrics(y, distribution=likelihood, point=likelihood.mean)
    assert found["energy_score"] == pytest.approx(energy_score(likelihood, y).item())
    assert found["nll"] == pytest.approx(-likelihood.log_prob(y).mean().item())
    assert "crps" not in found and "rmse" in found


LEVELS = [0.1, 0.5, 0.8]


def test_it_is_sklearns_with_weights():
    y, q, weight = torch.randn(30), torch.randn(30, 3), torch.randint(0, 4, (30,)).double()
    for w in (None, weight):
        exact = [
            mean_pinball_loss(y, q[:, i], alpha=a, sample_weight=None if w is None else w.numpy())
            for i, a in enumerate(LEVELS)
        ]
        assert pinball(y, q, LEVELS, w).item() == pytest.approx(sum(exact) / 3)


def test_it_is_the_loss_of_quantiles():
    likelihood, raw, y = Quantiles(levels=LEVELS), torch.randn(20, 3), torch.randn(20)
    assert_close(3 * pinball(y, likelihood.quantiles(raw), LEVELS), likelihood.loss(raw, y).mean())


def test_it_is_never_negative_and_nothing_only_for_the_outcome_itself():
    y = torch.tensor([1.0, -1.0])
    assert pinball(y, y.unsqueeze(-1), [0.1]) == 0
    assert pinball(y, y.unsqueeze(-1) + 1, [0.1]) > 0
    assert pinball(y, y.unsqueeze(-1) - 1, [0.1]) > 0


def test_over_all_levels_it_is_half_the_crps():
    """The mean over a fine grid of levels (midpoint rule); both tails converge slowly."""
    levels = ((torch.arange(4000) + 0.5) / 4000).tolist()
    likelihood, y = (
        NormalDistribution(torch.zeros(3), torch.ones(3)),
        torch.tensor([-1.0, 0.2, 2.0]),
    )
    q = likelihood.icdf(torch.tensor(levels).unsqueeze(-1)).T  # (3, Q)
    assert 2 * pinball(y, q, levels).item() == pytest.approx(
        likelihood.crps(y).mean().item(), rel=1e-3
    )


def test_several_targets_are_averaged():
    y, q = torch.randn(10, 2), torch.randn(10, 2, 3)
    parts = [pinball(y[:, k], q[:, k], LEVELS) for k in range(2)]
    assert_close(pinball(y, q, LEVELS), torch.stack(parts).mean())


def test_wrong_shapes_and_levels_are_named():
    with pytest.raises(ValueError, match=r"one quantile per level, \(4, 3\), got \(4, 2\)"):
        pinball(torch.zeros(4), torch.zeros(4, 2), LEVELS)
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        pinball(torch.zeros(4), torch.zeros(4, 1), [1.0])
    assert registry.get("pinball") is pinball
