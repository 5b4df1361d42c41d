"""Several networks on images, mixed."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

import ansatz
from ansatz import Classifier, Regressor
from ansatz.data.grids import Grids

SETTINGS = {"network": "linear_grid", "epochs": 2, "inference": "ensemble", "members": 3}


def digits():
    found = load_digits(n_class=3)
    return found.images[:60].astype(np.float32), found.target[:60]


@pytest.fixture(scope="module")
def ensemble():
    return Classifier(**SETTINGS).fit(*digits())


def test_members_differ_and_share_what_is_known_of_the_channels(ensemble):
    members = ensemble.model_.posterior.members
    assert len(members) == 3
    weights = [torch.cat([p.ravel() for p in m.trained.network.parameters()]) for m in members]
    assert not torch.allclose(weights[0], weights[1])
    assert len({str(m.encoder.state()) for m in members}) == 1


def test_probabilities_lie_among_those_of_the_members(ensemble):
    """A mixture is a weighted mean; recalibration is switched off to see it."""
    images, _ = digits()
    grids = Grids.of(images)
    each = np.stack(
        [part.raw.softmax(-1).numpy() for _, part in ensemble.model_.posterior.components(grids)]
    )
    mixed = ensemble.predict_dist(images, recalibrated=False).probs.numpy()
    assert (mixed >= each.min(0) - 1e-9).all() and (mixed <= each.max(0) + 1e-9).all()


def test_every_example_is_evaluated_by_members_that_left_it_out(ensemble):
    evaluated = ensemble.model_.out_of_fold
    rows = np.concatenate([fold.rows.numpy() for fold in evaluated.folds])
    assert sorted(rows) == list(range(60))


def test_a_saved_ensemble_predicts_the_same_bits(ensemble, tmp_path):
    images, _ = digits()
    again = ansatz.load(ensemble.save(tmp_path / "model"))
    assert (again.predict_proba(images) == ensemble.predict_proba(images)).all()


def test_one_seed_gives_one_ensemble(ensemble):
    images, labels = digits()
    again = Classifier(**SETTINGS).fit(images, labels)
    assert (again.predict_proba(images) == ensemble.predict_proba(images)).all()


def test_numbers_get_conformal_intervals_from_examples_left_out():
    images, labels = digits()
    y = labels + np.random.default_rng(0).normal(size=60)
    model = Regressor("normal", **SETTINGS).fit(images, y)
    lower, upper = model.interval(images, 0.9, method="conformal").T
    # Scores are of examples left out, so that at least the share asked for is held, but for chance.
    assert ((lower <= y) & (y <= upper)).mean() >= 0.9 - 3 * np.sqrt(0.09 / 60)
