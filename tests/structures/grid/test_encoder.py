"""The augmentation of a fit: the default one, none, or what the user says."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

import ansatz
from ansatz import Classifier, Segmenter
from ansatz.data.augmentation import (
    Augmentation,
    Compose,
    Flip,
    Noise,
    Rotate90,
    Shift,
    default_augmentation,
)
from ansatz.errors import UsageError
from ansatz.spec import InputSpec

LINEAR = {"network": "linear_grid", "epochs": 2, "batch_size": 8, "holdout": 0.0}
IMAGES = np.random.default_rng(0).integers(0, 256, (24, 12, 12), np.uint8)
LABELS = np.arange(24) % 2


def weight(augment):
    model = Classifier(**LINEAR, augment=augment).fit(IMAGES, LABELS)
    return torch.cat([each.flatten() for each in model.model_.network.state_dict().values()])


def test_the_default_one_in_the_users_words_gives_the_same_model():
    default = default_augmentation(InputSpec.grid(1, 12, 12), examples=24)
    assert torch.equal(weight(None), weight(True)) and torch.equal(weight(True), weight(default))
    assert not torch.equal(weight(True), weight(False))


@pytest.mark.parametrize(
    "said",
    [
        "flip, noise",
        ["flip", Noise()],
        (Flip(), {"name": "noise"}),
        Compose([Flip(), Noise()]),
    ],
    ids=["names", "list", "record", "compose"],
)
def test_names_records_and_augmentations_are_the_same(said):
    assert torch.equal(weight(said), weight([Flip(), Noise()]))


def test_it_is_kept_with_the_model_with_a_note(tmp_path):
    model = Classifier(**LINEAR, augment=[Shift(1), Noise(0.1)]).fit(IMAGES, LABELS)
    assert "augmented examples (shift, noise)" in model.recipe_.sentence("linear_grid")
    model.save(tmp_path / "model")
    loaded = ansatz.load(tmp_path / "model")
    assert loaded.recipe_ == model.recipe_
    again = clone(loaded).fit(IMAGES, LABELS)
    for one, two in zip(
        again.model_.network.parameters(), model.model_.network.parameters(), strict=True
    ):
        assert torch.equal(one, two)


def test_masks_move_with_their_images():
    rng = np.random.default_rng(0)
    images = rng.normal(size=(12, 16, 16)).astype(np.float32)
    settings = {"network": "linear_pixels", "epochs": 30, "learning_rate": 0.05}
    model = Segmenter(**settings, augment=[Flip((-1, -2)), Rotate90()]).fit(images, images > 0)
    assert model.evaluate(images, images > 0)["accuracy"] > 0.9


class Nameless(Augmentation):
    def apply(self, x, masks, generator):
        return x, masks


@pytest.mark.parametrize(
    "said, line",
    [
        ("flop", "unknown augmentation 'flop'"),
        (3, "augment is True, False, or augmentations like"),
        ([{"cells": 2}], "an augmentation is written as"),
        ({"name": "shift", "sells": 2}, "sells"),
        (Nameless(), "Nameless has no name"),
    ],
    ids=["unknown", "number", "record", "option", "nameless"],
)
def test_what_is_no_augmentation_is_refused_in_a_line(said, line):
    with pytest.raises(UsageError, match=line) as caught:
        Classifier(**LINEAR, augment=said).fit(IMAGES, LABELS)
    assert "\n" not in str(caught.value)
