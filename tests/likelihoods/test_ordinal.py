import copy

import numpy as np
import pytest
import torch
from scipy import stats
from torch.testing import assert_close

from ansatz.errors import DataError
from ansatz.likelihoods import Bernoulli, Ordinal, OrdinalDistribution
from ansatz.spec import TargetSpec


def ordinal(thresholds):
    likelihood = Ordinal()
    likelihood.outputs(TargetSpec(classes=len(thresholds) + 1))
    likelihood._set(torch.as_tensor(thresholds))
    return likelihood


THRESHOLDS = [-1.5, -0.2, 0.4, 2.0]


def test_the_log_likelihood_is_statsmodels():
    ordinal_model = pytest.importorskip("statsmodels.miscmodels.ordinal_model")
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 2)), rng.integers(0, 5, 200)
    model = ordinal_model.OrderedModel(y, x, distr="logit")
    beta = np.array([0.7, -1.1])
    gaps = np.log(np.diff(THRESHOLDS))
    theirs = model.loglikeobs(np.concatenate([beta, THRESHOLDS[:1], gaps]))
    ours = -ordinal(THRESHOLDS).loss(torch.as_tensor(x @ beta).unsqueeze(1), torch.as_tensor(y))
    assert_close(ours.detach(), torch.as_tensor(theirs), rtol=1e-10, atol=1e-10)


def test_probabilities_are_differences_of_sigmoids():
    eta = torch.randn(50)
    distribution = ordinal(THRESHOLDS).distribution(eta.unsqueeze(1))
    at = torch.sigmoid(torch.tensor([-torch.inf, *THRESHOLDS, torch.inf]) - eta.unsqueeze(1))
    assert_close(distribution.probs, at.diff())
    assert_close(distribution.probs.sum(-1), torch.ones(50))
    assert_close(distribution.thresholds, torch.tensor(THRESHOLDS))


def test_two_classes_are_bernoulli():
    raw, y = torch.randn(30, 1), torch.randint(2, (30,))
    assert_close(ordinal([0.0]).loss(raw, y), Bernoulli().loss(raw, y.double()))


def test_moments_quantiles_and_score_are_those_of_the_probabilities():
    distribution = ordinal(THRESHOLDS).distribution(torch.randn(4, 1))
    y, q = torch.tensor([0.0, 1.0, 3.0, 4.0]), torch.tensor([0.01, 0.3, 0.6, 0.99])
    for i, p in enumerate(distribution.probs.detach().numpy()):
        one = stats.rv_discrete(values=(np.arange(5), p))
        assert distribution.mean[i].item() == pytest.approx(one.mean())
        assert distribution.variance[i].item() == pytest.approx(one.var())
        assert distribution.entropy[i].item() == pytest.approx(one.entropy())
        assert distribution.icdf(q)[i].item() == one.ppf(q[i].item())
        assert distribution.mode[i].item() == p.argmax()
        k = np.arange(5)
        exact = ((one.cdf(k) - (k >= y[i].item())) ** 2).sum()
        assert distribution.crps(y)[i].item() == pytest.approx(exact)
        assert distribution.cdf(y + 0.5)[i].item() == pytest.approx(one.cdf(y[i].item()))


def test_tails_are_exact_and_end_with_the_classes():
    distribution = OrdinalDistribution(torch.full((4,), 800.0), torch.tensor(THRESHOLDS))
    y = torch.tensor([-1.0, 0.0, 3.0, 4.0])
    steps = torch.nn.functional.softplus(torch.tensor(THRESHOLDS[1:])).sum()
    expected = torch.tensor([-torch.inf, -1.5 - 800, -1.5 + steps - 800, 0.0])
    assert_close(distribution.log_cdf(y), expected)
    assert distribution.log_survival(y).tolist() == [0.0, 0.0, 0.0, -torch.inf]


