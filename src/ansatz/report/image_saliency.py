"""What predictions of images rest on: attributions side by side."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn import functional

from ansatz.attribution import grad_cam, integrated_gradients, last_maps, occlusion
from ansatz.report.image_montage import blended, pictures, strip
from ansatz.report.number import percent
from ansatz.report.printable import printable
from ansatz.report.section import Figure, Section

SHOWN = 6  # images
SIDE = 96  # cells of a picture


def attributions(
    network: nn.Module,
    x: Tensor,
    target: Tensor | int | None = None,
    *,
    baseline: Tensor | float = 0.0,
) -> dict[str, NDArray[np.float64]]:
    """Integrated gradients, Grad-CAM and occlusion of some images.

    Grad-CAM needs maps of several cells: a network without any goes without it.

    Args:
        network: on images.
        x: as the network takes them.
        target: which output; None: the largest of each image.
        baseline: where nothing is shown, as the network sees it.

    Shapes:
        - x: ``(B, C, H, W)``.
        - returns: ``(B, H, W)`` by the name of the method; channels are summed.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from ansatz.report.image_saliency import attributions
        >>> network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 3))
        >>> list(attributions(network, torch.randn(2, 1, 8, 8)))
        ['integrated gradients', 'Grad-CAM', 'occlusion']
    """
    found = {
        "integrated gradients": integrated_gradients(
            network, x, target, baseline=baseline, steps=32
        ).sum(1)
    }
    if _has_maps(network, x):
        found["Grad-CAM"] = grad_cam(network, x, target)
    found["occlusion"] = occlusion(network, x, target, fill=baseline)
    return {name: value.double().cpu().numpy() for name, value in found.items()}


def section(
    images: NDArray[Any],
    maps: Mapping[str, NDArray[Any]],
    truth: ArrayLike,
    probabilities: ArrayLike,
    classes: Sequence[Any],
    *,
    baseline: str = "black",
) -> Section | None:
    """Some images, a row for each, beside what their predictions rest on.

    Args:
        images: a few.
        maps: for each method a number per cell, see :func:`attributions`.
        truth: codes of their classes.
        probabilities: predicted.
        classes: names by code.
        baseline: what covers or replaces a cell, in words.

    Shapes:
        - images: ``(N, H, W, C)`` or ``(N, H, W)``.
        - maps: ``(N, H, W)`` each.
        - truth: ``(N,)``; probabilities: ``(N, K)``.

    Example:
        >>> import numpy as np
        >>> from ansatz.report.image_saliency import section
        >>> images = np.zeros((2, 8, 8), np.uint8)
        >>> maps = {"occlusion": np.random.randn(2, 8, 8)}
        >>> section(images, maps, [0, 1], np.eye(2), ["cat", "dog"]).title
        'What predictions rest on'
    """
    count = min(len(images), SHOWN)
    if not count or not maps:
        return None
    code = np.asarray(truth)[:count]
    probs = np.asarray(probabilities, dtype=np.float64)[:count]
    top = probs.argmax(1)
    ground = pictures(images[:count], SIDE)
    columns = [ground, *(_heat(ground, np.asarray(heat)[:count]) for heat in maps.values())]
    shown = np.stack(columns, 1).reshape(-1, *ground.shape[1:])
    labels = [
        f"{printable(classes[top[i]], 14)}: {percent(float(probs[i, top[i]]))}\n"
        + ("right" if top[i] == code[i] else f"is {printable(classes[code[i]], 14)}")
        for i in range(count)
    ]
    names = ["image", *maps]
    svg = strip(shown, [], columns=len(names), lines=0, side=1.15, labels=labels, heads=names)
    caption = (
        "Blue speaks for the predicted class, vermilion against it, each on its own scale. "
        f"Integrated gradients share out the difference to a {baseline} image among the cells; "
        f"occlusion is what the score loses when a window is made {baseline}; Grad-CAM, coarse and "
        "never negative, weighs the maps of the last convolution."
    )
    lead = (
        "Cells that the score of the predicted class rests on, by methods that err in different "
        "ways: where they agree, the network looks there. They explain the network, not the world."
    )
    said = "; ".join(label.replace("\n", ", ") for label in labels)
    figure = Figure(svg, caption, f"Attributions ({', '.join(maps)}) of images: {said}.")
    return Section("What predictions rest on", lead, [figure])


def _has_maps(network: nn.Module, x: Tensor) -> bool:
    try:
        last_maps(network, x)
    except ValueError:
        return False
    return True


def _heat(ground: NDArray[np.uint8], heat: NDArray[Any]) -> NDArray[np.uint8]:
    if heat.shape[1:] != ground.shape[1:3]:
        heat = _averaged(heat, ground.shape[1:3])
    return blended(ground, heat)


def _averaged(heat: NDArray[Any], size: tuple[int, ...]) -> NDArray[Any]:
    values = torch.as_tensor(np.ascontiguousarray(heat))[:, None]
    return functional.interpolate(values, list(size), mode="area")[:, 0].numpy()
