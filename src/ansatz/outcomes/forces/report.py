"""The report on energies and forces: parity, errors by element, and the certificate."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.data import Molecules
from ansatz.data.molecules.elements import SYMBOLS
from ansatz.figures.number_format import number
from ansatz.figures.section import Cell, Chapter, Figure, Section, Table
from ansatz.figures.style import LINEAR, MODEL, figure, thin, to_svg
from ansatz.fitting.contracts.inference import Predictive
from ansatz.metrics import Estimate
from ansatz.metrics.standard_error import influence_error, mean_estimate
from ansatz.outcomes.forces.errors import combined, errors, mean_of
from ansatz.report.baselines import Forecast
from ansatz.report.evidence import Evidence
from ansatz.report.outcome_report import OutcomeReport

MOVED = 4  # frames that the certificate moves
WORST = 5  # rows of a table
_HERE = "ansatz.outcomes.forces.report"


def section(evidence: Evidence) -> Section | None:
    """Predicted beside observed energies and forces, and the errors of each element."""
    rows: Any = evidence.job.rows
    if not len(rows):
        return None
    predictive = evidence.predictive()
    energy, force = errors(predictive, evidence.job.y)
    squares = _frame_means(force.square())
    mean = mean_estimate(squares[squares.isfinite()], evidence.weight[squares.isfinite()])
    rmse = mean.value**0.5
    error = 1.96 * influence_error(mean.influence, evidence.weight[squares.isfinite()])
    error = error / (2 * rmse) if rmse else 0.0
    per_atom = float(energy[energy.isfinite()].square().mean().sqrt())
    zero = float(_frame_means(evidence.job.y[:, 1:].square()).nanmean().sqrt())
    lead = (
        f"The root mean square error of a force is {number(rmse)} (95 % interval "
        f"{number(rmse - error)} to {number(rmse + error)}; no forces at all: {number(zero)}), "
        f"that of the energy {number(per_atom)} per atom, in the units of the data."
    )
    tables = [_elements(rows, force), _worst(evidence, force, energy)]
    return Section("Energies and forces", lead, [_parity(evidence, predictive), *tables])


def _frame_means(values: torch.Tensor) -> torch.Tensor:
    """The mean over the known numbers of each frame; nan where there are none."""
    return values.nanmean(1)


def _parity(evidence: Evidence, predictive: Predictive) -> Figure:
    rows: Any = evidence.job.rows
    y, mean = evidence.job.y, mean_of(predictive)
    width = min(y.shape[1], mean.shape[1])
    atoms = torch.from_numpy(rows.sizes).double()
    pairs = [
        (y[:, 0] / atoms, mean[:, 0] / atoms, "energy per atom"),
        (y[:, 1:width].reshape(-1), mean[:, 1:width].reshape(-1), "force"),
    ]
    with figure(6.4, 3.0) as paper:
        for axes, (seen, fitted, name) in zip(paper.subplots(1, 2), pairs, strict=True):
            known = seen.isfinite()
            a, b = thin(seen[known].numpy(), fitted[known].numpy())
            middle = float(np.mean(a)) if name != "force" and len(a) else 0.0
            ends = [float(np.min(a, initial=0.0 if middle == 0 else middle)) - middle]
            ends.append(float(np.max(a, initial=middle)) - middle)
            axes.plot(ends, ends, color=LINEAR, lw=1)
            axes.plot(a - middle, b - middle, ".", color=MODEL, ms=3, alpha=0.5)
            beside = f", less {middle:.6g}" if middle else ""
            axes.set(xlabel=f"observed {name}{beside}", ylabel="predicted")
        caption = "Each point is a test frame on the left, a component of a force on the right."
        return Figure(to_svg(paper), caption, "predicted against observed energies and forces")


def _elements(rows: Molecules, force: torch.Tensor) -> Table:
    """Errors of the forces by element."""
    error = _by_atom(force.numpy(), rows)
    found: list[list[Cell]] = []
    for kind in np.unique(rows.species):
        mine = error[rows.species == kind]
        mine = mine[np.isfinite(mine).all(1)]
        if len(mine):
            rmse = float(np.sqrt((mine**2).mean()))
            found.append([SYMBOLS[kind], len(mine), rmse, float(np.abs(mine).max())])
    return Table(["element", "atoms", "rmse of a force", "largest error"], found)


def _by_atom(padded: NDArray[np.float64], rows: Molecules) -> NDArray[np.float64]:
    cubes = padded.reshape(len(rows), -1, 3)
    there = np.arange(cubes.shape[1]) < rows.sizes[:, None]
    found: NDArray[np.float64] = cubes[there]
    return found


def _worst(evidence: Evidence, force: torch.Tensor, energy: torch.Tensor) -> Table:
    squares = _frame_means(force.square()).nan_to_num(-1.0)
    found: list[list[Cell]] = []
    for row in squares.argsort(descending=True, stable=True)[:WORST].tolist():
        cells = (float(squares[row].clamp(min=0).sqrt()), float(energy[row]))
        found.append([int(evidence.rows[row]), *cells])
    caption = "The frames whose forces are predicted worst."
    return Table(["frame", "rmse of a force", "error of the energy per atom"], found, caption)


def certificate(evidence: Evidence) -> Section | None:
    """What motions of space and exchanges of atoms change: measured on test frames."""
    rows: Any = evidence.job.rows
    if not len(rows):
        return None
    frames = rows[slice(0, MOVED)]
    draw = np.random.default_rng(evidence.seed)
    energy, forces = _numbers(evidence, frames)
    Q, _ = np.linalg.qr(draw.normal(size=(3, 3)))
    turned = frames[slice(None)]
    turned.positions = frames.positions @ Q.T + draw.normal(size=3)
    turned.box = frames.box @ Q.T
    order = _exchange(frames, draw)
    swapped = frames[slice(None)]
    swapped.positions, swapped.species = frames.positions[order], frames.species[order]
    scale = float(np.sqrt((forces**2).mean())) or 1.0
    table: list[list[Cell]] = []
    for name, moved, expected in (
        ("rotation, reflection and shift", turned, forces @ Q.T),
        ("exchange of like atoms", swapped, forces[order]),
    ):
        energy2, forces2 = _numbers(evidence, moved)
        change = float(np.abs(energy2 - energy).max())
        table.append([name, change, float(np.abs(forces2 - expected).max()) / scale])
    sums = np.abs(np.add.reduceat(forces, frames.offsets[:-1])).max() / scale
    table.append(["sum of the forces of a frame", None, float(sums)])
    largest = max(float(row[2]) for row in table if row[2] is not None)
    lead = (
        "Moving a frame moves its forces along and leaves its energy, up to rounding: the largest "
        f"violation is {largest:.1g} of the usual force."
    )
    caption = f"Largest violation over {len(frames)} test frames; forces in units of their rms."
    head = ["motion", "energy", "forces"]
    return Section("Certificate of symmetry", lead, [Table(head, table, caption)])


def _exchange(frames: Molecules, draw: np.random.Generator) -> NDArray[np.int64]:
    """A permutation of the atoms of each frame."""
    parts = [
        draw.permutation(n) + first for n, first in zip(frames.sizes, frames.offsets, strict=False)
    ]
    return np.concatenate(parts)


def _numbers(
    evidence: Evidence, frames: Molecules
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    mean, _ = combined(evidence.model.posterior.components(frames))
    return mean[:, 0].numpy(), _by_atom(mean[:, 11:].numpy(), frames)


class ForcesReport(OutcomeReport):
    """The contribution of energies and forces."""

    prediction = "predicted energy"

    def chapters(self) -> list[Chapter]:
        """Lists the chapters on parity and on the certificate."""
        return [
            Chapter(41, "energies and forces", f"{_HERE}:section"),
            Chapter(42, "certificate of symmetry", f"{_HERE}:certificate"),
        ]

    def calibration(self, evidence: Evidence) -> str:
        """Compares the learned scale of forces with the errors."""
        _, force = errors(evidence.predictive(), evidence.job.y)
        rmse = float(force[force.isfinite()].square().mean().sqrt())
        scales = [
            getattr(t.likelihood, "force_scale", None) for t in evidence.model.posterior.networks
        ]
        known = [float(s) for s in scales if s is not None]
        if not known:
            return "energies and forces have scales, no intervals."
        return (
            f"the learned scale of forces is {number(float(np.mean(known)))}, the error on the "
            f"test frames {number(rmse)}."
        )

    def estimates(self, evidence: Evidence, forecast: Forecast) -> dict[str, Estimate]:
        """Nats per frame."""
        if forecast.losses is None:
            return {}
        return {"nll": mean_estimate(forecast.losses.double(), evidence.weight)}

    def targets(self, evidence: Evidence) -> list[Any]:
        """None: forces have a chapter of their own."""
        return []

    def words(self, evidence: Evidence, row: int) -> str | None:
        """The energy."""
        return number(float(evidence.job.y[row, 0]), 6)

    def response(self, evidence: Evidence) -> None:
        """None: no columns have effects on it."""
        return None

    def respond(self, outcome: Any, predictive: Predictive, response: Any) -> NDArray[np.float64]:
        """None is asked for."""
        return np.zeros((len(predictive.raw), 0))
