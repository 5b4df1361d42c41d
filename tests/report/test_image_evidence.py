"""A classifier of images has all its sections, each where it can be made."""

import numpy as np
import pytest
import torch
from torch import nn

from ansatz.report.image_evidence import certificates, ground, sections


@pytest.fixture
def classified():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (12, 10, 10, 1), dtype=np.uint8)
    network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(256, 3))

    def predict(images):
        with torch.no_grad():
            x = torch.from_numpy(images).permute(0, 3, 1, 2) / 255
            return network(x).softmax(1).numpy()

    return images, rng.integers(0, 3, 12), network, predict


def test_a_convolutional_network_has_all_sections(classified):
    images, truth, network, predict = classified
    found = sections(images, truth, predict(images), list("abc"), predict=predict, network=network)
    assert [section.title for section in found] == [
        "What the images look like",
        "Which classes are taken for which",
        "The most confident mistakes",
        "When images move, turn or grow noisy",
        "What predictions rest on",
        "What the first layer looks for",
    ]


def test_without_a_convolution_there_are_no_filters(classified):
    images, truth, _, _ = classified
    network = nn.Sequential(nn.Flatten(), nn.Linear(100, 3))
    probs = np.random.default_rng(0).dirichlet(np.ones(3), 12)
    titles = [s.title for s in sections(images, truth, probs, list("abc"), network=network)]
    assert "What predictions rest on" in titles and "What the first layer looks for" not in titles


def test_quarter_turns_are_for_squares():
    network = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    wide = certificates(network, torch.rand(3, 1, 8, 12), samples=2)
    assert [each.group for each in wide] == ["shift", "cyclic_shift", "flip", "rotation"]
    x = torch.rand(3, 1, 8, 8)
    square = certificates(network, x, samples=2)
    assert len(square) == 5 and square == certificates(network, x, samples=2)  # seeded


def test_the_ground_is_what_most_cells_are():
    digits = np.zeros((5, 4, 4, 1), np.uint8)
    digits[:, 1, 1] = 255
    photographs = np.random.default_rng(0).integers(60, 200, (5, 4, 4, 3), dtype=np.uint8)
    assert ground(digits)[1] == "black" and ground(255 - digits)[1] == "white"
    empty, word = ground(photographs)
    assert word == "mean-coloured" and empty.shape == (1, 4, 4, 3)
    assert np.abs(empty[0, 0, 0] - photographs.mean((0, 1, 2))).max() <= 0.5
