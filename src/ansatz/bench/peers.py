"""Trains the peers on tables, each as its documentation advises for speed.

No logger, checkpoint, progress bar or validation; the same network, optimizer, rate, batch size and
number of epochs. skorch and Lightning take torch's default optimizer; with the fused kernel
they are measured too, without a bar.
"""

import importlib.util
import logging
import os
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from ansatz.bench.mlp_task import Array, BenchTask, Predict, hand_loop, network, predictor

Peer = Callable[[BenchTask], Predict]


def with_skorch(task: BenchTask, *, fused: bool = False) -> Predict:
    """Trains skorch, without callbacks and validation."""
    import skorch

    kind = skorch.NeuralNetClassifier if task.classes else skorch.NeuralNetRegressor
    options: dict[str, Any] = {"criterion": nn.CrossEntropyLoss} if task.classes else {}
    model = kind(
        network(task),
        max_epochs=task.epochs,
        batch_size=task.batch,
        lr=task.rate,
        optimizer=torch.optim.AdamW,
        optimizer__fused=fused or None,
        train_split=None,
        callbacks="disable",
        iterator_train__shuffle=True,
        verbose=0,
        **options,
    )
    model.fit(task.x, task.y if task.classes else task.y[:, None])
    return lambda x: model.predict(x).reshape(len(x))


def with_lightning(task: BenchTask, *, fused: bool = False) -> Predict:
    """Trains Lightning in its barebones mode."""
    x, y, module = torch.from_numpy(task.x), torch.from_numpy(task.y), network(task)
    lightning_loop(module, x, y if task.classes else y.unsqueeze(1), task, fused)
    return predictor(module, task)


def lightning_loop(
    network: nn.Module, x: torch.Tensor, y: torch.Tensor, task: Any, fused: bool
) -> None:
    """Trains a network in place with Lightning's loop, by the task's epochs, batch and rate."""
    import lightning
    from torch.utils.data import DataLoader, TensorDataset

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    loss_of = nn.functional.cross_entropy if task.classes else nn.functional.mse_loss

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.inner = network

        def training_step(self, batch: Any, number: int) -> torch.Tensor:
            x, y = batch
            return loss_of(self.inner(x), y)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.AdamW(self.parameters(), lr=task.rate, fused=fused or None)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that barebones reports nothing, that loaders lack workers
        trainer = lightning.Trainer(
            max_epochs=task.epochs, accelerator="cpu", devices=1, barebones=True
        )
        rows = DataLoader(TensorDataset(x, y), batch_size=task.batch, shuffle=True)
        trainer.fit(Module(), rows)


def with_keras(task: BenchTask) -> Predict:
    """Trains Keras on torch."""
    keras = keras_on_torch()
    keras.utils.set_random_seed(0)
    dense = [keras.layers.Dense(width, activation="relu") for width in task.widths]
    inputs = keras.Input((task.x.shape[1],))
    model = keras.Sequential([inputs, *dense, keras.layers.Dense(task.outputs)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True) if task.classes else "mse"
    model.compile(optimizer=keras.optimizers.AdamW(task.rate, weight_decay=1e-2), loss=loss)
    model.fit(task.x, task.y, batch_size=task.batch, epochs=task.epochs, verbose=0)

    def predict(x: Array) -> Array:
        output = model.predict(x, verbose=0, batch_size=4096)
        chosen: Array = output.argmax(1) if task.classes else output[:, 0]
        return chosen

    return predict


def with_sklearn(task: BenchTask) -> Predict:
    """Trains scikit-learn's MLPClassifier or MLPRegressor with Adam."""
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    model = (MLPClassifier if task.classes else MLPRegressor)(
        hidden_layer_sizes=task.widths,
        batch_size=task.batch,
        max_iter=task.epochs,
        n_iter_no_change=task.epochs + 1,
        learning_rate_init=task.rate,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the given epochs are not convergence
        model.fit(task.x, task.y)
    predict: Predict = model.predict
    return predict


PEERS: dict[str, tuple[str, Peer]] = {  # name -> the package it needs, what it does
    "skorch": ("skorch", with_skorch),
    "skorch, fused": ("skorch", partial(with_skorch, fused=True)),
    "lightning": ("lightning", with_lightning),
    "lightning, fused": ("lightning", partial(with_lightning, fused=True)),
    "keras": ("keras", with_keras),
    "scikit-learn": ("sklearn", with_sklearn),
    "hand loop": ("torch", hand_loop),
}


def installed(name: str) -> bool:
    """Tests whether the package of a peer is installed."""
    return importlib.util.find_spec(PEERS[name][0]) is not None


def keras_on_torch() -> Any:
    """Imports ``keras``, which must run on torch."""
    os.environ.setdefault("KERAS_BACKEND", "torch")  # read once, when keras is imported
    import keras

    if keras.backend.backend() != "torch":
        raise RuntimeError("Keras runs on another backend: set KERAS_BACKEND=torch.")
    return keras
