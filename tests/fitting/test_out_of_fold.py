import numpy as np
import torch
from scipy import stats
from torch.testing import assert_close

from ansatz import Classifier, Regressor
from ansatz.fitting.fit_model import fit_model
from ansatz.fitting.job import take
from ansatz.fitting.out_of_fold import choose_folds, log_scores
from ansatz.fitting.refits import out_of_fold
from ansatz.likelihoods import Gamma, Normal, Poisson

rng = np.random.default_rng(0)


def job_of(x, y, **parts):
    return Regressor().read(x, y)._replace(**parts)


def test_the_score_of_a_whole_outcome_is_the_probability_of_its_step():
    mean, y = torch.linspace(-3, 3, 7), torch.arange(-3.0, 4.0).flip(0)
    found = log_scores(Normal(dispersion=2.0), mean.unsqueeze(1), y, step=1.0)
    exact = stats.norm(mean.numpy(), 2.0)
    expected = np.log(exact.cdf(y.numpy() + 0.5) - exact.cdf(y.numpy() - 0.5))
    assert_close(found, torch.from_numpy(expected))


def test_steps_of_a_positive_likelihood_add_up_to_one():
    likelihood, y = Gamma(dispersion=0.5), torch.arange(400.0)
    scores = log_scores(likelihood, torch.full((400, 1), 2.0), y, step=1.0)
    assert_close(scores.exp().sum(), torch.tensor(1.0))


def test_without_a_step_the_score_is_the_log_density_and_a_count_needs_none():
    raw, y = torch.randn(5, 1), torch.arange(5.0)
    expected = torch.from_numpy(stats.poisson(raw[:, 0].exp().numpy()).logpmf(y.numpy()))
    assert_close(log_scores(Poisson(), raw, y), expected)
    assert_close(log_scores(Poisson(), raw, y, step=1.0), expected)


def test_several_targets_of_a_row_have_one_score():
    raw, y = torch.randn(5, 3, 2), torch.randn(5, 3)
    likelihood = Normal()
    assert_close(log_scores(likelihood, raw, y), -likelihood.loss(raw, y).mean(1))


def test_every_row_is_evaluated_once_and_duplicates_by_networks_that_saw_none():
    x = np.repeat(np.arange(20.0), 2)[:, None]
    job = job_of(x, x[:, 0])
    folds = choose_folds(job, 3, seed=0)
    assert sorted(np.concatenate([evaluated for _, evaluated in folds])) == list(range(40))
    for learn, evaluated in folds:
        assert not set(x[learn, 0]) & set(x[evaluated, 0])


def test_a_group_is_evaluated_as_a_whole():
    group = np.repeat(np.arange(10), 4)
    job = job_of(rng.normal(size=(40, 1)), rng.normal(size=40), group=group)
    for learn, evaluated in choose_folds(job, 3, seed=0):
        assert not set(group[learn]) & set(group[evaluated])


def test_the_past_evaluates_the_future():
    time = rng.permutation(40)
    job = job_of(rng.normal(size=(40, 1)), rng.normal(size=40), time=time)
    folds = choose_folds(job, 3, seed=0)
    assert [len(learn) for learn, _ in folds] == [10, 20, 30]
    assert all(time[learn].max() < time[evaluated].min() for learn, evaluated in folds)


def test_every_row_is_left_out_once_and_its_model_did_not_see_it():
    x = np.arange(30.0).reshape(-1, 1)
    y = np.sin(x[:, 0])
    y[7] = 1e6  # a row that shows wherever it was learned from
    model = Regressor(network="linear").fit(x, y)
    parts = out_of_fold(model.model_, model.read(x, y))
    outside = torch.cat([part.outside for part in parts])
    assert sorted(outside.tolist()) == list(range(30))
    (evaluate,) = [part for part in parts if 7 in part.outside]
    others = [part for part in parts if 7 not in part.outside]
    assert evaluate.raw.abs().max() < 10 < min(float(part.raw.abs().max()) for part in others)


def test_a_refit_keeps_classes_that_it_has_not_seen():
    x, y = np.arange(9.0).reshape(-1, 1), np.array(list("abaababac"))
    model = Classifier(widths=(2,), epochs=1).fit(x, y)
    job = model.read(x, y)
    part = take(job, np.arange(8))
    again = fit_model(model.model_.task, part, finish=False)
    assert again.outcome.labels.tolist() == ["a", "b", "c"]
    assert again.predictive(part.rows).raw.shape == (8, 3)


def test_refits_are_silent(capfd):
    x = np.arange(40.0).reshape(-1, 1)
    model = Regressor(widths=(2,), epochs=1, verbose=2).fit(x, x[:, 0])
    assert capfd.readouterr() != ("", "")
    assert out_of_fold(model.model_, model.read(x, x[:, 0]))
    assert capfd.readouterr() == ("", "")


def test_groups_stay_together():
    x = np.arange(20.0).reshape(-1, 1)
    model = Regressor(network="linear").fit(x, x[:, 0])
    job = model.read(x, x[:, 0])._replace(group=np.repeat(np.arange(5), 4))
    for part in out_of_fold(model.model_, job):
        assert not set((part.outside // 4).tolist()) & set((part.inside // 4).tolist())
