"""The loop that a careful user writes by hand in torch, and the matrix products alone."""

import itertools
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from ansatz.bench.task import Array, Task

Predict = Callable[[Array], Array]


def network(task: Task) -> nn.Sequential:
    """The network as torch's own modules.

    Example:
        >>> from ansatz.bench.hand_loop import network
        >>> from ansatz.bench.task import tiny
        >>> sum(p.numel() for p in network(tiny()).parameters())  # 20-64-64-1
        5569
    """
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for given, made in zip(task.sizes, task.sizes[1:], strict=False):
        layers += [nn.Linear(given, made), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def hand_loop(task: Task) -> Predict:
    """Tensors in memory, one permutation per epoch, fused AdamW, autograd, nothing else.

    Rows are gathered batch by batch: 128 x 784 numbers stay in the cache until they are used,
    which the whole table in a new order does not.

    Example:
        >>> from ansatz.bench.hand_loop import hand_loop
        >>> from ansatz.bench.task import tiny
        >>> task = tiny()
        >>> task.score(hand_loop(task)(task.x)) > 0.9
        True
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


def predictor(module: nn.Module, task: Task) -> Predict:
    """What a trained module predicts: the likeliest class, or the number.

    Example:
        >>> from ansatz.bench.hand_loop import network, predictor
        >>> from ansatz.bench.task import tiny
        >>> predictor(network(tiny()), tiny())(tiny().x[:3]).shape
        (3,)
    """

    def predict(x: Array) -> Array:
        with torch.no_grad():
            output = module.eval()(torch.from_numpy(x))
        chosen: Array = (output.argmax(1) if task.classes else output.squeeze(1)).numpy()
        return chosen

    return predict


def matrix_products(task: Task) -> None:
    """The products of every forward and backward pass, into memory kept ready: the machine's limit.

    Example:
        >>> from ansatz.bench.hand_loop import matrix_products
        >>> from ansatz.bench.task import tiny
        >>> matrix_products(tiny(epochs=1))
    """
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
