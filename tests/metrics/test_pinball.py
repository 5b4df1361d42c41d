import pytest
import torch
from sklearn.metrics import mean_pinball_loss
from torch.testing import assert_close

from ansatz.likelihoods import NormalDistribution, Quantiles
from ansatz.metrics import pinball, registry

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
