import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import torch
from scipy import stats
from torch.testing import assert_close

from ansatz import Regressor
from ansatz.fitting.candidates import candidates
from ansatz.fitting.choice import (
    MOST_ROWS,
    Choice,
    LawScore,
    _decide,
    _sample,
    _standard_error,
    choose_law,
    hedge,
)
from ansatz.structures.vector.fold_networks import FoldNetworks, normal_scores
from ansatz.fitting.out_of_fold import choose_folds, linear_scores, log_scores
from ansatz.likelihoods import Gamma, Normal, Poisson, create

rng = np.random.default_rng(0)
COUNTS = rng.poisson(3.0, size=200)
REALS = rng.normal(size=200)
SURVIVAL = ["exponential", "weibull", "log_normal", "gamma"]
INFLATED = ["zero_inflated_poisson", "hurdle_poisson", "zero_inflated_negative_binomial"]


def job_of(x, y, seed=0, **parts):
    model = Regressor(random_state=seed)
    return model, model.read(x, y)._replace(**parts)


def _with(laws, x, y, seed=0):
    model, job = job_of(x, y, seed)
    return model, laws, job


# Candidates.


@pytest.mark.parametrize(
    "y, laws",
    [
        (REALS, ["normal", "laplace", "student_t"]),
        (REALS**2, ["normal", "gamma", "log_normal", "weibull", "laplace", "student_t"]),
        (np.append(REALS**2, 0), ["tweedie", "normal"]),
        (1 / (1 + np.exp(-REALS)), ["beta", "normal"]),
        (np.append(1 / (1 + np.exp(-REALS)), 1), ["zero_one_inflated_beta"]),
        (COUNTS, ["poisson", "negative_binomial", "normal"]),
        (COUNTS * 10 + 1, ["poisson", "negative_binomial", "normal", "gamma", "log_normal"]),
        (COUNTS - 5, ["normal", "laplace", "student_t"]),
        (COUNTS % 2, ["bernoulli"]),
        (COUNTS % 2 + 1, ["bernoulli"]),
        (COUNTS % 2 == 0, ["bernoulli"]),
        (np.full(9, 2.5), ["normal"]),
        (np.array(["a", "b", "a"]), ["bernoulli"]),
        (pd.Series(["a", "b", "c"]), ["categorical"]),
    ],
)
def test_the_support_of_the_values_proposes_the_laws(y, laws):
    assert candidates(y) == laws


def test_a_whole_number_is_a_count_in_every_type():
    assert candidates(COUNTS.astype(float)) == candidates(COUNTS.astype(np.int16))
    assert candidates(pd.Series(COUNTS, dtype="Int64")) == candidates(COUNTS)


def test_zeros_beyond_those_of_a_poisson_law_propose_inflated_ones():
    assert not set(INFLATED) & set(candidates(COUNTS))
    inflated = np.where(np.arange(200) % 3 == 0, 0, COUNTS)
    assert candidates(inflated) == ["poisson", "negative_binomial", *INFLATED, "normal"]


def test_whole_amounts_beside_many_zeros_may_be_claims():
    claims = np.where(np.arange(200) % 3 == 0, 100 * COUNTS, 0)
    assert candidates(claims)[-2:] == ["normal", "tweedie"]


def test_an_exposure_asks_for_a_log_link():
    assert candidates(COUNTS, exposure=True) == ["poisson", "negative_binomial"]
    assert candidates(REALS**2, exposure=True) == ["gamma", "log_normal", "weibull"]
    assert candidates(REALS, exposure=True) == candidates(REALS)


def test_censored_times_have_laws_of_their_own():
    assert candidates(REALS**2, censored=True) == SURVIVAL


def test_every_candidate_accepts_the_values_that_proposed_it():
    for y in (REALS, REALS**2, np.append(REALS**2, 0), stats.norm.cdf(REALS), COUNTS, COUNTS + 1):
        for law in candidates(y):
            create(law).check(torch.tensor(np.asarray(y, dtype=float)))


# Log scores.


