import numpy as np
import statsmodels.api as sm
from scipy import stats
from torch.testing import assert_close

from ansatz import Regressor
from ansatz.fitting.out_of_fold import choose_folds
from ansatz.likelihoods import Normal, Poisson
from ansatz.structures.vector.likelihood_scores import linear_scores

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


def test_judged_rows_do_not_teach():
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
