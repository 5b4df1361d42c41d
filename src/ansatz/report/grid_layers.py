"""The layers of a network on grids as a table: shapes, parameters, work, receptive fields."""

from ansatz.figures.number import number
from ansatz.figures.section import Cell, Table
from ansatz.networks import LayerRow, summary
from ansatz.report.evidence import Evidence

MOST = 24  # layers that are listed


def layer_table(evidence: Evidence) -> Table:
    """The layers with weights, or of few layers all, from the input to the output.

    Args:
        evidence: of a model of grids.

    Example:
        >>> import numpy as np
        >>> from ansatz import Classifier
        >>> from ansatz.report import gather
        >>> from ansatz.report.grid_layers import layer_table
        >>> images = np.random.default_rng(0).normal(size=(20, 12, 12)).astype(np.float32)
        >>> model = Classifier(network="linear_grid", epochs=1).fit(images, np.arange(20) % 2)
        >>> layer_table(gather(model, images, np.arange(20) % 2)).head[:3]
        ['layer', 'type', 'output']
    """
    model = getattr(evidence.model.model_, "members", [evidence.model.model_])[0]
    found = summary(model.network, model.preprocessor.spec)
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
    members = len(getattr(evidence.model.model_, "members", [None]))
    whose = "One of the networks" if members > 1 else "The network"
    more = f" {left} layers are left out, those without weights first." if left else ""
    return Table(
        ["layer", "type", "output", "parameters", "multiply-adds", "receptive field"],
        rows,
        f"{whose}: {found.depth} layers of weights on the longest way, "
        f"{number(found.parameters)} parameters, {found.multiply_adds:,} multiply-adds for one "
        "example. The receptive field is how many cells of the input one unit sees."
        f"{more}",
    )


def _chosen(rows: tuple[LayerRow, ...]) -> tuple[list[LayerRow], int]:
    """All of few layers; else those with weights, and of many of these the first and the last."""
    if len(rows) <= MOST:
        return list(rows), 0
    weighty = [row for row in rows if row.multiply_adds > 0]
    if len(weighty) > MOST:
        weighty = weighty[: MOST // 2] + weighty[-MOST // 2 :]
    return weighty, len(rows) - len(weighty)
