import math

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn import metrics as sklearn
from torch.testing import assert_close

from ansatz.likelihoods import (
    BernoulliDistribution,
    CategoricalDistribution,
    NormalDistribution,
    StudentTDistribution,
)
from ansatz.metrics import (
    accuracy,
    auc,
    brier,
    compute_metrics,
    crps,
    ece,
    log_score,
    mae,
    names,
    r2,
    registry,
    rmse,
    row_mean,
    sample_crps,
    standard_error,
)

N = 60


def regression(targets=()):
    y = torch.randn(N, *targets) * 3
    return y, y + torch.randn(N, *targets), torch.randint(0, 4, (N,)).double()


def classes(k):
    y = torch.randint(k, (N,))
    logits = torch.randn(N, k) + torch.nn.functional.one_hot(y, k)
    # rounding makes ties
    return y, (10 * logits).round().div(10).softmax(-1), torch.randint(0, 4, (N,)).double()


def repeat(weight, *tensors):
    return [t.repeat_interleave(weight.long(), 0) for t in tensors]


ERRORS = {
    "rmse": (rmse, sklearn.root_mean_squared_error),
    "mae": (mae, sklearn.mean_absolute_error),
    "r2": (r2, sklearn.r2_score),
}


@pytest.mark.parametrize("targets", [(), (3,)], ids=["one", "three"])
@pytest.mark.parametrize("ours, theirs", ERRORS.values(), ids=ERRORS)
def test_errors_are_sklearns_with_and_without_weights(ours, theirs, targets):
    y, f, weight = regression(targets)
    assert ours(y, f).item() == pytest.approx(theirs(y.numpy(), f.numpy()))
    exact = theirs(y.numpy(), f.numpy(), sample_weight=weight.numpy())
    assert ours(y, f, weight).item() == pytest.approx(exact)


def test_r2_of_a_constant_is_undefined():
    assert r2(torch.ones(3), torch.zeros(3)).isnan()


@pytest.mark.parametrize("k", [2, 4])
def test_accuracy_brier_and_auc_are_sklearns(k):
    y, probs, weight = classes(k)
    for w in (None, weight):
        extra = {} if w is None else {"sample_weight": w.numpy()}
        code = probs.argmax(-1)
        assert accuracy(y, code, w).item() == pytest.approx(
            sklearn.accuracy_score(y, code, **extra)
        )
        score = sklearn.brier_score_loss(
            y, probs.numpy(), scale_by_half=False, labels=range(k), **extra
        )
        assert brier(y, probs, w).item() == pytest.approx(score)
        one = probs[:, 1] if k == 2 else probs
        area = sklearn.roc_auc_score(y, one.numpy(), multi_class="ovr", **extra)
        assert auc(y, one, w).item() == pytest.approx(area)


def test_the_binary_brier_score_is_sklearns_and_half_the_sum_over_classes():
    y, probs, weight = classes(2)
    exact = sklearn.brier_score_loss(y, probs[:, 1].numpy(), sample_weight=weight.numpy())
    assert brier(y, probs[:, 1], weight).item() == pytest.approx(exact)
    assert brier(y, probs, weight).item() == pytest.approx(2 * exact)


def test_auc_is_the_probability_of_the_right_order_and_ties_count_half():
    y, s = torch.tensor([1, 1, 0, 0, 0]), torch.tensor([0.5, 0.2, 0.5, 0.1, 0.2])
    pairs = [(a > b) + 0.5 * (a == b) for a in s[y == 1] for b in s[y == 0]]
    assert auc(y, s).item() == pytest.approx(float(sum(pairs)) / len(pairs))


def test_auc_of_one_class_is_undefined_and_an_absent_class_is_left_out():
    assert auc(torch.ones(3), torch.rand(3)).isnan()
    assert auc(torch.full((3,), 2), torch.rand(3, 3)).isnan()
    y, probs, _ = classes(3)
    wider = torch.cat([probs, torch.rand(N, 1)], 1)
    assert_close(auc(y, wider), auc(y, probs))


WEIGHTED = {
    "rmse": lambda w, *t: rmse(*t[:2], w),
    "r2": lambda w, *t: r2(*t[:2], w),
    "standard_error": lambda w, *t: standard_error(t[0], w),
    "brier": lambda w, *t: brier(*t[2:4], w),
    "ece": lambda w, *t: ece(*t[2:4], w),
    "ece, binary": lambda w, *t: ece((t[2] == 0).double(), t[3][:, 0], w),
    "auc": lambda w, *t: auc(*t[2:4], w),
    "accuracy": lambda w, *t: accuracy(t[2], t[3].argmax(-1), w),
}


