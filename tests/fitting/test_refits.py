import numpy as np
import torch

from ansatz import Classifier, Regressor
from ansatz.fitting.fit_model import fit_model
from ansatz.fitting.job import take
from ansatz.fitting.refits import out_of_fold


def test_every_row_is_left_out_once_and_its_model_did_not_see_it():
    x = np.arange(30.0).reshape(-1, 1)
    y = np.sin(x[:, 0])
    y[7] = 1e6  # a row that shows wherever it was learned from
    model = Regressor(network="linear").fit(x, y)
    parts = out_of_fold(model.model_.task, model.read(x, y))
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
    model = Regressor(widths=(2,), epochs=1, verbose=2)
    out_of_fold(model.task(x), model.read(x, x[:, 0]))
    assert capfd.readouterr() == ("", "")


def test_groups_stay_together():
    x = np.arange(20.0).reshape(-1, 1)
    model = Regressor(network="linear").fit(x, x[:, 0])
    job = model.read(x, x[:, 0])._replace(group=np.repeat(np.arange(5), 4))
    for part in out_of_fold(model.model_.task, job):
        assert not set((part.outside // 4).tolist()) & set((part.inside // 4).tolist())
