"""The network behind a model of grids: as attributions take it, and its layers as a table."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.figures.number import number
from ansatz.figures.section import Cell, Table
from ansatz.fitting.model import Trained
from ansatz.networks import LayerRow, summary
from ansatz.report.evidence import Evidence

MOST = 24  # layers that are listed


class ClassScores(nn.Module):
    """A number for each class: the raw numbers of a likelihood of classes, of two classes both signs.

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
    """The trained network; of several the first."""
    networks = evidence.model.posterior.networks
    if not networks:
        raise UsageError("there is no network to look into.")
    return networks[0]


def inputs_of(evidence: Evidence, rows: NDArray[Any]) -> Tensor:
    """What the network takes for some of the test rows."""
    (x,) = evidence.model.encoder.inputs(evidence.X[rows])
    return x


def some_rows(evidence: Evidence, count: int) -> NDArray[np.intp]:
    """So many test rows drawn at random, in order; all where there are no more."""
    rng = np.random.default_rng(evidence.seed)
    return np.sort(rng.permutation(len(evidence.outcome))[:count]).astype(np.intp)


def names_of(evidence: Evidence) -> list[str]:
    """What the test examples are called: their files, or their numbers in the data, from 1."""
    names = evidence.X.names
    return list(names) if names is not None else [f"no. {row}" for row in evidence.rows]


def layer_table(evidence: Evidence) -> Table:
    """The layers with weights, or of few layers all, from the input to the output."""
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
