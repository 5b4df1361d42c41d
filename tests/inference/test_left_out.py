"""Several networks that give a class to every cell, mixed cell by cell."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from torch.testing import assert_close

import ansatz
import ansatz.training.loop as training_loop
from ansatz import Segmenter
from ansatz.data import clean
from ansatz.data.grids import Grids
from ansatz.errors import UsageError
from ansatz.fitting.split import holdout_share
from ansatz.inference.left_out import draw_pixels
from ansatz.structures.grid import encoder as source

LINEAR = {"network": "linear_pixels", "epochs": 3, "batch_size": 4, "learning_rate": 0.05}
SETTINGS = {**LINEAR, "inference": "ensemble", "members": 3}


def discs(count=12, size=16, classes=2):
    """Discs (and a smaller one within, where there are three classes) in noise."""
    rng = np.random.default_rng(0)
    i, j = np.mgrid[:size, :size]
    centre, radius = rng.uniform(5, size - 5, (2, count, 1, 1)), rng.uniform(2, 5, (count, 1, 1))
    away = np.hypot(i - centre[0], j - centre[1]) / radius
    masks = (away < 1).astype(int) + (classes > 2) * (away < 0.5)
    return (masks + 0.3 * rng.normal(size=masks.shape)).astype(np.float32), masks


def half_hidden():
    images, masks = discs(classes=3)
    masks[:, :, 9:] = -1
    return images, masks


@pytest.fixture(scope="module")
def ensemble():
    """Three members of three classes; the right of every mask has no labels."""
    return Segmenter(**SETTINGS | {"epochs": 8}).fit(*half_hidden())


def member_probabilities(model, images):
    """Each member's, one example at a time as they are served, ``(S, N, H, W, K)``."""
    return np.stack(
        [
            np.concatenate([member.predictive(Grids.of(x[None])).raw.softmax(-1) for x in images])
            for member in model.model_.posterior.members
        ]
    )


def nll(probabilities, masks):
    known = masks >= 0
    return -np.log(probabilities[known, masks[known]]).mean()


def test_probabilities_are_the_mean_of_the_members_in_every_cell(ensemble):
    images, _ = half_hidden()
    each = member_probabilities(ensemble, images)
    assert np.abs(each[0] - each[1]).max() > 1e-3
    mixed = ensemble._without_recalibration().predict_proba(images)
    assert_close(mixed, each.mean(0), rtol=1e-12, atol=0)
    served = log_softmax(np.log(mixed) / ensemble.recalibration_.value, -1)
    assert_close(ensemble.predict_proba(images), np.exp(served), rtol=1e-10, atol=0)


def test_the_mixture_scores_no_worse_than_its_members_on_average(ensemble):
    """Jensen: -log of a mean is at most the mean of -log."""
    images, masks = half_hidden()
    members = [nll(each, masks) for each in member_probabilities(ensemble, images)]
    mixed = ensemble._without_recalibration().evaluate(images, masks)["nll"]
    assert mixed < np.mean(members)