def test_gradients_in_location_and_thresholds():
    eta, steps = torch.randn(6).requires_grad_(), torch.randn(3).requires_grad_()
    y = torch.tensor([0.0, 1.0, 2.0, 3.0, 1.0, 2.0])

    def loss(eta, steps):
        return OrdinalDistribution(eta, steps).log_prob(y)

    def tails(eta, steps):
        distribution = OrdinalDistribution(eta, steps)
        return (
            distribution.log_cdf(y)[y < 3],
            distribution.log_survival(y)[y < 3],
            distribution.crps(y),
        )

    assert torch.autograd.gradcheck(loss, (eta, steps))
    assert torch.autograd.gradgradcheck(loss, (eta, steps))
    assert torch.autograd.gradcheck(tails, (eta, steps))


def test_thresholds_may_be_given_row_by_row():
    """As the linear model does: (B, K - 1) in place of (K - 1,)."""
    likelihood, raw, y = ordinal(THRESHOLDS), torch.randn(5, 1), torch.arange(5)

    class Loss(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.likelihood = likelihood

        def forward(self, raw, y):
            return self.likelihood.loss(raw, y)

    rows = likelihood.steps.detach().expand(5, -1)
    by_row = torch.func.functional_call(Loss(), {"likelihood.steps": rows}, (raw, y))
    assert_close(by_row, likelihood.loss(raw, y).detach())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_extreme_raw_numbers_give_finite_losses_and_gradients(dtype):
    likelihood = ordinal(THRESHOLDS).to(dtype)
    with torch.no_grad():
        likelihood.steps[2] = -60.0  # two thresholds that are nearly one
    raw = torch.tensor([0.0, 50.0, -50.0, 1e4, -1e4], dtype=dtype).repeat(5).unsqueeze(1)
    raw.requires_grad_()
    terms = likelihood.loss(raw, torch.arange(5).repeat_interleave(5))
    gradients = torch.autograd.grad(terms.sum(), [raw, likelihood.steps])
    assert terms.isfinite().all()
    assert all(g.isfinite().all() for g in gradients)


def test_the_constant_model_has_the_frequencies():
    y = torch.tensor([0, 0, 1, 2, 2, 2, 3, 3, 3, 3])
    likelihood = Ordinal()
    likelihood.outputs(TargetSpec(classes=4))
    shift, _ = likelihood.start(y, torch.ones(10))
    assert_close(likelihood.probs(shift), torch.tensor([0.2, 0.1, 0.3, 0.4]))


def test_a_class_without_rows_stays_finite():
    y = torch.tensor([1, 1, 3, 3, 3])
    likelihood = Ordinal()
    likelihood.outputs(TargetSpec(classes=5))
    shift, _ = likelihood.start(y, torch.ones(5))
    found = likelihood.probs(shift)
    assert likelihood.steps.isfinite().all()
    assert_close(found, torch.tensor([0.5, 2.0, 0.5, 3.0, 0.5]) / 6.5)


def test_samples_follow_the_probabilities():
    distribution = ordinal(THRESHOLDS).distribution(torch.tensor([[0.3]]))
    draws = distribution.sample((20_000,), torch.Generator().manual_seed(0)).long().flatten()
    share = torch.bincount(draws, minlength=5) / 20_000
    assert (share - distribution.probs[0]).abs().max() < 5 * 0.5 / 20_000**0.5


def test_the_number_of_classes_comes_with_the_saved_state():
    likelihood = ordinal(THRESHOLDS)
    fresh = Ordinal().double()
    fresh.load_state_dict(likelihood.state_dict())
    assert fresh.classes == 5
    assert_close(fresh.thresholds, torch.tensor(THRESHOLDS))
    assert copy.deepcopy(fresh).classes == 5


def test_what_it_refuses():
    with pytest.raises(ValueError, match="number of classes, at least 2, got 0"):
        Ordinal().outputs(TargetSpec())
    with pytest.raises(ValueError, match="does not know its classes yet"):
        Ordinal().loss(torch.zeros(1, 1), torch.zeros(1))
    with pytest.raises(DataError, match=r"below the number of classes, 5, got 5 at y\[1\]"):
        ordinal(THRESHOLDS).check(torch.tensor([0, 5]))
