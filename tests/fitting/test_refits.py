import numpy as np
import torch

from ansatz import Classifier, Regressor
from ansatz.fitting.refits import fresh, out_of_fold


def test_every_row_is_left_out_once_and_its_model_did_not_see_it():
    x = np.arange(30.0).reshape(-1, 1)
    y = np.sin(x[:, 0])
    y[7] = 1e6  # a row that shows wherever it was learned from
    model = Regressor(network="linear").fit(x, y)
    parts = out_of_fold(model, model.read(x, y))
    outside = torch.cat([part.outside for part in parts])
    assert sorted(outside.tolist()) == list(range(30))
    (judge,) = [part for part in parts if 7 in part.outside]
    others = [part for part in parts if 7 not in part.outside]
    assert judge.raw.abs().max() < 10 < min(float(part.raw.abs().max()) for part in others)


def test_a_fresh_copy_has_read_the_rows_but_learned_nothing():
    model = Classifier(network="linear").fit(np.arange(6.0).reshape(-1, 1), list("abcabc"))
    copy = fresh(model)
    assert copy.classes_.tolist() == ["a", "b", "c"] and not hasattr(copy, "model_")


def test_groups_stay_together():
    x = np.arange(20.0).reshape(-1, 1)
    model = Regressor(network="linear").fit(x, x[:, 0])
    job = model.read(x, x[:, 0])._replace(group=np.repeat(np.arange(5), 4))
    for part in out_of_fold(model, job):
        assert not set((part.outside // 4).tolist()) & set((part.inside // 4).tolist())