def test_the_score_of_a_whole_outcome_is_the_probability_of_its_step():
    mean, y = torch.linspace(-3, 3, 7), torch.arange(-3.0, 4.0).flip(0)
    found = log_scores(Normal(dispersion=2.0), mean.unsqueeze(1), y, step=1.0)
    exact = stats.norm(mean.numpy(), 2.0)
    expected = np.log(exact.cdf(y.numpy() + 0.5) - exact.cdf(y.numpy() - 0.5))
    assert_close(found, torch.from_numpy(expected))


def test_steps_of_a_positive_law_add_up_to_one():
    law, y = Gamma(dispersion=0.5), torch.arange(400.0)
    scores = log_scores(law, torch.full((400, 1), 2.0), y, step=1.0)
    assert_close(scores.exp().sum(), torch.tensor(1.0))


def test_without_a_step_the_score_is_the_log_density_and_a_count_needs_none():
    raw, y = torch.randn(5, 1), torch.arange(5.0)
    expected = torch.from_numpy(stats.poisson(raw[:, 0].exp().numpy()).logpmf(y.numpy()))
    assert_close(log_scores(Poisson(), raw, y), expected)
    assert_close(log_scores(Poisson(), raw, y, step=1.0), expected)


def test_several_targets_of_a_row_have_one_score():
    raw, y = torch.randn(5, 3, 2), torch.randn(5, 3)
    law = Normal()
    assert_close(log_scores(law, raw, y), -law.loss(raw, y).mean(1))


def test_linear_scores_are_those_of_statsmodels_with_its_offset():
    x, exposure = rng.normal(size=(80, 2)), rng.uniform(0.5, 3, size=80)
    y = rng.poisson(np.exp(1 + x[:, 0]) * exposure).astype(float)
    model = Regressor()
    job = model.read(x, y, None, np.log(exposure))
    folds = choose_folds(job, 4, seed=0)
    found = linear_scores(Poisson(), job, folds).numpy()
    for learn, judged in folds:
        glm = sm.GLM(
            y[learn], sm.add_constant(x[learn]), sm.families.Poisson(), exposure=exposure[learn]
        ).fit()
        mean = glm.predict(sm.add_constant(x[judged]), exposure=exposure[judged])
        np.testing.assert_allclose(found[judged], stats.poisson(mean).logpmf(y[judged]), rtol=1e-6)


# Folds.


def test_every_row_is_judged_once_and_copies_by_networks_that_saw_none():
    x = np.repeat(np.arange(20.0), 2)[:, None]
    _, job = job_of(x, x[:, 0])
    folds = choose_folds(job, 3, seed=0)
    assert sorted(np.concatenate([judged for _, judged in folds])) == list(range(40))
    for learn, judged in folds:
        assert not set(x[learn, 0]) & set(x[judged, 0])


def test_a_group_is_judged_as_a_whole():
    group = np.repeat(np.arange(10), 4)
    _, job = job_of(rng.normal(size=(40, 1)), rng.normal(size=40), group=group)
    for learn, judged in choose_folds(job, 3, seed=0):
        assert not set(group[learn]) & set(group[judged])


def test_the_past_judges_the_future():
    time = rng.permutation(40)
    _, job = job_of(rng.normal(size=(40, 1)), rng.normal(size=40), time=time)
    folds = choose_folds(job, 3, seed=0)
    assert [len(learn) for learn, _ in folds] == [10, 20, 30]
    assert all(time[learn].max() < time[judged].min() for learn, judged in folds)


def test_one_group_cannot_be_parted():
    model, job = job_of(rng.normal(size=(40, 1)), REALS[:40], group=np.zeros(40))
    assert choose_folds(job, 3, seed=0) == []
    choice = choose_law(model, ["normal", "laplace"], job)
    assert choice.law == "normal" and "too few rows or groups" in choice.explanation


def test_a_sample_takes_copies_together_and_the_seed_decides_it():
    x = np.repeat(rng.normal(size=1_500), 2)[:, None]
    _, job = job_of(x, x[:, 0])
    once, again, other = _sample(job, 0), _sample(job, 0), _sample(job, 1)
    assert len(once.y) == MOST_ROWS
    assert torch.equal(once.y, again.y) and not torch.equal(once.y, other.y)
    assert (once.y.unique(return_counts=True)[1] == 2).all()


