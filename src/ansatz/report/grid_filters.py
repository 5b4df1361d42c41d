"""What the first convolution of a fitted network looks for."""

import numpy as np

from ansatz.attribution import convolutions, feature_maps, filters
from ansatz.figures.section import Section
from ansatz.report import image_filters
from ansatz.report.evidence import Evidence
from ansatz.report.grid_network import inputs_of, one_network, some_rows
from ansatz.report.grid_pictures import pictures_of


def section(evidence: Evidence) -> Section | None:
    """The filters of the first convolution and its maps of one test image; None without one.

    Args:
        evidence: of a model of grids on its test rows.

    Example:
        >>> import numpy as np
        >>> from ansatz import Segmenter
        >>> from ansatz.report import gather
        >>> from ansatz.report.grid_filters import section
        >>> images = np.random.default_rng(0).normal(size=(6, 8, 8)).astype(np.float32)
        >>> model = Segmenter(network="linear_pixels", epochs=1).fit(images, images > 0)
        >>> section(gather(model, images, images > 0)).title
        'What the first layer looks for'
    """
    network = one_network(evidence).network
    if evidence.unit != "images" or not convolutions(network):
        return None
    rows = some_rows(evidence, 1)
    maps = feature_maps(network, inputs_of(evidence, rows))[0]
    image = pictures_of(evidence.X[rows])[0]
    shown = maps.float().numpy() if maps.ndim == 3 else None
    return image_filters.section(filters(network).float().numpy(), image, _smaller(shown))


def _smaller(maps: np.ndarray | None) -> np.ndarray | None:
    """Maps of one cell show nothing."""
    return maps if maps is not None and maps[0].size > 1 else None
