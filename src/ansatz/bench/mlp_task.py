"""Defines the tables and networks of the speed suites."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class BenchTask:
    """Rows, the widths of a multilayer perceptron, and the length of training."""

    x: Array  # ``(N, D)`` float32, standardised
    y: Array  # ``(N,)`` class codes, or float32 numbers
    classes: int  # how many; 0 for numbers
    widths: tuple[int, ...]  # hidden units per layer, all ReLU
    batch: int  # rows per step
    epochs: int  # passes over the rows
    rate: float  # the learning rate of AdamW
    source: str = "generated"  # where the rows come from

    @property
    def outputs(self) -> int:
        """The number of outputs."""
        return self.classes or 1

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of columns, hidden units and outputs."""
        return (self.x.shape[1], *self.widths, self.outputs)

    @property
    def steps(self) -> int:
        """The total number of updates."""
        return self.epochs * -(-len(self.x) // self.batch)

    def score(self, prediction: Array) -> float:
        """Computes accuracy of classes, or R2 of numbers."""
        if self.classes:
            return float((prediction == self.y).mean())
        return 1 - float(((prediction - self.y) ** 2).mean() / self.y.var())


def large(seed: int = 0, rows: int = 20_000, epochs: int = 10) -> BenchTask:
    """Makes the task 784-256-128-10 on MNIST, or on generated rows without it."""
    found = _mnist(rows)
    x, y = found or _generated_digits(seed, rows)
    source = "mnist" if found else "generated"
    return BenchTask(x, y, 10, (256, 128), 128, epochs, 1e-3, source)


def tiny(seed: int = 0, epochs: int = 50) -> BenchTask:
    """Makes the task 20-64-64-1 on 1,000 rows with two informative columns."""
    random = np.random.default_rng(seed)
    x = random.standard_normal((1_000, 20), dtype=np.float32)
    noise = 0.1 * random.standard_normal(1_000, dtype=np.float32)
    y = x[:, 0] + np.sin(x[:, 1]) + noise
    return BenchTask(x, y, 0, (64, 64), 32, epochs, 3e-3)


def _mnist(rows: int) -> tuple[Array, Array] | None:
    import gzip
    import os
    from pathlib import Path

    folder = Path(os.environ.get("ANSATZ_DATA", ".")) / "mnist"
    pixels = folder / "train-images-idx3-ubyte.gz"
    labels = folder / "train-labels-idx1-ubyte.gz"
    if not (pixels.exists() and labels.exists()):
        return None
    with gzip.open(pixels) as file:  # a header of 16 bytes, then 28 x 28 bytes per image
        x = np.frombuffer(file.read(16 + rows * 784), np.uint8, offset=16).reshape(-1, 784)
    with gzip.open(labels) as file:
        y = np.frombuffer(file.read(8 + rows), np.uint8, offset=8)
    scaled = (x.astype(np.float32) - 33.3) / 78.6  # mean and deviation of all its pixels
    return scaled, y.astype(np.int64)


def _generated_digits(seed: int, rows: int) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    x = random.standard_normal((rows, 784), dtype=np.float32)
    scores = x @ random.standard_normal((784, 10), dtype=np.float32)
    y = (scores + 9 * random.standard_normal(scores.shape)).argmax(1)
    return x, y


Predict = Callable[[Array], Array]


def network(task: BenchTask) -> nn.Sequential:
    """Builds the network from torch's modules."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for given, made in zip(task.sizes, task.sizes[1:], strict=False):
        layers += [nn.Linear(given, made), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def hand_loop(task: BenchTask) -> Predict:
    """Trains by hand: tensors in memory, a permutation per epoch, fused AdamW, autograd.

    Rows are gathered batch by batch: 128 x 784 numbers stay in the cache.
    """
    module, x, y = network(task), torch.from_numpy(task.x), torch.from_numpy(task.y)
    loss_of = nn.functional.cross_entropy if task.classes else nn.functional.mse_loss
    y = y if task.classes else y.unsqueeze(1)
    rule = torch.optim.AdamW(module.parameters(), lr=task.rate, fused=True)
    for _ in range(task.epochs):
        for rows in torch.randperm(len(x)).split(task.batch):
            loss = loss_of(module(x[rows]), y[rows])
            rule.zero_grad()
            loss.backward()
            rule.step()
    return predictor(module, task)


def predictor(module: nn.Module, task: BenchTask) -> Predict:
    """Makes a function that predicts the most probable class, or the number."""

    def predict(x: Array) -> Array:
        with torch.no_grad():
            output = module.eval()(torch.from_numpy(x))
        chosen: Array = (output.argmax(1) if task.classes else output.squeeze(1)).numpy()
        return chosen

    return predict


def matrix_products(task: BenchTask) -> None:
    """Computes only the matrix products of all passes: the limit of the machine."""
    random, sizes, rows = np.random.default_rng(0), task.sizes, task.batch
    made = [random.standard_normal((rows, size), dtype=np.float32) for size in sizes]
    weights = [
        random.standard_normal((above, below), dtype=np.float32)
        for below, above in itertools.pairwise(sizes)
    ]
    slots = [np.empty_like(weight) for weight in weights]
    delta = [np.ones_like(each) for each in made]
    for _ in range(task.steps):
        for i, weight in enumerate(weights):
            made[i].dot(weight.T, made[i + 1])
        for i in range(len(weights) - 1, -1, -1):
            delta[i + 1].T.dot(made[i], slots[i])
            if i:
                delta[i + 1].dot(weights[i], delta[i])
