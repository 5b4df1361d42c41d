import pytest
import torch
from torch.testing import assert_close

from ansatz.likelihoods import Bernoulli, Categorical, CategoricalDistribution
from ansatz.likelihoods.categorical import class_counts
from ansatz.spec import TargetSpec


def test_the_loss_is_torchs_cross_entropy():
    raw, y = torch.randn(20, 5), torch.randint(5, (20,))
    assert_close(
        Categorical().loss(raw, y), torch.nn.functional.cross_entropy(raw, y, reduction="none")
    )


def test_negative_log_likelihood_of_log_softmax_is_the_loss():
    """M100."""
    raw, y = torch.randn(20, 5), torch.randint(5, (20,))
    torchs = torch.nn.NLLLoss(reduction="none")
    assert_close(Categorical().loss(raw, y), torchs(raw.log_softmax(-1), y))


def test_two_classes_are_bernoulli_on_the_difference():
    """M091."""
    raw, y = torch.randn(20, 2), torch.randint(2, (20,))
    difference = raw[:, 1:] - raw[:, :1]
    bernoulli = Bernoulli().loss(difference, y.double())
    assert_close(Categorical().loss(raw, y), bernoulli)
    assert_close(Categorical(reference=True).loss(difference, y), bernoulli)


@pytest.mark.parametrize("k", [2, 3, 10])
def test_equal_logits_cost_log_k(k):
    """M098."""
    loss = Categorical().loss(torch.full((1, k), 7.0), torch.tensor([k - 1]))
    assert_close(loss, torch.tensor([float(k)]).log())


def test_a_reference_class_has_logit_zero():
    likelihood, raw = Categorical(reference=True), torch.randn(4, 2)
    assert likelihood.outputs(TargetSpec(classes=3)) == 2
    assert_close(likelihood.logits(raw), torch.cat([torch.zeros(4, 1), raw], 1))
    y = torch.tensor([0, 1, 1, 2])
    shift, _ = likelihood.start(y, torch.ones(4))
    assert_close(likelihood.probs(shift), torch.tensor([0.25, 0.5, 0.25]))


def test_probabilities_are_those_of_the_samples():
    distribution = CategoricalDistribution(torch.randn(2, 3))
    draws = distribution.sample((20_000,), torch.Generator().manual_seed(0))
    frequency = torch.stack([(draws == k).double().mean(0) for k in range(3)], -1)
    assert (frequency - distribution.probs).abs().max() < 5 * 0.5 / 20_000**0.5


def test_entropy_counts_an_impossible_class_as_nothing():
    distribution = CategoricalDistribution(torch.tensor([[0.0, 0.0, -torch.inf]]))
    assert_close(distribution.entropy, torch.tensor([2.0]).log())


def test_a_code_that_is_no_class_has_no_probability():
    distribution = CategoricalDistribution(torch.zeros(3, 2))
    assert_close(distribution.log_prob(torch.tensor([-1, 2, 5])), torch.full((3,), -torch.inf))


def test_a_class_without_rows_keeps_a_finite_logit():
    likelihood = Categorical()
    likelihood.outputs(TargetSpec(classes=3))
    shift, _ = likelihood.start(torch.tensor([0, 0, 2]), torch.ones(3))
    assert shift.isfinite().all()
    assert likelihood.probs(shift)[1] < 0.2


@pytest.mark.parametrize("member", ["mean", "variance"])
def test_classes_have_no_moments(member):
    with pytest.raises(TypeError, match="CategoricalDistribution defines no"):
        getattr(CategoricalDistribution(torch.zeros(1, 2)), member)


@pytest.mark.parametrize("method", ["cdf", "crps", "icdf"])
def test_classes_have_no_order(method):
    with pytest.raises(TypeError, match=r"CategoricalDistribution (defines|has) no"):
        getattr(CategoricalDistribution(torch.zeros(1, 2)), method)(torch.zeros(1))


def test_class_counts_are_summed_weights():
    y, weight = torch.tensor([[0, 1], [2, 1], [2, 2]]), torch.tensor([1.0, 2.0, 4.0])
    assert_close(class_counts(y, weight), torch.tensor([[1.0, 0.0, 6.0], [0.0, 3.0, 4.0]]))
