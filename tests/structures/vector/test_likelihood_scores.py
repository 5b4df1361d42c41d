import numpy as np
import pandas as pd
import statsmodels.api as sm
import torch
from scipy import stats
from torch.testing import assert_close

from ansatz import Regressor
from ansatz.fitting.out_of_fold import choose_folds
from ansatz.likelihoods import Normal, Poisson
from ansatz.structures.vector.likelihood_scores import FoldNetworks, linear_scores, normal_scores

rng = np.random.default_rng(0)
REALS = rng.normal(size=200)


def job_of(x, y):
    return Regressor().read(x, y)


def test_linear_scores_are_those_of_statsmodels_with_its_offset():
    x, exposure = rng.normal(size=(80, 2)), rng.uniform(0.5, 3, size=80)
    y = rng.poisson(np.exp(1 + x[:, 0]) * exposure).astype(float)
    model = Regressor()
    job = model.read(x, y, None, np.log(exposure))
    folds = choose_folds(job, 4, seed=0)
    found = linear_scores(Poisson(), job, folds).numpy()
    for learn, evaluated in folds:
        glm = sm.GLM(
            y[learn], sm.add_constant(x[learn]), sm.families.Poisson(), exposure=exposure[learn]
        ).fit()
        mean = glm.predict(sm.add_constant(x[evaluated]), exposure=exposure[evaluated])
        np.testing.assert_allclose(
            found[evaluated], stats.poisson(mean).logpmf(y[evaluated]), rtol=1e-6
        )


def test_evaluated_rows_do_not_teach():
    """Outcomes of the evaluated rows may change: only their own scores do."""
    x, y = rng.normal(size=(120, 2)), REALS[:120].copy()
    job = job_of(x, y)
    (learn, evaluated), *_ = folds = choose_folds(job, 3, seed=0)
    only = [(learn, evaluated)]
    moved = job_of(x, np.where(np.isin(np.arange(120), evaluated[:5]), y + 0.1, y))
    first, second = (
        linear_scores(Normal(dispersion="constant"), part, only) for part in (job, moved)
    )
    assert_close(first[evaluated[5:]], second[evaluated[5:]])
    assert len(folds) == 3


NORMALS = np.random.default_rng(0).normal(size=200)


def test_normal_scores_keep_the_order_and_nothing_else():
    y = torch.from_numpy(NORMALS)
    assert_close(normal_scores(y), normal_scores((3 * y).exp()))
    expected = torch.from_numpy(stats.norm.ppf((stats.rankdata(NORMALS) - 0.5) / 200))
    assert_close(normal_scores(y), expected)
    times = torch.tensor([[5.0, 5.0], [-torch.inf, 3.0], [7.0, torch.inf]])
    assert normal_scores(times).argsort().tolist() == [1, 0, 2]


def test_text_and_missing_values_in_x_are_read_as_a_fit_reads_them():
    frame = pd.DataFrame(
        {"a": np.where(np.arange(150) % 7, NORMALS[:150], np.nan), "b": ["u", "v"] * 75}
    )
    y = np.where(frame["b"] == "u", 1.0, 5.0) + 0.1 * NORMALS[50:]
    model = Regressor()
    job = model.read(frame, y)
    scores = FoldNetworks(job, choose_folds(job, 3, seed=0), seed=0).scores(
        Normal(dispersion="constant")
    )
    constant = stats.norm(y.mean(), y.std()).logpdf(y).mean()
    assert float(scores.mean()) > constant + 0.5
