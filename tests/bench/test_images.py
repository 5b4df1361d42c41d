"""Everyone trains the same network on the same images by the same steps; never a test of times."""

import numpy as np
import pandas as pd
import pytest
import torch

from ansatz.bench import image_peers, image_task, images
from ansatz.bench.finding import BenchOptions
from ansatz.bench.image_task import ImageTask, digits, photographs
from ansatz.data import Dataset
from ansatz.data.grids import Grids
from ansatz.estimators import Classifier


@pytest.fixture(autouse=True)
def single_precision():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(before)


def bars(count, channels, size, classes=10):
    """Images with a bright row where their class is."""
    random = np.random.default_rng(0)
    codes = np.arange(count) % classes
    made = random.integers(0, 60, (count, channels, size, size), dtype=np.uint8)
    made[np.arange(count), :, 2 * codes + 2] = 250
    return made, codes


def lenet(count=256, epochs=1):
    return ImageTask(*bars(count, 1, 28), "lenet5", {}, batch=32, epochs=epochs, rate=3e-3)


def resnet(count=96, width=16, epochs=1):
    """ResNet-18 of 16 channels or more.

    Of fewer, channels last, the gradient of oneDNN's strided 1 x 1 convolutions is written out of
    bounds (uxlfoundation/oneDNN, issue 6035).
    """
    options = {"stem": "small", "width": width}
    return ImageTask(*bars(count, 3, 8, 3), "resnet18", options, 32, epochs=epochs, rate=3e-3)


@pytest.fixture
def fitted(monkeypatch):
    """The estimators that were fitted."""
    kept, fit = [], Classifier.fit
    monkeypatch.setattr(
        Classifier, "fit", lambda self, *a, **k: (kept.append(self), fit(self, *a, **k))[1]
    )
    return kept


@pytest.fixture
def toys(monkeypatch):
    """Small tasks in place of the published images, and no peer but the loops by hand."""
    monkeypatch.setattr("ansatz.bench.image_task.digits", lambda count: lenet(64))
    monkeypatch.setattr("ansatz.bench.image_task.photographs", lambda count: resnet(64))
    find = images.importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec",
        lambda name, *a: None if name in ("keras", "lightning") else find(name, *a),
    )


def test_ours_is_the_same_lenet5_trained_for_the_same_steps_on_all_images(fitted):
    task = lenet(300)
    images.ours(task)
    (model,) = fitted
    theirs = [tuple(p.shape) for p in image_task.lenet5(task).parameters()]
    assert [tuple(p.shape) for p in model.model_.network.parameters()] == theirs
    assert sum(p.numel() for p in model.model_.network.parameters()) == 61_706
    assert model.history_.steps == task.steps == 10 and model.recipe_.holdout == 0
    assert model.recipe_.augment is False


def test_the_resnet18_by_hand_has_the_weights_of_ours_and_of_the_paper():
    from ansatz import networks
    from ansatz.spec import InputSpec

    loop = image_task._load(image_task.script())
    with torch.device("meta"):
        theirs = loop.ResNet18()
        ours = networks.create("resnet18", InputSpec.grid(3, 32, 32), 10, stem="small")
    shapes = [sorted(tuple(p.shape) for p in each.parameters()) for each in (ours, theirs)]
    assert shapes[0] == shapes[1]
    assert sum(p.numel() for p in theirs.parameters()) == 11_173_962


def test_the_resnet18_by_hand_computes_what_ours_does():
    from ansatz.networks import ResNet18

    loop = image_task._load(image_task.script())
    ours, theirs = ResNet18(3, 10, stem="small", width=4), loop.ResNet18(width=4)
    mine = [p for n, p in ours.named_parameters() if "downsample" not in n]
    yours = [p for n, p in theirs.named_parameters() if "shortcut" not in n]
    short = [
        [p for n, p in each.named_parameters() if word in n]
        for each, word in ((ours, "downsample"), (theirs, "shortcut"))
    ]
    with torch.no_grad():
        for a, b in zip([*mine, *short[0]], [*yours, *short[1]], strict=True):
            b.copy_(a.normal_(std=0.3))
    x = torch.randn(2, 3, 16, 16)
    torch.testing.assert_close(theirs(x), ours(x), rtol=1e-4, atol=1e-4)


