"""Outputs of Keras' GRU that resets before the matrix product, for tests/layers/test_recurrent.py.

    KERAS_BACKEND=torch python benchmarks/oracles/keras_gru.py

Writes tests/fixtures/keras-gru.json: weights as Keras has them (gates z, r, candidate), inputs,
and the state after each step. Keras is in the extra ``bench``.
"""

import json
from pathlib import Path

import keras
import numpy as np
import torch

FIXTURE = Path(__file__).parents[2] / "tests" / "fixtures" / "keras-gru.json"


def main() -> None:
    """Writes the fixture."""
    keras.config.set_floatx("float64")  # of weights, inputs and first states
    draw = np.random.default_rng(0)
    layer = keras.layers.GRU(4, reset_after=False, return_sequences=True)
    x = draw.normal(size=(2, 5, 3))
    layer.build(x.shape)
    weights = [draw.normal(size=each.shape) for each in layer.weights]
    layer.set_weights(weights)
    names = ("kernel", "recurrent_kernel", "bias")
    found = {name: value.tolist() for name, value in zip(names, weights, strict=True)}
    y = np.asarray(layer(torch.tensor(x)).detach())
    found |= {"keras": keras.__version__, "x": x.tolist(), "y": y.tolist()}
    FIXTURE.write_text(json.dumps(found) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
