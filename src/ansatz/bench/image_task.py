"""Images and the network that everyone trains on them."""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

Array = np.ndarray[Any, Any]

DIGITS, PHOTOGRAPHS = 60_000, 24 * 64  # images: an epoch of MNIST; two dozen steps of a ResNet
EVALUATED = 2_048  # images that show whether something was learned


@dataclass(frozen=True)
class ImageTask:
    """Images as bytes, a network by name, and how long to train it.

    Peers begin with images that are standardised already, in the layout they like best; ours
    begins with the bytes.
    """

    images: Array  # ``(N, C, H, W)`` uint8
    labels: Array  # ``(N,)`` class codes
    network: str  # as our registry calls it
    options: dict[str, Any]  # of its factory
    batch: int  # images per step
    epochs: int = 1  # passes over the images
    rate: float = 1e-3  # the learning rate of AdamW

    @property
    def classes(self) -> int:
        """How many kinds of images there are."""
        return int(self.labels.max()) + 1

    @property
    def steps(self) -> int:
        """Updates in all."""
        return self.epochs * -(-len(self.images) // self.batch)

    @cached_property
    def first(self) -> Array:
        """The images as torch's layers take them: ``(N, C, H, W)`` float32, standardised."""
        axes = (0, 2, 3)
        mean = self.images.mean(axes, keepdims=True, dtype=np.float64).astype(np.float32)
        spread = self.images.std(axes, keepdims=True, dtype=np.float32)
        found: Array = (self.images - mean) / np.maximum(spread, 1)
        return found

    @cached_property
    def last(self) -> Array:
        """The images as Keras takes them: channels last."""
        return np.ascontiguousarray(self.first.transpose(0, 2, 3, 1))

    def score(self, predicted: Array) -> float:
        """The share of the first images whose class is predicted."""
        return float((predicted == self.labels[: len(predicted)]).mean())


def digits(count: int = DIGITS) -> ImageTask:
    """LeNet-5 on the first training images of MNIST, in batches of 128."""
    return ImageTask(*_images("mnist", count), "lenet5", {}, batch=128)


def photographs(count: int = PHOTOGRAPHS) -> ImageTask:
    """ResNet-18 with the stem for small images on CIFAR-10, in batches of 64."""
    return ImageTask(*_images("cifar10", count), "resnet18", {"stem": "small"}, batch=64)


def _images(name: str, count: int) -> tuple[Array, Array]:
    from ansatz.data import load

    data = load(name)
    assert data.grids is not None and isinstance(data.target, str)
    rows = data.split()[0][:count]
    codes = data.frame[data.target].astype("category").cat.codes.to_numpy(np.int64)
    return data.grids[rows].load().numpy(), codes[rows]


Predict = Callable[[Array], Array]


def lenet5(task: ImageTask) -> nn.Sequential:
    """LeNet-5 with ReLU and max pooling, of torch's own modules."""
    torch.manual_seed(0)
    side = (task.images.shape[-1] // 2 - 4) // 2
    return nn.Sequential(
        nn.Conv2d(task.images.shape[1], 6, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * side**2, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, task.classes),
    )


def lenet_loop(task: ImageTask) -> Predict:
    """LeNet-5: channels last, one permutation per epoch, fused AdamW, nothing else."""
    layout = torch.channels_last
    network = lenet5(task).to(memory_format=layout)  # type: ignore[call-overload]
    x, y = torch.from_numpy(task.first), torch.from_numpy(task.labels)
    rule = torch.optim.AdamW(network.parameters(), lr=task.rate, fused=True)
    for _ in range(task.epochs):
        for rows in torch.randperm(len(x)).split(task.batch):
            batch = x[rows].contiguous(memory_format=layout)
            loss = nn.functional.cross_entropy(network(batch), y[rows])
            rule.zero_grad()
            loss.backward()
            rule.step()
    return predictor(network)


def resnet_loop(task: ImageTask) -> Predict:
    """ResNet-18: the loop of ``benchmarks/resnet_loop.py`` in the source tree."""
    loop, width = _load(script()), task.options.get("width", 64)
    images, labels = torch.from_numpy(task.first), torch.from_numpy(task.labels)
    torch.manual_seed(0)
    network = loop.ResNet18(images.shape[1], task.classes, width)
    settings = {"batch": task.batch, "epochs": task.epochs, "rate": task.rate}
    return predictor(loop.train(network, images, labels, **settings))


def script() -> Path:
    """Where the loop of ResNet-18 is, when the package runs from its source tree."""
    return Path(__file__).parents[3] / "benchmarks" / "resnet_loop.py"


def predictor(network: nn.Module) -> Predict:
    """What a trained network predicts: the likeliest class, of standardised images."""

    def predict(x: Array) -> Array:
        with torch.no_grad():
            parts = torch.from_numpy(x[:EVALUATED]).split(256)
            output = torch.cat([network.eval()(part) for part in parts])
        chosen: Array = output.argmax(1).numpy()
        return chosen

    return predict


def _load(path: Path) -> Any:
    found = importlib.util.spec_from_file_location(path.stem, path)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module
