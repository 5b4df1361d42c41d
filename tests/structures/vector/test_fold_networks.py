import numpy as np
import pandas as pd
import torch
from scipy import stats
from torch.testing import assert_close

from ansatz import Regressor
from ansatz.fitting.out_of_fold import choose_folds
from ansatz.likelihoods import Normal
from ansatz.structures.vector.fold_networks import FoldNetworks, normal_scores

REALS = np.random.default_rng(0).normal(size=200)


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
