"""Writes tests/fixtures/neural-tangents.json: kernels of infinite width by neural-tangents.

In an environment of its own: ``pip install jax==0.4.34 jaxlib==0.4.34 neural-tangents`` and NumPy
below 2. In float64: the tangent kernels of its float32 are off by 6e-4.
"""

import json
from pathlib import Path

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)

from neural_tangents import stax  # noqa: E402  # after the precision is set

OUT = Path(__file__).parents[2] / "tests" / "fixtures" / "neural-tangents.json"
GAIN = 1.5  # of LeCun's scheme
LAYERS = {
    "relu": stax.Relu(),
    "leaky_relu": stax.LeakyRelu(0.2),
    "erf": stax.Erf(),
    "gelu": stax.Gelu(),
    "sin": stax.Sin(),
}


def main() -> None:
    """Kernels of two hidden layers for each activation, and of small convolutions."""
    draw = np.random.default_rng(0)
    table = draw.normal(size=(3, 3)), draw.normal(size=(2, 3))
    grid = (draw.normal(size=(2, 2, 4, 4)), draw.normal(size=(2, 2, 4, 4)))
    found = {}
    for name, activation in LAYERS.items():
        dense = [stax.Dense(4, W_std=GAIN, b_std=None), activation] * 2
        found[f"dense {name}"] = kernels([*dense, stax.Dense(1, W_std=GAIN)], table)
    for name in ("relu", "erf"):
        hidden = [stax.Conv(4, (3, 3), padding="SAME", W_std=GAIN), LAYERS[name]] * 2
        for kind, end in (("flat", stax.Flatten()), ("pool", stax.GlobalAvgPool())):
            found[f"{kind} {name}"] = kernels([*hidden, end, stax.Dense(1, W_std=GAIN)], grid)
    OUT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def kernels(layers: list, rows: tuple) -> dict:
    """The inputs and both kernels of a network; channels are last there, second here."""
    _, _, kernel = stax.serial(*layers)
    moved = [np.moveaxis(each, 1, -1) if each.ndim == 4 else each for each in rows]
    both = kernel(*moved, ("nngp", "ntk"))
    return {
        "x": rows[0].tolist(),
        "z": rows[1].tolist(),
        "nngp": np.asarray(both.nngp).tolist(),
        "ntk": np.asarray(both.ntk).tolist(),
    }


if __name__ == "__main__":
    main()