def test_the_temperature_is_that_of_labelled_cells_of_examples_left_out(ensemble):
    """The naive minimum over all such cells; those without a label are not among them."""
    images, masks = half_hidden()
    who = np.full(len(images), -1)
    for fold in ensemble.model_.out_of_fold.folds:  # every example is left out by one member
        (member,) = ensemble.model_.out_of_fold.who[fold.rows].unique().tolist()
        who[np.unique(fold.rows.numpy() // (16 * 9))] = member
    each = member_probabilities(ensemble, images)
    left = np.stack([each[k, n] for n, k in enumerate(who)])
    assert (who >= 0).all()

    def score(log_factor):
        return nll(np.exp(log_softmax(np.log(left) / np.exp(log_factor), -1)), masks)

    best = minimize_scalar(score, bounds=(-2, 2), method="bounded", options={"xatol": 1e-8})
    found = ensemble.recalibration_
    assert found.value == pytest.approx(np.exp(min(best.x, best.x / 2)), rel=1e-4)
    assert found.before["nll"] == pytest.approx(score(0.0), rel=1e-6)
    assert found.after["nll"] <= score(best.x) + 1e-6


def test_a_sample_of_cells_stands_for_all_labelled_ones():
    y = torch.randint(-1, 3, (5, 8, 8), generator=torch.Generator().manual_seed(0))
    y[3] = -1
    known = (y >= 0).flatten(1).sum(1).double()
    whole, few = draw_pixels(y, seed=0), draw_pixels(y, seed=0, most=50)
    assert len(whole.place) == known.sum() and bool((whole.weight == 1).all())
    assert few.example.bincount(minlength=5).tolist() == [10, 10, 10, 0, 10]
    assert_close(torch.zeros(5).double().index_add(0, few.example, few.weight), known)
    for cells in (whole, few):
        assert bool((y.flatten(1)[cells.example, cells.place] >= 0).all())
        pairs = torch.stack([cells.example, cells.place], 1)
        assert len(pairs.unique(dim=0)) == len(pairs)
    assert not torch.equal(few.place, draw_pixels(y, seed=1, most=50).place)


def test_disagreement_is_the_mutual_information_of_member_and_class(ensemble):
    images, _ = half_hidden()
    each = member_probabilities(ensemble, images)

    def entropy(p):
        return -(p * np.log(p)).sum(-1)

    expected = entropy(each.mean(0)) - entropy(each).mean(0)
    assert_close(ensemble.between_entropy(images), expected, rtol=1e-6, atol=1e-12)
    assert expected.max() > 1e-4
    alike, posterior = copy.copy(ensemble), ensemble.model_.posterior
    same = type(posterior)([posterior.members[0]] * 3, torch.ones(3))
    alike.model_ = replace(ensemble.model_, posterior=same)
    assert alike.between_entropy(images).max() < 1e-12
    with pytest.raises(UsageError, match=r"nobody to disagree.*inference='ensemble'"):
        Segmenter(**LINEAR | {"epochs": 1}).fit(*discs(4)).between_entropy(images)


def test_a_saved_ensemble_gives_the_same_masks_bit_for_bit(ensemble, tmp_path):
    images, masks = half_hidden()
    again = ansatz.load(ensemble.save(tmp_path / "model"))
    assert again.members == 3 and again.recalibration_ == ensemble.recalibration_
    assert (again.predict_proba(images) == ensemble.predict_proba(images)).all()
    assert (again.between_entropy(images) == ensemble.between_entropy(images)).all()
    assert again.evaluate(images, masks) == ensemble.evaluate(images, masks)


def test_larger_images_are_mixed_from_tiles_and_tidied(ensemble):
    large, _ = discs(2, size=41, classes=3)
    tiled = copy.copy(ensemble).set_params(tile=24)
    mixed = tiled._without_recalibration().predict_proba(large)
    components = tiled.model_.posterior.components(Grids.of(large))
    each = [weight * member.raw.softmax(-1).numpy() for weight, member in components]
    assert_close(mixed, np.sum(each, 0), rtol=1e-6, atol=1e-9)
    whole = ensemble._without_recalibration().predict_proba(large)
    assert_close(mixed, whole, rtol=1e-3, atol=1e-4)  # linear in what is around a cell
    labels = tiled.predict(large)
    tidy = copy.copy(tiled).set_params(clean={"min_size": 60}).predict(large)
    assert (tidy == clean(torch.as_tensor(labels), min_size=60).numpy()).all()
    assert (tidy != labels).any()


@pytest.mark.parametrize("likelihood", ["cross_entropy", "dice", "sum"])
def test_losses_are_mixed_and_not_recalibrated(likelihood):
    images, masks = discs(4)
    model = Segmenter(likelihood, **SETTINGS | {"epochs": 1}).fit(images, masks)
    assert not hasattr(model, "recalibration_") and model.model_.posterior.factor == 1
    each = [
        model.model_.outcome.probabilities(member.predictive(Grids.of(images))).numpy()
        for member in model.model_.posterior.members
    ]
    assert_close(model.predict_proba(images), np.mean(each, 0), rtol=0, atol=1e-6)


@pytest.mark.parametrize("count", [1, 2])
def test_fewer_examples_than_members_share_their_folds(count):
    model = Segmenter(**SETTINGS | {"epochs": 1}).fit(*discs(count))
    assert len(model.model_.posterior.members) == 3
    assert hasattr(model, "recalibration_") == (count > 1)  # one example leaves none to evaluate by


def test_folds_stop_the_members_unless_a_share_is_held_out_for_all():
    images, masks = discs(60)
    asked, left = Segmenter(**SETTINGS, holdout=0.2), Segmenter(**SETTINGS)
    job = left.read(images, masks)
    assert holdout_share(job, left.task(images), 0.0) == 0
    assert holdout_share(job, asked.task(images), 0.0) == 0.2
    model = asked.set_params(epochs=1).fit(images, masks)
    assert model.model_.out_of_fold.who.shape[1] == 3  # all members left out the same examples
    assert 0.1 < len(model.model_.out_of_fold.folds[0].rows) / masks.size < 0.3


def test_a_run_that_was_killed_in_its_second_member_ends_in_the_same_bits(tmp_path, monkeypatch):
    images, masks = discs(8)
    data = {"x": images, "mask": masks}
    given = {
        "network": "linear_pixels",
        "inference": "ensemble",
        "options": {"members": 2, "epochs": 2, "batch_size": 2},
        "test": 0.0,
    }
    expected = ansatz.fit(data, **given).model
    monkeypatch.setattr(training_loop, "_SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    real, opened = source.GridSource, []

    class Dies(real):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            opened.append(self)

        def batches(self, epoch=0, start=0):
            if len(opened) > 2 and epoch == 1:  # a member has one to learn from and one to stop by
                raise MemoryError("killed")
            yield from super().batches(epoch, start)

    with monkeypatch.context() as patch:
        patch.setattr(source, "GridSource", Dies)
        with pytest.raises(MemoryError):
            ansatz.fit(data, **given, out=tmp_path / "cut")
    resumed = ansatz.fit(data, **given, out=tmp_path / "cut", resume=True).model
    assert (resumed.predict_proba(images) == expected.predict_proba(images)).all()
    assert resumed.recalibration_ == expected.recalibration_
