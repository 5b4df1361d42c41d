"""Images moved, turned and made noisy, by more and more: what becomes of the right answers."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn import functional

Predict = Callable[[NDArray[np.uint8]], ArrayLike]
ANGLES = (0.0, 5.0, 10.0, 20.0, 30.0, 45.0)  # degrees
NOISE = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3)  # of the range of a byte
PIECE = 256  # images at once
STEPS = (0.0, 1 / 32, 1 / 16, 1 / 8, 3 / 16, 1 / 4)  # of the smaller side


class Curve(NamedTuple):
    """Right answers at each strength of a perturbation.

    Args:
        name: of the perturbation.
        unit: of its strength.
        strength: from none on.
        correct: right answers at each.
        total: images.
    """

    name: str
    unit: str
    strength: list[float]
    correct: list[int]
    total: int


def perturbed(
    images: NDArray[np.uint8], kind: str, strength: float, *, seed: int = 0
) -> NDArray[np.uint8]:
    """Images shifted, turned or made noisy, each in a direction of its own.

    A shift goes ``strength`` cells in one of eight directions, a rotation ``strength`` degrees
    either way with interpolation between cells; what comes in from outside is the nearest cell of
    the edge. Noise is normal, independent for every number, with a standard deviation of
    ``strength`` times 255, and clipped. The directions and the noise depend on the seed alone, so
    that the same images meet the same ones at every strength.

    Args:
        images: bytes.
        kind: ``"shift"``, ``"rotation"`` or ``"noise"``.
        strength: cells, degrees, or a share.
        seed: of the directions and the noise.

    Shapes:
        - images: ``(N, H, W, C)``, and so the result.
    """
    if strength == 0:
        return images
    rng = np.random.default_rng(seed)
    if kind == "noise":
        noise = 255 * strength * rng.standard_normal(images.shape, dtype=np.float32)
        return (images + noise).round().clip(0, 255).astype(np.uint8)
    turn, right, down = np.zeros((3, len(images)))
    if kind == "rotation":
        turn = np.radians(strength) * rng.choice([-1, 1], len(images))
    elif kind == "shift":
        eight = np.array([(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j])
        right, down = strength * eight[rng.integers(8, size=len(images))].T
    else:
        raise ValueError(f"kind of perturbed must be shift, rotation or noise, got {kind!r}.")
    return _warped(images, turn, right, down)


def robustness(
    predict: Predict,
    images: NDArray[np.uint8],
    truth: ArrayLike,
    *,
    seed: int = 0,
) -> list[Curve]:
    """Right answers under shifts, rotations and noise of growing strength.

    Args:
        predict: bytes ``(N, H, W, C)`` to probabilities ``(N, K)``.
        images: of test rows.
        truth: codes of their classes.
        seed: of the directions and the noise.
    """
    code = np.asarray(truth)
    side = min(images.shape[1:3])
    shifts = sorted({float(round(step * side)) for step in STEPS})
    found = []
    for name, unit, strengths in (
        ("shift", "cells", shifts),
        ("rotation", "degrees", list(ANGLES)),
        ("noise", "% of the range", list(NOISE)),
    ):
        correct = [_right(predict, images, code, name, strength, seed) for strength in strengths]
        shown = [100 * s for s in strengths] if name == "noise" else strengths
        found.append(Curve(name, unit, shown, correct, len(code)))
    return found


def _right(
    predict: Predict,
    images: NDArray[np.uint8],
    code: NDArray[Any],
    kind: str,
    strength: float,
    seed: int,
) -> int:
    """Right answers, a piece of the images after the other: moved images are numbers, not bytes."""
    found = 0
    for first in range(0, len(images), PIECE):
        piece = slice(first, first + PIECE)
        probs = np.asarray(predict(perturbed(images[piece], kind, strength, seed=seed + first)))
        found += int((probs.argmax(1) == code[piece]).sum())
    return found


def _warped(
    images: NDArray[np.uint8], turn: NDArray[Any], right: NDArray[Any], down: NDArray[Any]
) -> NDArray[np.uint8]:
    """Each image turned anticlockwise and then moved, by its own numbers."""
    height, width = images.shape[1:3]
    cos, sin = np.cos(turn), np.sin(turn)
    # From a place of the result back to the image; places run from -1 to 1 along either side.
    there = np.stack(
        [
            np.stack([cos, -sin * height / width, -2 * right / width], 1),
            np.stack([sin * width / height, cos, -2 * down / height], 1),
        ],
        1,
    )
    x = torch.from_numpy(images).permute(0, 3, 1, 2).to(torch.float32)
    places = functional.affine_grid(
        torch.from_numpy(there).to(x.dtype), list(x.shape), align_corners=False
    )
    moved: Tensor = functional.grid_sample(x, places, padding_mode="border", align_corners=False)
    return moved.permute(0, 2, 3, 1).round().clamp(0, 255).to(torch.uint8).numpy()
