import pytest
import torch
from torch import nn

from ansatz.inference.combination import Combination
from ansatz.likelihoods import (
    Bernoulli,
    Categorical,
    Cox,
    CrossEntropy,
    Dice,
    DiscreteHazard,
    Focal,
    Quantiles,
    Sum,
    VonMises,
)
from ansatz.likelihoods.averaged import merge
from ansatz.spec import TargetSpec

WEIGHTS = torch.tensor([0.3, 0.7], dtype=torch.float64)


def raws(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def mean(values):
    return (WEIGHTS.reshape(-1, *(1,) * (values.ndim - 1)) * values).sum(0)


def test_classes_have_the_mean_of_the_probabilities():
    raw = raws(2, 5, 1) * 4
    torch.testing.assert_close(
        torch.sigmoid(merge(Bernoulli(), raw, WEIGHTS)), mean(torch.sigmoid(raw))
    )
    raw = raws(2, 5, 3) * 4
    torch.testing.assert_close(
        torch.softmax(merge(Categorical(), raw, WEIGHTS), -1), mean(torch.softmax(raw, -1))
    )
    likelihood = Categorical(reference=True)
    torch.testing.assert_close(
        likelihood.probs(merge(likelihood, raw, WEIGHTS)), mean(likelihood.probs(raw))
    )


LOSSES = {
    "weighted": (lambda: CrossEntropy(class_weight=[1.0, 2.0, 5.0]), 3),
    "dice": (Dice, 3),
    "dice of two": (Dice, 1),
    "sum": (Sum, 3),
    "sum of two": (Sum, 1),
}


@pytest.mark.parametrize("make, P", LOSSES.values(), ids=LOSSES)
def test_losses_of_classes_have_the_mean_of_the_probabilities(make, P):
    likelihood, raw = make(), raws(2, 5, 4, 4, P) * 4
    likelihood.outputs(TargetSpec(classes=max(P, 2)))
    torch.testing.assert_close(
        likelihood.probs(merge(likelihood, raw, WEIGHTS)), mean(likelihood.probs(raw))
    )


def test_focal_lies_between_its_members():
    likelihood, raw = Focal(), raws(2, 50, 1) * 2
    each, found = likelihood.probs(raw), likelihood.probs(merge(likelihood, raw, WEIGHTS))
    assert bool((found >= each.amin(0)).all()) and bool((found <= each.amax(0)).all())


def test_members_have_class_weights_of_their_own_rows():
    target, candidates = TargetSpec(classes=3), []
    for counts in ([6, 3, 1], [2, 2, 6]):
        likelihood = CrossEntropy(class_weight="balanced")
        likelihood.outputs(target)
        likelihood.observe(torch.arange(3).repeat_interleave(torch.tensor(counts)), torch.ones(10))
        candidates.append(likelihood)
    both, raw = Combination(candidates, WEIGHTS), raws(2, 5, 3)
    expected = mean(
        torch.stack([likelihood.probs(r) for likelihood, r in zip(candidates, raw, strict=True)])
    )
    torch.testing.assert_close(both.likelihood.probs(both.serve(raw)), expected)


@pytest.mark.parametrize(
    "likelihood, P", [(Categorical(), 3), (Dice(), 1), (Sum(), 3), (Focal(), 1)]
)
def test_members_in_turn_are_members_at_once(likelihood, P):
    raw, weights = raws(4, 6, P) * 4, torch.tensor([0.2, 0.5, 0.0, 0.3])
    both = Combination([likelihood] * 4, weights, factor=1.3)
    found, expected = both.serve_in_turn(iter(raw)), both.serve(list(raw))
    torch.testing.assert_close(likelihood.probs(found), likelihood.probs(expected))


def test_probabilities_near_one_keep_their_other_tail():
    raw = torch.tensor([[[60.0]], [[80.0]]], dtype=torch.float64)
    merged = merge(Bernoulli(), raw, WEIGHTS)
    expected = mean(torch.exp(nn.functional.logsigmoid(-raw)))
    torch.testing.assert_close(torch.sigmoid(-merged), expected, rtol=1e-10, atol=0)


@pytest.mark.parametrize("causes", [1, 2])
def test_discrete_hazards_have_the_mean_of_the_curves(causes):
    likelihood = DiscreteHazard(intervals=6, causes=causes, measure="interval").double()
    time = torch.linspace(0.5, 10, 40, dtype=torch.float64)
    cause = torch.arange(40) % (causes + 1)
    y = torch.stack([time, cause.double(), torch.zeros_like(time)], 1)
    likelihood.observe(y, torch.ones(40, dtype=torch.float64))
    count = len(likelihood.cuts) * causes
    raw = raws(2, 5, count)
    merged = merge(likelihood, raw, WEIGHTS)
    torch.testing.assert_close(
        likelihood.distribution(merged).survival, mean(likelihood.distribution(raw).survival)
    )
    for k in range(1, causes + 1):
        torch.testing.assert_close(
            likelihood.incidence(merged, likelihood.cuts, k),
            mean(likelihood.incidence(raw, likelihood.cuts, k)),
        )


def test_quantiles_are_averaged():
    likelihood = Quantiles().double()
    raw = raws(2, 5, 5)
    torch.testing.assert_close(
        likelihood.quantiles(merge(likelihood, raw, WEIGHTS)), mean(likelihood.quantiles(raw))
    )


def test_directions_have_the_first_moment_of_the_mixture():
    likelihood = VonMises().double()
    raw = raws(2, 5, 2) * 3
    merged = likelihood.distribution(merge(likelihood, raw, WEIGHTS))
    members = likelihood.distribution(raw)
    moment = mean((1 - members.variance) * torch.exp(1j * members.mean))
    expected = (1 - merged.variance) * torch.exp(1j * merged.mean)
    torch.testing.assert_close(expected, moment, rtol=1e-8, atol=1e-10)


def test_log_risks_are_averaged():
    raw = raws(2, 5, 1)
    torch.testing.assert_close(merge(Cox(), raw, WEIGHTS), mean(raw))


def test_a_linear_member_speaks_of_all_classes():
    both = Combination([Categorical(), Categorical(reference=True)], WEIGHTS)
    network, linear = raws(4, 3), raws(4, 2)
    expected = mean(
        torch.stack([torch.softmax(network, -1), Categorical(reference=True).probs(linear)])
    )
    torch.testing.assert_close(torch.softmax(both.serve([network, linear]), -1), expected)