# The rule.


def test_a_standard_error_counts_a_weight_as_copies_and_a_cluster_as_one():
    values, weight = rng.normal(size=12), rng.integers(1, 4, size=12).astype(float)
    copies = np.repeat(values, weight.astype(int))
    expected = copies.std(ddof=1) / np.sqrt(len(copies))
    assert _standard_error(values, weight, None) == pytest.approx(expected)
    cluster, one = np.repeat(np.arange(4), 3), np.ones(12)
    means = values.reshape(4, 3).mean(1)
    assert _standard_error(values, one, cluster) == pytest.approx(means.std(ddof=1) / 2)


def test_no_single_row_outweighs_the_others():
    good, bad = REALS - 1, REALS - 2
    bad[17] = -1e6
    hedged = hedge({"good": good, "bad": bad})
    assert np.array_equal(hedged["good"], good)
    assert hedged["bad"][17] == pytest.approx(good[17] - np.log(200))
    assert np.array_equal(np.delete(hedged["bad"], 17), np.delete(bad, 17))


def test_the_simplest_law_within_one_standard_error_wins():
    table = [LawScore("normal", -1.02, 0.02, 0.03), LawScore("student_t", -1.0, 0.0, 0.0)]
    law, why = _decide(table)
    assert law == "normal"
    assert "simplest within one standard error" in why and "student_t, 0.02 +- 0.03 better" in why


def test_beyond_one_standard_error_the_best_law_wins():
    table = [LawScore("normal", -1.02, 0.02, 0.01), LawScore("student_t", -1.0, 0.0, 0.0)]
    assert _decide(table) == (
        "student_t",
        "likelihood student_t: best out-of-fold log score given x, -1 "
        "(next: normal, 0.02 +- 0.01 worse).",
    )


def test_a_choice_prints_its_table_and_gives_it_as_json():
    table = (LawScore("normal", -1.02, 0.02, 0.01), LawScore("student_t", -1.0, 0.0, 0.0))
    choice = Choice("student_t", table, "", ())
    assert str(choice).splitlines()[1].split() == ["student_t", "-1.0000"]
    assert choice.to_dicts()[0] == {"law": "normal", "score": -1.02, "worse": 0.02, "error": 0.01}


# The choice.


def test_variation_of_x_is_no_dispersion():
    """Counts far over-dispersed as they stand, and Poisson given x."""
    draw = np.random.default_rng(4)
    x = draw.uniform(-2, 2, size=(700, 1))
    y = draw.poisson(np.exp(1.5 + np.sin(2 * x[:, 0]))).astype(float)
    assert y.var() > 2.5 * y.mean()
    assert choose_law(*_with(["poisson", "negative_binomial"], x, y)).law == "poisson"


def test_dispersion_given_x_is_found():
    draw = np.random.default_rng(4)
    x = draw.uniform(-2, 2, size=(700, 1))
    mean = np.exp(1.5 + np.sin(2 * x[:, 0]))
    y = draw.negative_binomial(1.5, 1.5 / (1.5 + mean)).astype(float)
    assert choose_law(*_with(["poisson", "negative_binomial"], x, y)).law == "negative_binomial"


def test_counts_that_vary_less_than_poisson_counts_are_left_to_the_normal_law():
    draw = np.random.default_rng(4)
    x = draw.normal(size=(300, 2))
    y = np.round(30 + 4 * x[:, 0] + draw.normal(size=300))
    choice = choose_law(*_with(["poisson", "normal"], x, y))
    assert choice.law == "normal" and choice.table[0].worse > 0.5


