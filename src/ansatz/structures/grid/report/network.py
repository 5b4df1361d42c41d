"""Reports the network of a model of grids: its layers, filters and feature maps."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz.attribution import convolutions, feature_maps, filters
from ansatz.errors import UsageError
from ansatz.figures.montage import BLUE, VERMILION, pictures, strip
from ansatz.figures.number_format import number
from ansatz.figures.section import Cell, Figure, Section, Table, Text
from ansatz.fitting.model import Trained
from ansatz.networks import LayerRow, summary
from ansatz.report.evidence import Evidence
from ansatz.structures.grid.report.pictures import IMAGE, nearest, pictures_of

MOST = 24  # layers that are listed


class ClassScores(nn.Module):
    """The score of each class: raw outputs; of two classes the logit with both signs.

    Args:
        trained: a network with its objective.

    Shapes:
        - x: ``(B, C, *size)``, standardised.
        - returns: ``(B, K)``.
    """

    def __init__(self, trained: Trained) -> None:
        super().__init__()
        self.network, self.objective = trained.network, trained.objective

    def forward(self, x: Tensor) -> Tensor:
        raw: Tensor = self.objective.raw(self.network, (x,))
        return torch.cat([-raw, raw], 1) if raw.shape[1] == 1 else raw


def one_network(evidence: Evidence) -> Trained:
    """Returns the trained network; of several the first."""
    networks = evidence.model.posterior.networks
    if not networks:
        raise UsageError("the model has no network.")
    return networks[0]


def inputs_of(evidence: Evidence, rows: NDArray[Any]) -> Tensor:
    """Encodes some of the test rows for the network."""
    (x,) = evidence.model.encoder.inputs(evidence.X[rows])
    return x


def some_rows(evidence: Evidence, count: int) -> NDArray[np.intp]:
    """Samples at most ``count`` test rows, in order."""
    rng = np.random.default_rng(evidence.seed)
    return np.sort(rng.permutation(len(evidence.outcome))[:count]).astype(np.intp)


def names_of(evidence: Evidence) -> list[str]:
    """Names the test examples by their files, or their numbers in the data, from 1."""
    names = evidence.X.names
    return list(names) if names is not None else [f"no. {row}" for row in evidence.rows]


def layer_table(evidence: Evidence) -> Table:
    """Lists the layers from input to output; of many those with weights."""
    found = summary(one_network(evidence).network, evidence.model.encoder.spec)
    listed, left = _chosen(found.rows)
    rows: list[list[Cell]] = [
        [
            row.name,
            row.type,
            " × ".join(map(str, row.output_shape)),
            f"{row.parameters:,}",
            f"{row.multiply_adds:,}",
            " × ".join(map(str, row.receptive_field)) or None,
        ]
        for row in listed
    ]
    several = len(evidence.model.posterior.networks) > 1
    whose = "One of the networks" if several else "The network"
    more = f" {left} layers are left out, those without weights first." if left else ""
    return Table(
        ["layer", "type", "output", "parameters", "multiply-adds", "receptive field"],
        rows,
        f"{whose}: {found.depth} layers of weights on the longest path, "
        f"{number(found.parameters)} parameters, {found.multiply_adds:,} multiply-adds for one "
        "example. The receptive field is the part of the input that one unit depends on."
        f"{more}",
    )


def _chosen(rows: tuple[LayerRow, ...]) -> tuple[list[LayerRow], int]:
    """Chooses all of few layers, else those with weights, of many the first and the last."""
    if len(rows) <= MOST:
        return list(rows), 0
    weighty = [row for row in rows if row.multiply_adds > 0]
    if len(weighty) > MOST:
        weighty = weighty[: MOST // 2] + weighty[-MOST // 2 :]
    return weighty, len(rows) - len(weighty)


FILTERS = 64
MAPS = 31  # beside the image


def section(evidence: Evidence) -> Section | None:
    """Reports filters and feature maps of the first convolution; None without one."""
    network = one_network(evidence).network
    if evidence.unit != IMAGE or not convolutions(network):
        return None
    rows = some_rows(evidence, 1)
    maps = feature_maps(network, inputs_of(evidence, rows))[0]
    image = pictures_of(evidence.X[rows])[0]
    shown = maps.float().numpy() if maps.ndim == 3 else None
    if shown is not None and shown[0].size == 1:  # a map of one pixel shows nothing
        shown = None
    return filters_section(filters(network).float().numpy(), image, shown)


def filters_section(
    kernels: NDArray[Any],
    image: NDArray[Any] | None = None,
    maps: NDArray[Any] | None = None,
    *,
    layer: str = "the first convolution",
) -> Section | None:
    """Reports the filters of a convolution and its maps of one image."""
    kernels = np.asarray(kernels, dtype=np.float64)
    if kernels.ndim != 4 or not kernels.size:
        return None
    count, channels, height, width = kernels.shape
    parts: list[Text | Table | Figure] = []
    if height * width > 1:
        parts.append(_filter_figure(kernels, layer))
    if image is not None and maps is not None and len(maps):
        parts.append(_map_figure(image, np.asarray(maps, dtype=np.float64), layer))
    if not parts:
        return None
    lead = (
        f"{count} filters of {height} × {width} pixels and {channels} "
        f"{'channel' if channels == 1 else 'channels'} in {layer}. Trained filters show edges, "
        "spots and colours; untrained ones noise."
    )
    return Section("Filters and feature maps", lead, parts)


def _filter_figure(kernels: NDArray[np.float64], layer: str) -> Figure:
    chosen = kernels[:FILTERS]
    channels = chosen.shape[1]
    top = np.abs(chosen).reshape(len(chosen), -1).max(1)[:, None, None, None]
    scaled = chosen / np.where(top > 0, top, 1)  # -1 to 1, zero in the middle
    if channels == 3:
        shown = np.moveaxis(127.5 + 127.5 * scaled, 1, -1).round().astype(np.uint8)
        how = "grey is zero, colours are positive weights"
    else:
        shown = _signed(scaled.mean(1))
        how = "blue is positive, vermilion negative, white zero"
        how += "" if channels == 1 else f"; the mean over {channels} channels"
    columns = min(16, max(8, -(-len(shown) // 4)))
    rest = len(kernels) - len(chosen)
    more = f" {rest} more are not shown." if rest else ""
    return Figure(
        strip(shown, [], columns=columns, lines=0, side=0.5),
        f"The filters of {layer}, each on its own scale: {how}.{more}",
        f"{len(chosen)} small pictures of filters.",
    )


def _signed(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Colours zero white, positive numbers blue, negative ones vermilion."""
    strength = np.abs(values)[..., None]
    tint = np.where(values[..., None] < 0, np.array(VERMILION), np.array(BLUE))
    mixed = 255 * (1 - strength) + tint * strength
    colours: NDArray[np.uint8] = mixed.round().clip(0, 255).astype(np.uint8)
    return colours


def _map_figure(image: NDArray[Any], maps: NDArray[np.float64], layer: str) -> Figure:
    chosen = maps[:MAPS]
    low, high = (bound(chosen, axis=(1, 2), keepdims=True) for bound in (np.min, np.max))
    grey = (255 * (chosen - low) / np.where(high > low, high - low, 1)).astype(np.uint8)
    example = pictures(np.asarray(image)[None], 64)
    seen = nearest(pictures(grey, 64), example.shape[1:3])
    shown = np.concatenate([example, seen])
    names = ["image", *(str(k) for k in range(len(seen)))]
    rest = len(maps) - len(chosen)
    more = f" {rest} more are not shown." if rest else ""
    return Figure(
        strip(shown, names, columns=_columns(len(shown)), side=0.75),
        f"An image and its feature maps by {layer}, numbered as the filters; each from its "
        f"smallest (black) to its largest value (white).{more}",
        f"An image and {len(seen)} feature maps of it.",
    )


def _columns(count: int) -> int:
    """Chooses 7 to 10 columns with the fewest empty places in the last row."""
    return min(range(10, 6, -1), key=lambda columns: -count % columns)
