"""The loop that a careful user writes by hand in torch, on images."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ansatz.bench.image_task import EVALUATED, Array, ImageTask

Predict = Callable[[Array], Array]


def lenet5(task: ImageTask) -> nn.Sequential:
    """LeNet-5 with ReLU and max pooling, of torch's own modules.

    Example:
        >>> import numpy as np
        >>> from ansatz.bench.image_loop import lenet5
        >>> from ansatz.bench.image_task import ImageTask
        >>> task = ImageTask(np.zeros((20, 1, 28, 28), np.uint8), np.arange(20) % 10, "", {}, 4)
        >>> sum(p.numel() for p in lenet5(task).parameters())
        61706
    """
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
    """LeNet-5: channels last, one permutation per epoch, fused AdamW, nothing else.

    Example:
        >>> from ansatz.bench.image_loop import lenet_loop
        >>> callable(lenet_loop)
        True
    """
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
    """ResNet-18: the loop of ``benchmarks/resnet_loop.py`` in the source tree.

    Example:
        >>> from ansatz.bench.image_loop import resnet_loop
        >>> callable(resnet_loop)
        True
    """
    loop, width = _load(script()), task.options.get("width", 64)
    images, labels = torch.from_numpy(task.first), torch.from_numpy(task.labels)
    torch.manual_seed(0)
    network = loop.ResNet18(images.shape[1], task.classes, width)
    settings = {"batch": task.batch, "epochs": task.epochs, "rate": task.rate}
    return predictor(loop.train(network, images, labels, **settings))


def script() -> Path:
    """Where the loop of ResNet-18 is, when the package runs from its source tree.

    Example:
        >>> from ansatz.bench.image_loop import script
        >>> script().name
        'resnet_loop.py'
    """
    return Path(__file__).parents[3] / "benchmarks" / "resnet_loop.py"


def predictor(network: nn.Module) -> Predict:
    """What a trained network predicts: the likeliest class, of standardised images.

    Example:
        >>> import numpy as np
        >>> from torch import nn
        >>> from ansatz.bench.image_loop import predictor
        >>> predictor(nn.Flatten())(np.eye(3, dtype=np.float32).reshape(3, 1, 1, 3)).tolist()
        [0, 1, 2]
    """

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
