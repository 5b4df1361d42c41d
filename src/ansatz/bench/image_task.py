"""Images and the network that everyone trains on them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

DIGITS, PHOTOGRAPHS = 60_000, 24 * 64  # images: an epoch of MNIST; two dozen steps of a ResNet
EVALUATED = 2_048  # images that show whether something was learned


@dataclass(frozen=True)
class ImageTask:
    """Images as bytes, a network by name, and how long to train it.

    Peers begin with images that are standardised already, in the layout they like best; ours
    begins with the bytes.

    Args:
        images: ``(N, C, H, W)`` uint8.
        labels: ``(N,)`` class codes.
        network: as our registry calls it.
        options: of its factory.
        batch: images per step.
        epochs: passes over the images.
        rate: the learning rate of AdamW.

    Example:
        >>> import numpy as np
        >>> from ansatz.bench.image_task import ImageTask
        >>> images = np.zeros((300, 1, 28, 28), np.uint8)
        >>> ImageTask(images, np.arange(300) % 10, "lenet5", {}, batch=128, epochs=2).steps
        6
    """

    images: Array
    labels: Array
    network: str
    options: dict[str, Any]
    batch: int
    epochs: int = 1
    rate: float = 1e-3

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
    """LeNet-5 on the first training images of MNIST, in batches of 128.

    Example:
        >>> from ansatz.bench.image_task import DIGITS
        >>> -(-DIGITS // 128)  # steps
        469
    """
    return ImageTask(*_images("mnist", count), "lenet5", {}, batch=128)


def photographs(count: int = PHOTOGRAPHS) -> ImageTask:
    """ResNet-18 with the stem for small images on CIFAR-10, in batches of 64.

    Example:
        >>> from ansatz.bench.image_task import PHOTOGRAPHS
        >>> PHOTOGRAPHS // 64  # steps
        24
    """
    return ImageTask(*_images("cifar10", count), "resnet18", {"stem": "small"}, batch=64)


def _images(name: str, count: int) -> tuple[Array, Array]:
    from ansatz.data import load

    data = load(name)
    assert data.grids is not None and isinstance(data.target, str)
    rows = data.split()[0][:count]
    codes = data.frame[data.target].astype("category").cat.codes.to_numpy(np.int64)
    return data.grids[rows].load().numpy(), codes[rows]