@pytest.mark.parametrize("metric", WEIGHTED.values(), ids=WEIGHTED)
def test_a_weight_is_a_repetition(metric):
    (y, f, _), (codes, probs, weight) = regression(), classes(4)
    repeated = repeat(weight, y, f, codes, probs)
    assert_close(metric(weight, y, f, codes, probs), metric(None, *repeated))


def test_a_row_of_weight_zero_is_absent_even_if_nan():
    y, f, weight = (
        torch.tensor([1.0, torch.nan]),
        torch.tensor([3.0, 0.0]),
        torch.tensor([1.0, 0.0]),
    )
    assert rmse(y, f, weight).item() == 2.0
    assert row_mean(y, weight).item() == 1.0


def test_the_standard_error_is_that_of_a_mean():
    values = torch.randn(N)
    assert standard_error(values).item() == pytest.approx(stats.sem(values.numpy()))
    assert standard_error(values[:1]).isnan()


def naive_ece(y, p, bins=15):
    """Bin by bin, with the bias by brute integration of the normal density."""
    order = np.argsort(p)
    total = 0.0
    for part in np.array_split(order, bins):
        rate, gap = y[part].mean(), y[part].mean() - p[part].mean()
        sd = math.sqrt(rate * (1 - rate) / len(part))
        z = np.linspace(-12, 12, 200_001)
        folded = abs(gap) if sd == 0 else np.trapezoid(np.abs(gap + sd * z) * stats.norm.pdf(z), z)
        total += len(part) / len(p) * (2 * abs(gap) - folded)
    return total


def test_ece_is_the_naive_formula_over_equal_count_bins():
    p = torch.rand(150).sort().values
    y = (torch.rand(150) < p**2).double()
    assert ece(y, p).item() == pytest.approx(naive_ece(y.numpy(), p.numpy()), abs=1e-8)


def test_ece_of_many_classes_looks_at_the_most_probable():
    y, probs, _ = classes(4)
    top, code = probs.max(-1)
    assert_close(ece(y, probs), ece((code == y).double(), top))


def test_ece_of_a_perfect_forecast_loses_its_share_of_the_bias():
    """For delta ~ N(0, s^2), E|delta| = s sqrt(2/pi) and E|N(delta, s^2)| is sqrt(2) times that."""
    generator = torch.Generator().manual_seed(0)
    debiased, plain = [], []
    for _ in range(200):
        p = torch.rand(300, generator=generator)
        y = (torch.rand(300, generator=generator) < p).double()
        debiased.append(ece(y, p).item())
        bins = p.argsort().tensor_split(15)
        plain.append(np.mean([abs((y[b] - p[b]).mean()) for b in bins]))
    assert np.mean(debiased) / np.mean(plain) == pytest.approx(2 - math.sqrt(2), abs=0.06)


def test_log_score_is_the_mean_log_density():
    y, f, weight = regression()
    distribution = NormalDistribution(f, torch.ones(N))
    exact = np.average(stats.norm(f, 1).logpdf(y), weights=weight)
    assert log_score(distribution, y, weight).item() == pytest.approx(exact)


def test_sample_crps_is_the_fair_one_of_scoringrules():
    scoringrules = pytest.importorskip("scoringrules")
    samples, y = torch.randn(20, N), torch.randn(N)
    theirs = scoringrules.crps_ensemble(y.numpy(), samples.T.numpy(), estimator="fair")
    assert_close(sample_crps(samples, y), torch.as_tensor(theirs))


def test_sample_crps_is_the_double_sum():
    samples, y = torch.randn(7, 3), torch.randn(3)
    pairs = (samples.unsqueeze(0) - samples.unsqueeze(1)).abs().sum((0, 1)) / (7 * 6)
    assert_close(sample_crps(samples, y), (samples - y).abs().mean(0) - pairs / 2)


def test_sample_crps_is_unbiased_for_two_draws():
    """Its mean over draws is the distribution's own score: 5 standard errors."""
    likelihood, y = NormalDistribution(torch.zeros(1), torch.ones(1)), torch.tensor([0.7])
    draws = torch.randn(2, 40_000)
    scores = sample_crps(draws, y.expand(40_000))
    assert (scores.mean() - likelihood.crps(y)).abs() < 5 * standard_error(scores)


