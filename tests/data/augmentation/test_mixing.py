"""Mixup and CutMix: the examples, the shares, and the loss of soft labels."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from ansatz import Classifier, Regressor, Segmenter
from ansatz.data import Batch
from ansatz.data.augmentation import Compose, CutMix, Flip, Mixup, OnBatches, from_record, to_record
from ansatz.errors import UsageError
from ansatz.likelihoods import Categorical
from ansatz.training import Supervised


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_mixup_is_the_weighted_mean_of_two_examples():
    x, y = torch.rand(50, 2, 4, 4), torch.arange(50)
    mixed, (first, second, share) = Mixup(1.0)(x, y, seeded())
    lam = share.reshape(-1, 1, 1, 1).double()
    assert_close(mixed, lam * x[first] + (1 - lam) * x[second])
    assert torch.equal(first, y) and torch.equal(second.sort().values, y)


@pytest.mark.parametrize("alpha", [0.2, 1.0, 4.0])
def test_shares_of_mixup_are_beta(alpha):
    """Var = 1 / (4 (2 alpha + 1)), within 5 standard errors."""
    share = Mixup(alpha)(torch.zeros(20_000, 1, 1), torch.zeros(20_000).long(), seeded())[1].share
    square = (share.double() - 0.5) ** 2
    error = square.std() / 20_000**0.5
    assert abs(square.mean() - 1 / (4 * (2 * alpha + 1))) < 5 * error


@pytest.mark.parametrize("size", [(12,), (9, 7), (4, 5, 6)])
def test_the_share_of_cutmix_is_that_of_the_pixels(size):
    x = torch.arange(30.0).reshape(30, *(1,) * (len(size) + 1)).expand(30, 2, *size)
    mixed, (first, second, share) = CutMix()(x, torch.arange(30), seeded())
    own = (mixed == x).float().flatten(1).mean(1)
    other = first != second
    assert_close(own[other], share[other].to(own))
    taken = mixed[:, 0].flatten(1)
    assert ((taken == first[:, None]) | (taken == second[:, None])).all()
    assert 0.1 < share.float().mean() < 0.95


@pytest.mark.parametrize("augment", [Mixup(1.0), CutMix()])
def test_the_loss_is_the_cross_entropy_of_the_soft_label(augment):
    x, y, weight = torch.rand(20, 1, 4, 4), torch.randint(3, (20,)), torch.rand(20) + 0.5
    batch = OnBatches(augment)(Batch.of(x, y, weight), seeded())
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 3))
    found = Supervised(Categorical())(network, batch)
    one_hot = torch.nn.functional.one_hot
    both = [one_hot(t, 3).double() for t in (batch.target.first, batch.target.second)]
    soft = batch.target.share[:, None] * both[0] + (1 - batch.target.share[:, None]) * both[1]
    terms = torch.nn.functional.cross_entropy(network(batch.inputs[0]), soft, reduction="none")
    assert_close(found.total, (batch.weight * terms).sum())
    assert_close(found.count, batch.weight.sum())
    assert_close(batch.weight.sum(), weight.sum(), rtol=0.2, atol=0)


def test_other_augmentations_come_first_and_records_remake_it():
    augment = Compose([CutMix(0.5), Flip()])
    batch = OnBatches(augment)(Batch.of(torch.rand(6, 1, 8, 8), torch.arange(6)), seeded())
    assert batch.inputs[0].shape == (6, 1, 8, 8)
    assert to_record(CutMix(0.5)) == {"name": "cut_mix", "alpha": 0.5}
    assert from_record({"name": "cutmix", "alpha": 0.5}) == CutMix(0.5)


def test_what_has_no_classes_is_refused():
    with pytest.raises(UsageError, match="Mixup mixes examples of classes: give whole numbers y"):
        Mixup()(torch.rand(2, 1, 4))
    with pytest.raises(UsageError, match="it takes no masks"):
        Compose([Compose([CutMix()])])(torch.rand(2, 1, 4, 4))
    with pytest.raises(UsageError, match="alpha of CutMix must be"):
        CutMix(0.0)


@pytest.fixture
def images():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    x = rng.random((60, 1, 12, 12)).astype(np.float32)
    x[y == 1, :, :6] += 1
    return x / 2, y


@pytest.mark.parametrize("augment", ["mixup", "CutMix", [Mixup(1.0), Flip()]])
def test_a_classifier_is_trained_with_it(images, augment):
    x, y = images
    torch.set_default_dtype(torch.float32)
    model = Classifier(network="lenet5", augment=augment, epochs=15, learning_rate=3e-3).fit(x, y)
    assert (model.predict(x) == y).mean() > 0.8


def test_numbers_and_masks_are_refused_in_a_line(images):
    x, y = images
    torch.set_default_dtype(torch.float32)
    with pytest.raises(UsageError, match="mixes classes"):
        Regressor(network="lenet5", augment="mixup", epochs=1).fit(x, y + 0.5)
    with pytest.raises(UsageError, match="takes no masks"):
        Segmenter(augment="cutmix", epochs=1).fit(x[:8], (x[:8, 0] > 0.5).astype(int))
