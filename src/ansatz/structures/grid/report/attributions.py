"""Attributions of some grids by several methods, and how far their sums are off."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz.attribution import grad_cam, integrated_gradients, last_maps, occlusion, score
from ansatz.attribution.target import resolved
from ansatz.figures.number import number, percent
from ansatz.layers.mode import evaluation_mode

STEPS = 32  # points on the way from the baseline, at least
ENOUGH = 0.01  # of the mean difference that a sum may miss; else the points are doubled
PARTS = {1: 16, 2: 8, 3: 4}  # of an axis that a window covers one of, by the number of axes
NUMBERS = 2**21  # cells that are computed with at once


class Attributions(NamedTuple):
    """What outputs rest on.

    Args:
        maps: ``(B, *size)`` by the name of the method; channels are summed.
        start: ``(B,)``, the outputs at the baseline.
        gain: ``(B,)``, by how much the outputs at the examples are larger.
        gap: ``(B,)``, by how much the sums of the integrated gradients are larger than that.
        steps: points that these were computed at.
    """

    maps: dict[str, NDArray[np.float64]]
    start: NDArray[np.float64]
    gain: NDArray[np.float64]
    gap: NDArray[np.float64]
    steps: int

    def completeness(self) -> str:
        """How nearly the integrated gradients add up, in words."""
        off, mean = float(np.abs(self.gap).max()), float(np.abs(self.gain).mean())
        share = f" ({percent(off / mean, 2)})" if mean > 0 else ""
        return (
            f"with {self.steps} points on the way their sum misses it by {number(off, 2)} at most, "
            f"where the differences are {number(mean, 3)} on average{share}"
        )


def attributions(
    network: nn.Module,
    x: Tensor,
    target: Tensor | int | Callable[[Tensor], Tensor] | None = None,
    *,
    baseline: float = 0.0,
    most: int = 256,
    overlap: bool = True,
) -> Attributions:
    """Integrated gradients, Grad-CAM and occlusion of some signals, images or volumes.

    Grad-CAM needs maps of several cells: a network without any goes without it. The windows of
    occlusion cover a sixteenth of a signal, an eighth of each axis of an image and a quarter of
    those of a volume. Integrated gradients take 32 points, and twice as many
    again while a sum misses more than a hundredth of what it should be.

    Args:
        network: on grids.
        x: as the network takes them.
        target: which output; None: the largest of each example.
        baseline: where nothing is shown, as the network sees it.
        most: points of the integrated gradients.
        overlap: whether windows overlap by half; else they stand side by side.

    Shapes:
        - x: ``(B, C, *size)``.
    """
    at, start, gain = _outputs(network, x, target, baseline)
    batch = max(len(x), min(256, NUMBERS // x[0].numel()))
    steps = STEPS // 2
    while True:
        steps *= 2
        shares = integrated_gradients(
            network, x, at, baseline=baseline, steps=steps, batch_size=batch
        )
        gap = shares.double().flatten(1).sum(1) - gain
        if 2 * steps > most or float(gap.abs().max()) <= ENOUGH * float(gain.abs().mean()):
            break
    found = {"integrated gradients": shares.sum(1)}
    if _has_maps(network, x):
        found["Grad-CAM"] = grad_cam(network, x, at)
    window = tuple(-(-cells // PARTS[x.ndim - 2]) for cells in x.shape[2:])
    found["occlusion"] = occlusion(
        network,
        x,
        at,
        window=window,
        stride=None if overlap else window,
        fill=baseline,
        batch_size=batch,
    )
    return Attributions(
        {name: _numbers(value) for name, value in found.items()},
        _numbers(start),
        _numbers(gain),
        _numbers(gap),
        steps,
    )


def _outputs(
    network: nn.Module, x: Tensor, target: Any, baseline: float
) -> tuple[Any, Tensor, Tensor]:
    """What is explained, its value at the baseline, and by how much it is larger at x."""
    with evaluation_mode(network), torch.no_grad():
        output = network(x)
        at = resolved(output, target)
        start = score(network(torch.full_like(x, baseline)), at).double()
        return at, start, score(output, at).double() - start


def _has_maps(network: nn.Module, x: Tensor) -> bool:
    try:
        last_maps(network, x)
    except ValueError:
        return False
    return True


def _numbers(value: Tensor) -> NDArray[np.float64]:
    return value.detach().double().cpu().numpy()
