import numpy as np
import pytest
import torch

from ansatz import Regressor
from ansatz.fitting.choice import (
    MOST_ROWS,
    LikelihoodChoice,
    LikelihoodScore,
    _decide,
    _sample,
    choose_likelihood,
    hedge,
    standard_error,
)
from ansatz.fitting.out_of_fold import choose_folds
from ansatz.likelihoods import create
from ansatz.structures.vector.likelihood_scores import linear_scores

rng = np.random.default_rng(0)
COUNTS = rng.poisson(3.0, size=200)
REALS = rng.normal(size=200)
SURVIVAL = ["exponential", "weibull", "log_normal", "gamma"]
INFLATED = ["zero_inflated_poisson", "hurdle_poisson", "zero_inflated_negative_binomial"]


def job_of(x, y, seed=0, **parts):
    model = Regressor(random_state=seed)
    return model.task(x), model.read(x, y)._replace(**parts)


def _with(candidates, x, y, seed=0):
    task, job = job_of(x, y, seed)
    return task, candidates, job


# Log scores.


def test_one_group_cannot_be_parted():
    task, job = job_of(rng.normal(size=(40, 1)), REALS[:40], group=np.zeros(40))
    assert choose_folds(job, 3, seed=0) == []
    choice = choose_likelihood(task, ["normal", "laplace"], job)
    assert choice.likelihood == "normal" and "too few rows or groups" in choice.explanation


def test_a_sample_takes_duplicates_together_and_the_seed_decides_it():
    x = np.repeat(rng.normal(size=1_500), 2)[:, None]
    _, job = job_of(x, x[:, 0])
    once, again, other = _sample(job, 0), _sample(job, 0), _sample(job, 1)
    assert len(once.y) == MOST_ROWS
    assert torch.equal(once.y, again.y) and not torch.equal(once.y, other.y)
    assert (once.y.unique(return_counts=True)[1] == 2).all()


# The rule.


def test_astandard_error_counts_a_weight_as_copies_and_a_cluster_as_one():
    values, weight = rng.normal(size=12), rng.integers(1, 4, size=12).astype(float)
    copies = np.repeat(values, weight.astype(int))
    expected = copies.std(ddof=1) / np.sqrt(len(copies))
    assert standard_error(values, weight, None) == pytest.approx(expected)
    cluster, one = np.repeat(np.arange(4), 3), np.ones(12)
    means = values.reshape(4, 3).mean(1)
    assert standard_error(values, one, cluster) == pytest.approx(means.std(ddof=1) / 2)


def test_no_single_row_outweighs_the_others():
    good, bad = REALS - 1, REALS - 2
    bad[17] = -1e6
    hedged = hedge({"good": good, "bad": bad})
    assert np.array_equal(hedged["good"], good)
    assert hedged["bad"][17] == pytest.approx(good[17] - np.log(200))
    assert np.array_equal(np.delete(hedged["bad"], 17), np.delete(bad, 17))


def test_the_simplest_likelihood_within_onestandard_error_wins():
    table = [
        LikelihoodScore("normal", -1.02, 0.02, 0.03),
        LikelihoodScore("student_t", -1.0, 0.0, 0.0),
    ]
    likelihood, why = _decide(table)
    assert likelihood == "normal"
    assert "simplest within one standard error" in why and "student_t, 0.02 +- 0.03 better" in why


def test_beyond_onestandard_error_the_best_likelihood_wins():
    table = [
        LikelihoodScore("normal", -1.02, 0.02, 0.01),
        LikelihoodScore("student_t", -1.0, 0.0, 0.0),
    ]
    assert _decide(table) == (
        "student_t",
        "likelihood student_t: best out-of-fold log score given x, -1 "
        "(next: normal, 0.02 +- 0.01 worse).",
    )


def test_a_choice_prints_its_table_and_gives_it_as_json():
    table = (
        LikelihoodScore("normal", -1.02, 0.02, 0.01),
        LikelihoodScore("student_t", -1.0, 0.0, 0.0),
    )
    choice = LikelihoodChoice("student_t", table, "", ())
    assert str(choice).splitlines()[1].split() == ["student_t", "-1.0000"]
    assert choice.to_dicts()[0] == {
        "likelihood": "normal",
        "score": -1.02,
        "worse": 0.02,
        "error": 0.01,
        "models": "",
    }


# The choice.


