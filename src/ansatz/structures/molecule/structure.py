"""Molecules and crystals: frames of atoms."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz.data import Batch, Molecules
from ansatz.data.batch import map_tensors
from ansatz.data.molecules.reading import as_molecules, read_molecules
from ansatz.data.source import Source
from ansatz.errors import UsageError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.contracts.exporter import Exporter
from ansatz.fitting.contracts.inference import Posterior
from ansatz.fitting.contracts.structure import Facts, Feed
from ansatz.fitting.job import Job
from ansatz.fitting.model import Model, Trained
from ansatz.fitting.problem import Problem
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.request import settings_of
from ansatz.fitting.task import TrainingPlan
from ansatz.fitting.tensor_structure import Read, TensorStructure, read_for
from ansatz.fitting.training import build_modules, finish_pair
from ansatz.layers import MoleculeBatch
from ansatz.likelihoods import Likelihood
from ansatz.networks import Summary, summary
from ansatz.seeds import derive
from ansatz.structures.molecule.encoder import CUTOFF, MoleculeEncoder, load_encoder
from ansatz.structures.molecule.source import FrameSource
from ansatz.training import Supervised

ATOMS = 4_096  # that are predicted at once
BLOCK = "block of frames"  # the column of groups
START = 64  # frames from which networks take the scales of their inputs


class MoleculeStructure(TensorStructure):
    """Frames of atoms; a network's input is a :class:`~ansatz.layers.MoleculeBatch`."""

    name: ClassVar[str] = "molecule"
    unit: ClassVar[tuple[str, str]] = ("frame", "frames")

    def leaves_to(self, network: str | nn.Module) -> frozenset[str]:
        """The shape and dropout of networks, which have defaults of their own."""
        return settings_of("network")

    def network(self, axis: str) -> str:
        """The smooth deep potential."""
        return "deeppot"

    def linear_network(self, axis: str) -> str:
        """A constant for each element."""
        return "element_counts"

    def network_options(
        self, network: str | nn.Module, recipe: Recipe, spec: Any
    ) -> dict[str, Any]:
        """None: networks have their own defaults."""
        return {}

    # Reading.

    def read(self, data: Any, column_roles: ColumnRoles, reader: Mapping[str, Any]) -> Read:
        """Frames, and the numbers that stand beside them."""
        found = read_molecules(data, reader)
        frame = pd.DataFrame(found.columns, index=range(len(found.molecules)))
        target = "energy" if "energy" in frame else None
        if target is None and len(frame.columns) == 1:
            target = str(frame.columns[0])
        return Read(found.origin, found.molecules, frame, target)

    def as_rows(self, X: Any) -> Molecules:
        """Molecules, or ASE's frames."""
        return as_molecules(X)

    def problem(self, data: Any, column_roles: ColumnRoles, **how: Any) -> Problem:
        """Blocks of consecutive frames stay together: neighbours in time are almost alike."""
        found = read_for(self, data, column_roles, how.get("reader") or {})
        blocks = found.rows.blocks
        apart = column_roles.group in (None, BLOCK) and column_roles.time is None
        if apart and len(np.unique(blocks)) < len(blocks):
            column_roles = column_roles.model_copy(update={"group": BLOCK})
            notes = (*found.notes, "frames of one run are split in blocks of consecutive frames.")
            found = found._replace(frame=found.frame.assign(**{BLOCK: blocks}), notes=notes)
        return super().problem(found, column_roles, **how)

    def new_data(self, model: Model, source: str) -> str:
        """A file of the same kind."""
        return "NEW" + (Path(source).suffix or "-FOLDER")

    def summary(self, model: Model) -> Summary | str:
        """The size of the network."""
        return summary(model.posterior.networks[0].network, model.encoder.spec)

    # Recipe and encoder.

    def recipe(self, facts: Facts) -> Recipe:
        """Batches of a few frames: each has many forces."""
        size = 4 if facts.rows < 5_000 else 8
        return Recipe(
            batch_size=size,
            steps=max(1_000, min(20_000, round(40 * facts.rows / size))),
            learning_rate=5e-3,
            weight_decay=0.0,
            average="ema",
            holdout=0.1,
            evaluations=20,
            patience=20,
            min_improvement=0.0,
        )

    def settle(
        self, recipe: Recipe, job: Job, network: str | nn.Module, options: Mapping[str, Any]
    ) -> Recipe:
        return recipe

    def limit(self, recipe: Recipe, job: Job, options: Mapping[str, Any]) -> Recipe:
        """Large energies need no float64 in training: their constants are held in it apart."""
        given = options.get("dtype")
        return recipe if given else recipe.model_copy(update={"dtype": "float32"})

    def encoder(
        self,
        rows: Molecules,
        weight: NDArray[np.float64],
        recipe: Recipe,
        options: Mapping[str, Any],
    ) -> MoleculeEncoder:
        """The elements of the training frames."""
        return MoleculeEncoder.fit(rows, float(options.get("cutoff") or CUTOFF))

    def load_encoder(self, state: Mapping[str, Any]) -> MoleculeEncoder:
        """The encoder of a saved model."""
        return load_encoder(state)

    # Training.

    def batch(self, job: Job, encoder: MoleculeEncoder, recipe: Recipe) -> Batch | None:
        """None: frames are not tensors of one row each."""
        return None

    def adapt(
        self, network: nn.Module, encoder: MoleculeEncoder, job: Job, objective: Supervised
    ) -> nn.Module:
        """Starts at the constants of elements that fit the outcomes best."""
        begin = getattr(network, "start", None)
        if begin is None:
            return network
        constants, unit, residual = _constants(job, encoder, objective)
        set_scales = getattr(objective.likelihood, "set_scales", None)
        if set_scales is not None:
            set_scales(max(residual, 1e-3 * float(unit.max())), 0.0)
        rows: Any = job.rows
        step = max(1, len(rows) // START)
        (some,) = encoder.inputs(rows[slice(0, START * step, step)])
        begin(_typed(some, next(network.parameters()).dtype), constants, unit)
        return network

    def count_outputs(
        self, network: nn.Module, job: Job, recipe: Recipe, options: Mapping[str, Any]
    ) -> int:
        raise UsageError("molecules take a network by name: deeppot, schnet or element_counts.")

    def source(
        self, job: Job, encoder: MoleculeEncoder, feed: Feed, options: Mapping[str, Any]
    ) -> Source:
        """Frames in a new order each epoch; energies stay in float64."""
        dtype = getattr(torch, feed.recipe.dtype)
        (inputs,) = encoder.inputs(job.rows)
        weight = job.weight.to(dtype)
        rows = Batch((_typed(inputs, dtype),), job.y, weight, job.offset, job.index)
        if not feed.training:
            most = int(inputs.atoms.max()) if len(job.y) else 1
            return FrameSource(rows, ATOMS // max(1, most), shuffle=False)
        size = feed.recipe.batch_size or len(job.y)
        shuffle = feed.recipe.batch_size > 0
        return FrameSource(rows, size, seed=derive(feed.seed, "rows"), shuffle=shuffle)

    # Predictions.

    def raws(
        self,
        networks: Sequence[Trained],
        encoder: MoleculeEncoder,
        rows: Any,
        offset: Tensor | None,
        *,
        notes: list[str] | None,
        options: Mapping[str, Any],
    ) -> Iterator[Iterable[Tensor]]:
        """Some 4,000 atoms at a time; frames of few atoms are filled up to those of many."""
        encoder.codes(rows)  # errors number the frames of all rows
        most = int(rows.sizes.max()) if len(rows) else 1
        step = max(1, ATOMS // max(1, most))
        for first in range(0, max(len(rows), 1), step):
            part = slice(first, first + step)
            extra = None if offset is None else offset[part]
            inputs = encoder.inputs(rows[part])
            found = [network(inputs, extra) for network in networks]
            smaller = most - int(inputs[0].atoms.max()) if len(inputs[0].atoms) else 0
            fill = 3 * smaller if _answers_atoms(networks[0]) else 0
            yield [nn.functional.pad(raw, (0, fill)) for raw in found]

    # Linear models.

    def baseline(
        self, likelihood: Likelihood, job: Job, seed: int
    ) -> tuple[Posterior | None, list[str]]:
        """Constants of elements; with forces these are solved, and the forces are 0."""
        if not getattr(likelihood, "set_scales", None):
            return super().baseline(likelihood, job, seed)
        from ansatz.fitting.model import PointPosterior

        recipe = Recipe(dtype="float64")
        options = {"forces": True}
        plan = TrainingPlan(self, self.linear_network("row"), options, recipe, seed)
        encoder = MoleculeEncoder.fit(job.rows, CUTOFF)  # type: ignore[arg-type]
        network, objective = build_modules(plan, job, likelihood, encoder, None)
        return PointPosterior(self, encoder, finish_pair(plan, encoder, network, objective)), []

    def exporter(self, encoder: Any, names: Sequence[str] | None) -> Exporter | None:
        """None: pairs are found outside a graph."""
        return None


def _answers_atoms(trained: Trained) -> bool:
    """Whether a network answers with numbers for each atom."""
    return bool(getattr(trained.network, "forces", False))


def _typed(batch: MoleculeBatch, dtype: torch.dtype) -> MoleculeBatch:
    found: MoleculeBatch = map_tensors(lambda t: t.to(dtype) if t.is_floating_point() else t, batch)
    return found


def _constants(
    job: Job, encoder: MoleculeEncoder, objective: Supervised
) -> tuple[Tensor, Tensor, float]:
    r"""Constants of elements in the unit of the network, the scale of atoms, and the residual.

    The least-squares fit of the outcomes on counts; of several solutions, as where all frames
    have one composition, the smallest. The scale is that of forces where there are any, times
    one unit of length.
    """
    likelihood, rows = objective.likelihood, job.rows
    counts = rows.counts(encoder.kinds)  # type: ignore[attr-defined]
    atoms = torch.from_numpy(counts.sum(1)).clamp(min=1)
    with_forces = hasattr(likelihood, "set_scales")
    y = job.y[:, :1] if with_forces else job.y
    plain = likelihood.link_name == "identity" and not likelihood.event_ndim
    assert objective.shift is not None and objective.scale is not None
    outputs = objective.shift.numel()
    constants = torch.zeros(len(encoder.kinds), outputs, dtype=torch.float64)
    unit = (1 / atoms.sqrt().mean()).expand(outputs)
    if not (with_forces or (plain and y.ndim == 1)):
        return constants, unit, 0.0
    shift, scale = (t.double().reshape(-1)[0] for t in (objective.shift, objective.scale))
    value = (y.reshape(-1).double() - shift) / scale
    seen = value.isfinite() & (job.weight > 0)
    if not bool(seen.any()):
        return constants, unit, 0.0
    design = torch.from_numpy(counts)[seen]
    root = job.weight[seen].sqrt() / atoms[seen].sqrt()
    left = (design * root.unsqueeze(1)).numpy()
    solved = np.linalg.lstsq(left, (value[seen] * root).numpy(), rcond=1e-10)[0]
    constants[:, 0] = torch.from_numpy(solved)
    rest = (value[seen] - design @ constants[:, 0]) / atoms[seen].sqrt()
    residual = float(rest.square().mean().sqrt())
    unit = torch.full((outputs,), max(residual, 1e-3), dtype=torch.float64)
    if with_forces:
        forces = job.y[:, 1:]
        known = forces[forces.isfinite()]
        if len(known):
            unit = known.square().mean().sqrt().reshape(1)
    return constants, unit, residual