@pytest.mark.parametrize("samples", [torch.zeros(1, 3), torch.zeros(5, 4)])
def test_samples_must_match_the_outcomes(samples):
    with pytest.raises(ValueError, match=r"samples \(M, \*y.shape\) with M >= 2"):
        sample_crps(samples, torch.zeros(3))


def test_evaluate_collects_what_applies_to_numbers():
    y, f, weight = regression()
    distribution = NormalDistribution(f, torch.full((N,), 2.0))
    found = compute_metrics(y, point=f, distribution=distribution, weight=weight)
    assert found == {
        "nll": -log_score(distribution, y, weight).item(),
        "crps": crps(distribution, y, weight).item(),
        "rmse": rmse(y, f, weight).item(),
        "mae": mae(y, f, weight).item(),
        "r2": r2(y, f, weight).item(),
    }
    assert set(compute_metrics(y, point=f)) == {"rmse", "mae", "r2"}
    assert set(compute_metrics(y, distribution=distribution)) == {"nll", "crps"}


def test_evaluate_collects_what_applies_to_classes():
    y, probs, weight = classes(4)
    found = compute_metrics(y, distribution=CategoricalDistribution(probs.log()), weight=weight)
    loss = sklearn.log_loss(y, probs.numpy(), sample_weight=weight.numpy(), labels=range(4))
    assert found["nll"] == pytest.approx(loss)
    assert found["accuracy"] == pytest.approx(accuracy(y, probs.argmax(-1), weight).item())
    assert found["brier"] == pytest.approx(brier(y, probs, weight).item())
    assert found["ece"] == pytest.approx(ece(y, probs, weight).item())
    assert found["auc"] == pytest.approx(auc(y, probs, weight).item())


def test_evaluate_ranks_by_logits_where_probabilities_have_saturated():
    y, logits = torch.tensor([0.0, 1.0]), torch.tensor([100.0, 200.0])
    found = compute_metrics(y, distribution=BernoulliDistribution(logits.float()))
    assert found["auc"] == 1.0


def test_evaluate_takes_several_binary_targets():
    y, logits = (torch.rand(N, 2) < 0.5).double(), torch.randn(N, 2)
    found = compute_metrics(y, distribution=BernoulliDistribution(logits))
    parts = [
        compute_metrics(y[:, k], distribution=BernoulliDistribution(logits[:, k])) for k in range(2)
    ]
    for name, value in found.items():
        assert value == pytest.approx((parts[0][name] + parts[1][name]) / 2)


def test_evaluate_gives_none_where_a_metric_is_undefined():
    distribution = StudentTDistribution(torch.zeros(2), torch.ones(2), torch.ones(2))  # Cauchy
    found = compute_metrics(torch.ones(2), point=torch.zeros(2), distribution=distribution)
    assert found["crps"] is None
    assert found["r2"] is None
    assert found["nll"] == pytest.approx(math.log(2 * math.pi))


def test_evaluate_of_predicted_codes_alone_is_accuracy():
    assert compute_metrics(torch.tensor([0, 1]), point=torch.tensor([0, 0])) == {"accuracy": 0.5}


@pytest.mark.parametrize("metric", [rmse, mae, r2, accuracy])
def test_a_column_against_a_vector_is_refused(metric):
    with pytest.raises(ValueError, match=r"predictions of the shape of y, \(3,\), got \(3, 1\)"):
        metric(torch.zeros(3), torch.zeros(3, 1))


@pytest.mark.parametrize("metric", [brier, ece, auc])
def test_one_column_of_probabilities_is_refused(metric):
    with pytest.raises(ValueError, match=r"one score per row, \(3,\), or K > 1.*got \(3, 1\)"):
        metric(torch.zeros(3), torch.zeros(3, 1))


def test_a_wrong_number_of_weights_is_refused():
    with pytest.raises(ValueError, match=r"one entry per row, \(3,\), got \(2,\)"):
        rmse(torch.zeros(3), torch.zeros(3), torch.ones(2))


def test_every_name_is_a_function_with_a_summary():
    for name in names():
        assert callable(registry.get(name))
        assert registry.describe(name).summary


def test_float32_predictions_are_averaged_in_double_precision():
    y = torch.full((1_000_000,), 0.1, dtype=torch.float32)
    assert mae(y, torch.zeros_like(y)).item() == pytest.approx(float(y[0]), rel=1e-12)