def test_variation_of_x_is_no_dispersion():
    """Counts far over-dispersed as they stand, and Poisson given x."""
    draw = np.random.default_rng(4)
    x = draw.uniform(-2, 2, size=(700, 1))
    y = draw.poisson(np.exp(1.5 + np.sin(2 * x[:, 0]))).astype(float)
    assert y.var() > 2.5 * y.mean()
    assert choose_likelihood(*_with(["poisson", "negative_binomial"], x, y)).likelihood == "poisson"


def test_dispersion_given_x_is_found():
    draw = np.random.default_rng(4)
    x = draw.uniform(-2, 2, size=(700, 1))
    mean = np.exp(1.5 + np.sin(2 * x[:, 0]))
    y = draw.negative_binomial(1.5, 1.5 / (1.5 + mean)).astype(float)
    assert (
        choose_likelihood(*_with(["poisson", "negative_binomial"], x, y)).likelihood
        == "negative_binomial"
    )


def test_counts_that_vary_less_than_poisson_counts_are_left_to_the_normal_likelihood():
    draw = np.random.default_rng(4)
    x = draw.normal(size=(300, 2))
    y = np.round(30 + 4 * x[:, 0] + draw.normal(size=300))
    choice = choose_likelihood(*_with(["poisson", "normal"], x, y))
    assert choice.likelihood == "normal" and choice.table[0].worse > 0.5


def test_few_rows_are_compared_by_linear_models():
    draw = np.random.default_rng(2)
    x = draw.normal(size=(80, 2))
    y = draw.gamma(2, np.exp(1 + x[:, 0]))
    task, candidates, job = _with(["normal", "gamma"], x, y)
    choice = choose_likelihood(task, candidates, job)
    assert choice.likelihood == "gamma"
    folds = choose_folds(job, 5, seed=0)
    expected = linear_scores(create("gamma", dispersion="constant"), job, folds).mean()
    assert choice.table[1].score == pytest.approx(float(expected))


def test_a_weight_of_two_is_the_row_twice():
    x, y, model = rng.normal(size=(45, 1)), COUNTS[:45].astype(float), Regressor()
    task = model.task(x)
    weighted = choose_likelihood(task, ["poisson", "normal"], model.read(x, y, np.full(45, 2.0)))
    copies = model.read(np.tile(x, (2, 1)), np.tile(y, 2))
    repeated = choose_likelihood(task, ["poisson", "normal"], copies)
    for one, other in zip(weighted.table, repeated.table, strict=True):
        assert one.models == other.models
        np.testing.assert_allclose(one[1:4], other[1:4], rtol=1e-6, atol=1e-12)


def test_a_candidate_that_fails_is_reported_and_left_out():
    task, candidates, job = _with(["normal", "gamma"], rng.normal(size=(60, 1)), REALS[:60])
    choice = choose_likelihood(task, candidates, job)
    assert choice.likelihood == "normal" and [row.likelihood for row in choice.table] == ["normal"]
    assert "likelihood gamma was not compared:" in choice.notes[0]


def test_the_table_names_the_models_that_scored():
    x, y = rng.normal(size=(130, 1)), REALS[:130]
    for network, models in (("linear", "linear models"), ("mlp", "small networks")):
        task, candidates, job = _with(["normal", "laplace"], x, y)
        choice = choose_likelihood(task.change(network=network), candidates, job)
        assert {row.models for row in choice.table} == {models}


def test_where_all_candidates_fail_the_first_is_taken():
    task, candidates, job = _with(["gamma", "weibull"], rng.normal(size=(60, 1)), REALS[:60])
    choice = choose_likelihood(task, candidates, job)
    assert choice.likelihood == "gamma" and len(choice.notes) == 2


def test_the_seed_decides_and_the_users_random_state_stays():
    x, y = rng.normal(size=(150, 3)), COUNTS[:150].astype(float)
    before = torch.get_rng_state()
    one, two = (choose_likelihood(*_with(["poisson", "normal"], x, y)) for _ in range(2))
    other = choose_likelihood(*_with(["poisson", "normal"], x, y, seed=1))
    assert one == two and one.table != other.table
    assert torch.equal(before, torch.get_rng_state())


def test_a_single_candidate_needs_no_comparison():
    task, _, job = _with([], REALS[:30, None], REALS[:30])
    assert choose_likelihood(task, ["tweedie"], job).likelihood == "tweedie"