def test_the_layout_changes_no_number_of_the_loop_by_hand():
    loop = image_task._load(image_task.script())
    x, y = torch.randn(12, 3, 8, 8).double(), torch.arange(12) % 3

    def weights(**settings):
        torch.manual_seed(0)
        trained = loop.train(loop.ResNet18(3, 3, 16).double(), x, y, batch=6, **settings)
        return list(trained.parameters())

    first, last = weights(channels_last=False), weights(channels_last=True, fused=False)
    torch.testing.assert_close(first, last)


def test_ours_and_the_loops_by_hand_learn_the_images():
    digit, photograph = lenet(epochs=3), resnet(epochs=8)
    assert digit.score(images.ours(digit)(digit.images)) > 0.8
    assert digit.score(image_task.lenet_loop(digit)(digit.first)) > 0.8
    assert photograph.score(image_task.resnet_loop(photograph)(photograph.first)) > 0.8


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("peer", list(image_peers.LENET))
def test_every_peer_learns_the_digits(peer):
    if images._missing({peer: image_peers.LENET[peer]}):
        pytest.skip(f"{peer} is not installed")
    task = lenet(epochs=4)
    assert task.score(image_peers.LENET[peer][1](task)(task.first)) > 0.8


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_keras_has_the_same_networks():
    keras = pytest.importorskip("keras")
    from ansatz.bench.peers import keras_on_torch

    keras_on_torch()
    for make, task, count in (
        (image_peers._keras_lenet5, lenet(), 61_706),
        (image_peers._keras_resnet18, resnet(32, width=64), 11_173_962 - 7 * 513),  # 3 classes
    ):
        model = make(keras, task)
        assert sum(int(np.prod(w.shape)) for w in model.trainable_weights) == count


def test_images_are_standardised_in_both_layouts():
    task = resnet()
    np.testing.assert_allclose(task.first.mean((0, 2, 3)), 0, atol=1e-4)
    np.testing.assert_allclose(task.first.std((0, 2, 3)), 1, atol=1e-4)
    np.testing.assert_array_equal(task.last.transpose(0, 3, 1, 2), task.first)
    assert task.first.dtype == task.last.dtype == np.float32


@pytest.mark.parametrize(
    "make, name, batch", [(digits, "mnist", 128), (photographs, "cifar10", 64)]
)
def test_tasks_are_the_first_training_images_with_their_classes(monkeypatch, make, name, batch):
    made, codes = bars(30, 1, 28)
    frame = pd.DataFrame({"class": np.array(list("jihgfedcba"), dtype=object)[codes]})
    splits = ((np.arange(5, 30), np.arange(5)),)
    data = Dataset(name, frame, "class", "", "", splits=splits, grids=Grids.of(made))
    monkeypatch.setattr("ansatz.data.load", {name: data}.__getitem__)
    task = make(20)
    np.testing.assert_array_equal(task.images, made[5:25])
    np.testing.assert_array_equal(task.labels, 9 - codes[5:25])
    assert task.batch == batch


def test_a_missing_peer_is_reported_and_no_error(toys):
    lenet5, augmentation, resnet18 = images.speed_images(BenchOptions(rounds=1, threads=1))
    assert set(lenet5.missing) == {"keras", "lightning", "lightning, fused"}
    assert set(lenet5.peers) == {"hand loop"} and not lenet5.limit and lenet5.holds
    assert set(lenet5.facts["training score"]) == {"ours", "augmented", "hand loop"}
    assert augmentation.peers == {"without": lenet5.ours}
    assert augmentation.ratio["without"].median == augmentation.ours / lenet5.ours
    assert resnet18.missing == ["keras"] and set(resnet18.limit) == {"hand loop"}
    mine, theirs = resnet18.ours, resnet18.peers["hand loop"]
    assert resnet18.ratio["hand loop"].median == mine / theirs
    assert resnet18.unit == "seconds of wall time" and resnet18.facts["threads"] == 1


def test_one_case_can_be_measured_alone(toys):
    options = BenchOptions(rounds=1, threads=1, only=("augmentation",))
    (found,) = images.speed_images(options)
    assert found.name == "augmentation" and set(found.limit) == {"without"}


def test_without_the_source_tree_the_loop_by_hand_is_missing(toys, monkeypatch, tmp_path):
    monkeypatch.setattr(image_task, "script", lambda: tmp_path / "resnet_loop.py")
    (found,) = images.speed_images(BenchOptions(rounds=1, threads=1, only=("resnet18",)))
    assert found.missing == ["keras", "hand loop"] and found.peers == {}
