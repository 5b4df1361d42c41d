"""Networks of the user's own that do not fit."""

import numpy as np
import pytest
from torch import nn

from ansatz import Classifier, Segmenter
from ansatz.errors import UsageError

IMAGES = np.random.default_rng(0).normal(size=(24, 8, 8)).astype(np.float32)
ROWS, Y = IMAGES[:, 0, :4], np.arange(24) % 3


@pytest.mark.parametrize("inference", ["point", "ensemble"])
@pytest.mark.parametrize("x, shape", [(IMAGES, r"\(B, 1, 8, 8\)"), (ROWS, r"\(B, 4\)")])
def test_a_network_for_another_shape_is_reported_what_it_is_given(x, shape, inference):
    network = nn.Sequential(nn.Flatten(), nn.Linear(10, 3))
    said = (
        rf"^the network Sequential was given x of shape {shape} and cannot take it: mat1 and .*\.$"
    )
    with pytest.raises(UsageError, match=said):
        Classifier(network=network, epochs=1, inference=inference).fit(x, Y)


def test_a_segmenter_tells_the_same():
    with pytest.raises(UsageError, match=r"Conv2d was given x of shape \(B, 1, 8, 8\)"):
        Segmenter(network=nn.Conv2d(3, 2, 3), epochs=1).fit(IMAGES, IMAGES > 0)


@pytest.mark.parametrize("network, got", [(lambda x: x, "a function"), (None, "a NoneType")])
@pytest.mark.parametrize("x", [IMAGES, ROWS])
def test_a_network_is_a_name_or_a_module(x, network, got):
    with pytest.raises(UsageError, match=rf"torch\.nn\.Module, got {got}\.$"):
        Classifier(network=network, epochs=1).fit(x, Y)


@pytest.mark.parametrize("x", [IMAGES, ROWS])
def test_a_network_without_parameters_cannot_learn(x):
    with pytest.raises(UsageError, match="Flatten has no parameters to train"):
        Classifier(network=nn.Flatten(), epochs=1).fit(x, Y)
