"""Trains the peers on images, each as its documentation advises.

No logger, checkpoint, progress bar or validation; the same network, optimizer, rate, batch size and
number of epochs, standardised images in memory. Lightning takes torch's default optimizer; with the
fused kernel it is measured too, without a bar.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from ansatz.bench.image_task import (
    EVALUATED,
    Array,
    ImageTask,
    Predict,
    lenet5,
    lenet_loop,
    predictor,
    resnet_loop,
)
from ansatz.bench.peers import keras_on_torch, lightning_loop

Peer = Callable[[ImageTask], Predict]


def with_keras(task: ImageTask) -> Predict:
    """Trains Keras on torch."""
    keras = keras_on_torch()
    keras.utils.set_random_seed(0)
    model = (_keras_lenet5 if task.network == "lenet5" else _keras_resnet18)(keras, task)
    model.compile(
        optimizer=keras.optimizers.AdamW(task.rate, weight_decay=1e-2),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    model.fit(task.last, task.labels, batch_size=task.batch, epochs=task.epochs, verbose=0)

    def predict(x: Array) -> Array:
        shown = x[:EVALUATED].transpose(0, 2, 3, 1)
        chosen: Array = model.predict(shown, verbose=0, batch_size=256).argmax(1)
        return chosen

    return predict


def with_lightning(task: ImageTask, *, fused: bool = False) -> Predict:
    """Trains LeNet-5 with Lightning in its barebones mode."""
    network = lenet5(task)
    images, labels = torch.from_numpy(task.first), torch.from_numpy(task.labels)
    lightning_loop(network, images, labels, task, fused)
    return predictor(network)


LENET: dict[str, tuple[str, Peer]] = {  # name -> the package it needs, what it does
    "keras": ("keras", with_keras),
    "lightning": ("lightning", with_lightning),
    "lightning, fused": ("lightning", partial(with_lightning, fused=True)),
    "hand loop": ("torch", lenet_loop),
}
RESNET: dict[str, tuple[str, Peer]] = {
    "keras": ("keras", with_keras),
    "hand loop": ("torch", resnet_loop),
}


def _keras_lenet5(keras: Any, task: ImageTask) -> Any:
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input(task.last.shape[1:]),
            layers.Conv2D(6, 5, padding="same", activation="relu"),
            layers.MaxPooling2D(2),
            layers.Conv2D(16, 5, activation="relu"),
            layers.MaxPooling2D(2),
            layers.Flatten(),
            layers.Dense(120, activation="relu"),
            layers.Dense(84, activation="relu"),
            layers.Dense(task.classes),
        ]
    )


def _keras_resnet18(keras: Any, task: ImageTask) -> Any:
    layers, width = keras.layers, task.options.get("width", 64)

    def convolve(x: Any, channels: int, cells: int = 3, stride: int = 1) -> Any:
        x = layers.Conv2D(channels, cells, stride, padding="same", use_bias=False)(x)
        # torch's constants; Keras's own momentum of 0.99 has seen too little after a few steps.
        return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)

    inputs = keras.Input(task.last.shape[1:])
    x = layers.ReLU()(convolve(inputs, width))
    for stage in range(4):
        channels = width * 2**stage
        for block in range(2):
            stride = 2 if stage and not block else 1
            y = layers.ReLU()(convolve(x, channels, stride=stride))
            y = convolve(y, channels)
            if stride == 2:
                x = convolve(x, channels, 1, stride)
            x = layers.ReLU()(layers.Add()([x, y]))
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Dense(task.classes)(x))
