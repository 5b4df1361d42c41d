"""What predictions of images rest on: each image beside its attributions."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from ansatz.figures.montage import blended, pictures, strip

SHOWN = 6  # images
SIDE = 96  # cells of a picture


def draw(
    images: NDArray[Any],
    maps: Mapping[str, NDArray[Any]],
    labels: Sequence[str],
    *,
    name: str = "image",
) -> str:
    """Some images, a row for each, beside what their predictions rest on.

    Args:
        images: a few.
        maps: for each method a number per cell, see
            :func:`ansatz.report.attributions.attributions`.
        labels: of the images, on their left.
        name: what an image is called.

    Shapes:
        - images: ``(N, H, W, C)`` or ``(N, H, W)``.
        - maps: ``(N, H, W)`` each.

    Returns:
        The ``<svg>`` element.

    Example:
        >>> import numpy as np
        >>> from ansatz.report.image_saliency import draw
        >>> maps = {"occlusion": np.random.randn(2, 8, 8)}
        >>> draw(np.zeros((2, 8, 8), np.uint8), maps, ["cat", "dog"]).startswith("<svg")
        True
    """
    ground = pictures(images, SIDE)
    columns = [ground, *(_heat(ground, np.asarray(heat)) for heat in maps.values())]
    shown = np.stack(columns, 1).reshape(-1, *ground.shape[1:])
    names = [name, *maps]
    return strip(shown, [], columns=len(names), lines=0, side=1.15, labels=labels, heads=names)


def _heat(ground: NDArray[np.uint8], heat: NDArray[Any]) -> NDArray[np.uint8]:
    if heat.shape[1:] != ground.shape[1:3]:
        heat = _averaged(heat, ground.shape[1:3])
    return blended(ground, heat)


def _averaged(heat: NDArray[Any], size: tuple[int, ...]) -> NDArray[Any]:
    values = torch.as_tensor(np.ascontiguousarray(heat))[:, None]
    return functional.interpolate(values, list(size), mode="area")[:, 0].numpy()