def test_few_rows_are_compared_by_linear_models():
    draw = np.random.default_rng(2)
    x = draw.normal(size=(80, 2))
    y = draw.gamma(2, np.exp(1 + x[:, 0]))
    model, laws, job = _with(["normal", "gamma"], x, y)
    choice = choose_law(model, laws, job)
    assert choice.law == "gamma"
    folds = choose_folds(job, 5, seed=0)
    expected = linear_scores(create("gamma", dispersion="constant"), job, folds).mean()
    assert choice.table[1].score == pytest.approx(float(expected))


def test_a_weight_of_two_is_the_row_twice():
    x, y, model = rng.normal(size=(45, 1)), COUNTS[:45].astype(float), Regressor()
    weighted = choose_law(model, ["poisson", "normal"], model.read(x, y, np.full(45, 2.0)))
    copies = model.read(np.tile(x, (2, 1)), np.tile(y, 2))
    repeated = choose_law(model, ["poisson", "normal"], copies)
    for one, other in zip(weighted.table, repeated.table, strict=True):
        np.testing.assert_allclose(one[1:], other[1:], rtol=1e-6, atol=1e-12)


def test_a_candidate_that_fails_is_told_and_left_out():
    model, laws, job = _with(["normal", "gamma"], rng.normal(size=(60, 1)), REALS[:60])
    choice = choose_law(model, laws, job)
    assert choice.law == "normal" and [row.law for row in choice.table] == ["normal"]
    assert "likelihood gamma was not compared:" in choice.notes[0]


def test_where_all_candidates_fail_the_first_is_taken():
    model, laws, job = _with(["gamma", "weibull"], rng.normal(size=(60, 1)), REALS[:60])
    choice = choose_law(model, laws, job)
    assert choice.law == "gamma" and len(choice.notes) == 2


def test_the_seed_decides_and_the_users_random_state_stays():
    x, y = rng.normal(size=(150, 3)), COUNTS[:150].astype(float)
    before = torch.get_rng_state()
    one, two = (choose_law(*_with(["poisson", "normal"], x, y)) for _ in range(2))
    other = choose_law(*_with(["poisson", "normal"], x, y, seed=1))
    assert one == two and one.table != other.table
    assert torch.equal(before, torch.get_rng_state())


def test_a_single_candidate_needs_no_comparison():
    model, _, job = _with([], REALS[:30, None], REALS[:30])
    assert choose_law(model, ["tweedie"], job).law == "tweedie"


def test_judged_rows_do_not_teach():
    """Outcomes of the judged rows may change: only their own scores do."""
    x, y = rng.normal(size=(120, 2)), REALS[:120].copy()
    _, job = job_of(x, y)
    (learn, judged), *_ = folds = choose_folds(job, 3, seed=0)
    only = [(learn, judged)]
    _, moved = job_of(x, np.where(np.isin(np.arange(120), judged[:5]), y + 0.1, y))
    first, second = (
        linear_scores(Normal(dispersion="constant"), part, only) for part in (job, moved)
    )
    assert_close(first[judged[5:]], second[judged[5:]])
    assert len(folds) == 3


def test_normal_scores_keep_the_order_and_nothing_else():
    y = torch.from_numpy(REALS)
    assert_close(normal_scores(y), normal_scores((3 * y).exp()))
    expected = torch.from_numpy(stats.norm.ppf((stats.rankdata(REALS) - 0.5) / 200))
    assert_close(normal_scores(y), expected)
    times = torch.tensor([[5.0, 5.0], [-torch.inf, 3.0], [7.0, torch.inf]])
    assert normal_scores(times).argsort().tolist() == [1, 0, 2]


def test_text_and_missing_values_in_x_are_read_as_a_fit_reads_them():
    frame = pd.DataFrame(
        {"a": np.where(np.arange(150) % 7, REALS[:150], np.nan), "b": ["u", "v"] * 75}
    )
    y = np.where(frame["b"] == "u", 1.0, 5.0) + 0.1 * REALS[50:]
    model = Regressor()
    job = model.read(frame, y)
    scores = FoldNetworks(job, choose_folds(job, 3, seed=0), seed=0).scores(
        Normal(dispersion="constant")
    )
    constant = stats.norm(y.mean(), y.std()).logpdf(y).mean()
    assert float(scores.mean()) > constant + 0.5
