"""The neocognitron: cells for features and cells for their places, in turn."""

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d

from ansatz.errors import UsageError
from ansatz.layers.limits import require_whole
from ansatz.networks.grid_inputs import read_grid, require_grid
from ansatz.networks.grid_layers import adaptive_pool, readout
from ansatz.spec import Inputs

_WINDOW = 5  # pixels along each axis that an S-cell and a C-cell see
_DISTANCE = 1.5  # of the two edges of a contour from its middle, in pixels


class SCells(nn.Module):
    r"""Cells that answer where a patch looks like their template, however bright it is.

    .. math:: u_k = \frac{1}{1 - \theta} \max(0, a_k^T p - \theta \|p\|)
              = \|p\| \frac{\max(0, \cos(a_k, p) - \theta)}{1 - \theta}

    p is the patch of all channels around a place and :math:`a_k` a template of length 1: the
    answer is the patch's own length where they point the same way, and 0 where the cosine is
    below the threshold. Inhibition by the length of the patch is what makes a cell selective.

    Args:
        templates: :math:`a_k`, fixed: ``(K, C, 5, 5)``; they are scaled to length 1.
        threshold: :math:`\theta` in [0, 1).

    Shapes:
        - x: ``(B, C, H, W)``, not negative; returns ``(B, K, H, W)``.

    References:
        Fukushima (2011), Increasing robustness against background noise: visual pattern
        recognition by a neocognitron, section 3. Fukushima (1980) divides by the inhibition.
    """

    templates: Tensor

    def __init__(self, templates: Tensor, threshold: float = 0.5) -> None:
        super().__init__()
        if not 0 <= threshold < 1:
            raise UsageError(f"threshold of SCells must be in [0, 1), got {threshold!r}.")
        self.threshold = float(threshold)
        if not templates.is_meta:  # shapes without memory: nothing to scale
            templates = templates / templates.flatten(1).norm(dim=1)[:, None, None, None]
        self.register_buffer("templates", templates)

    def forward(self, x: Tensor) -> Tensor:
        excitation = conv2d(x, self.templates, padding=_WINDOW // 2)
        energy = conv2d(x.square(), torch.ones_like(self.templates[:1]), padding=_WINDOW // 2)
        # The square root has no finite slope at 0.
        inhibition = self.threshold * energy.clamp(min=1e-12).sqrt()
        return torch.relu(excitation - inhibition) / (1 - self.threshold)


class CCells(nn.Module):
    """Cells that answer wherever near them a feature is: a blur, and every other cell is kept.

    Args:
        sigma: standard deviation of the Gaussian blur, in pixels.

    Shapes:
        - x: ``(B, K, H, W)``; returns ``(B, K, ceil(H / 2), ceil(W / 2))``.

    References:
        Fukushima (1980), Neocognitron: a self-organizing neural network model for a mechanism of
        pattern recognition unaffected by shift in position, section 2.
    """

    blur: Tensor

    def __init__(self, sigma: float = 1.0) -> None:
        super().__init__()
        self.register_buffer("blur", _tensor(_gaussian(0.0, 0.0, sigma))[None, None])

    def forward(self, x: Tensor) -> Tensor:
        B, K, H, W = x.shape
        planes = x.reshape(B * K, 1, H, W)
        blurred = conv2d(planes, self.blur, stride=2, padding=_WINDOW // 2)
        return blurred.reshape(B, K, *blurred.shape[2:])


class Neocognitron(nn.Module):
    r"""Fixed S- and C-cells in several stages, and a linear map on top that is trained.

    The image (its channels averaged) first meets cells that see contrast: brighter than around,
    darker than around. The S-cells of stage 1 look for an edge in each of ``orientations``
    directions; those of stage 2 for two edges in a row, straight on or bent to either side; each
    later stage for two contours in a row that are bent alike. So features grow with the stages
    while C-cells blur their places. Templates are what the cells before answer to such a
    stimulus. Nothing below the linear map is trained.

    Args:
        inputs: an image of at least 8 pixels along each axis; a number of channels for any size.
        outputs: :math:`P`.
        stages: pairs of S- and C-layers.
        orientations: directions of an edge, evenly around the circle.
        threshold: :math:`\theta` of the S-cells of stage 1; a third of it in each next stage,
            since a larger patch holds more than the template.
        places: pixels along each axis that the last maps are averaged to.
        generator: where the weights of the linear map are drawn from.

    Shapes:
        - x: ``(B, C, H, W)``; returns ``(B, P)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import Neocognitron
        >>> network = Neocognitron(1, 10)
        >>> network.features(torch.rand(2, 1, 28, 28)).shape
        torch.Size([2, 24, 4, 4])
        >>> sum(p.numel() for p in network.parameters())  # of the linear map
        3850

    References:
        Fukushima (1980), Neocognitron: a self-organizing neural network model for a mechanism of
        pattern recognition unaffected by shift in position.
    """

    heads: tuple[str, ...] = ("output",)  # the maps of the outcome, not of x

    contrast: Tensor

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        stages: int = 3,
        orientations: int = 8,
        threshold: float = 0.35,
        places: int = 4,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.grid = read_grid("neocognitron", inputs, dimensions=(2,), least=8)
        require_whole("stages of neocognitron", stages, high=8)
        require_whole("orientations of neocognitron", orientations, low=4, high=64)
        require_whole("places of neocognitron", places, high=64)
        self.register_buffer("contrast", _tensor(_center_surround())[None, None])
        layers: list[nn.Module] = []
        for stage in range(stages):
            templates = _edges(orientations) if stage == 0 else _contours(orientations, stage)
            layers += [SCells(_tensor(templates), threshold / 3**stage), CCells()]
        self.stages = nn.Sequential(*layers)
        planes = orientations * (1 if stages == 1 else 3)
        self.pool = adaptive_pool(2, places)
        self.output = readout(planes * places**2, outputs, generator)

    def layer_groups(self) -> list[list[nn.Module]]:
        """Its one trained layer."""
        return [[self.output]]

    def features(self, x: Tensor) -> Tensor:
        """The answers of the last C-cells, ``(B, K, H', W')``."""
        require_grid("neocognitron", self.grid, x, least=8, network=self)
        gray = x.mean(1, keepdim=True)
        seen = conv2d(gray, self.contrast, padding=_WINDOW // 2)  # (B, 1, H, W)
        return self.stages(torch.cat([torch.relu(seen), torch.relu(-seen)], 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.output(self.pool(self.features(x)).flatten(1))


def _tensor(values: np.ndarray) -> Tensor:
    return torch.tensor(values.tolist())  # of torch's default type, on its default device


def _places() -> tuple[np.ndarray, np.ndarray]:
    half = np.arange(_WINDOW) - _WINDOW // 2
    down, right = np.meshgrid(half, half, indexing="ij")
    return right.astype(float), -down.astype(float)  # x to the right, y upwards


def _gaussian(x: float, y: float, sigma: float) -> np.ndarray:
    right, up = _places()
    bump = np.exp(-((right - x) ** 2 + (up - y) ** 2) / (2 * sigma**2))
    return bump / bump.sum()


def _center_surround() -> np.ndarray:
    """A narrow Gaussian minus a wide one: it sums to 0, so even brightness goes unseen."""
    return _gaussian(0.0, 0.0, 0.7) - _gaussian(0.0, 0.0, 1.5)


def _edges(orientations: int) -> np.ndarray:
    """Gives contrast cells' answers to edges in K directions, bright on the left: (K, 2, 5, 5)."""
    right, up = _places()
    templates = []
    for k in range(orientations):
        angle = 2 * math.pi * k / orientations
        across = -math.sin(angle) * right + math.cos(angle) * up  # distance to the left
        bump = across * np.exp(-(across**2) / 2)  # the second difference of a smooth step
        templates.append([np.maximum(bump, 0), np.maximum(-bump, 0)])
    return np.array(templates)


def _contours(orientations: int, stage: int) -> np.ndarray:
    """Two edges in a row, the second rotated by the bend: (3 K, planes before, 5, 5)."""
    K = orientations
    before = K if stage == 1 else 3 * K
    templates = np.zeros((3 * K, before, _WINDOW, _WINDOW))
    for number, bend in enumerate((-1, 0, 1)):
        for k in range(K):
            for sign, direction in ((-1, k), (1, (k + bend) % K)):
                angle = 2 * math.pi * direction / K
                plane = direction if stage == 1 else number * K + direction
                x, y = (sign * _DISTANCE * part for part in (math.cos(angle), math.sin(angle)))
                templates[number * K + k, plane] += _gaussian(x, y, 1.0)
    return templates
