"""Defines the images and networks of the speed suite."""

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
EVALUATED = 2_048  # images that are scored


@dataclass(frozen=True)
class ImageTask:
    """Images as bytes, a network by name, and the length of training.

    Peers get standardised images in their preferred layout; ours begins with the bytes.
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
        """The number of classes."""
        return int(self.labels.max()) + 1

    @property
    def steps(self) -> int:
        """The total number of updates."""
        return self.epochs * -(-len(self.images) // self.batch)

    @cached_property
    def first(self) -> Array:
        """The images for torch: ``(N, C, H, W)`` float32, standardised."""
        axes = (0, 2, 3)
        mean = self.images.mean(axes, keepdims=True, dtype=np.float64).astype(np.float32)
        sd = self.images.std(axes, keepdims=True, dtype=np.float32)
        found: Array = (self.images - mean) / np.maximum(sd, 1)
        return found

    @cached_property
    def last(self) -> Array:
        """The images for Keras: channels last."""
        return np.ascontiguousarray(self.first.transpose(0, 2, 3, 1))

    def score(self, predicted: Array) -> float:
        """Computes the accuracy on the first images."""
        return float((predicted == self.labels[: len(predicted)]).mean())


def digits(count: int = DIGITS) -> ImageTask:
    """Makes the task of LeNet-5 on MNIST, in batches of 128."""
    return ImageTask(*_images("mnist", count), "lenet5", {}, batch=128)


def photographs(count: int = PHOTOGRAPHS) -> ImageTask:
    """Makes the task of ResNet-18 with a small stem on CIFAR-10, in batches of 64."""
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
    """Builds LeNet-5 with ReLU and max pooling from torch's modules."""
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
    """Trains LeNet-5 by hand: channels last, a permutation per epoch, fused AdamW."""
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
    """Trains ResNet-18 by the loop of ``benchmarks/resnet_loop.py``."""
    loop, width = _load(script()), task.options.get("width", 64)
    images, labels = torch.from_numpy(task.first), torch.from_numpy(task.labels)
    torch.manual_seed(0)
    network = loop.ResNet18(images.shape[1], task.classes, width)
    settings = {"batch": task.batch, "epochs": task.epochs, "rate": task.rate}
    return predictor(loop.train(network, images, labels, **settings))


def script() -> Path:
    """Returns the path of the loop of ResNet-18 in the source tree."""
    return Path(__file__).parents[3] / "benchmarks" / "resnet_loop.py"


def predictor(network: nn.Module) -> Predict:
    """Makes a function that predicts classes of standardised images."""

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
