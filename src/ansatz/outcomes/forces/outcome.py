"""Energies and forces of molecules, as one outcome."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz import likelihoods
from ansatz.data import Molecules
from ansatz.errors import DataError, UsageError
from ansatz.fitting.contracts.inference import Posterior, Predictive
from ansatz.fitting.contracts.outcome import Metrics, Outcome
from ansatz.fitting.contracts.structure import LinearBaseline, Structure
from ansatz.fitting.intervals import refuse_others
from ansatz.fitting.job import Job
from ansatz.fitting.model import Given, Model
from ansatz.fitting.problem import numbers_of
from ansatz.fitting.task import Settings
from ansatz.likelihoods import Distribution, EnergyForces, Likelihood
from ansatz.likelihoods.energy_forces import LEAD
from ansatz.outcomes.forces.errors import combined, errors, mean_of
from ansatz.spec import TargetSpec

if TYPE_CHECKING:
    from ansatz.training import Penalty

LIKELIHOOD = "energy_forces"


class Forces(Outcome):
    """The energy of a frame and the forces on its atoms, minus the derivatives of one energy.

    Outcomes are a row of numbers for each frame: the energy, then the forces, nan where they are
    unknown and behind the last atom.
    """

    name: ClassVar[str] = "forces"
    estimator: ClassVar[str] = "ansatz.estimators.potential:Potential"
    report: ClassVar[str] = "ansatz.outcomes.forces.report:ForcesReport"
    candidates: ClassVar[tuple[str, ...]] = (LIKELIHOOD,)
    plural: ClassVar[str] = "energies and forces"
    has_columns: ClassVar[bool] = False
    is_quantity: ClassVar[bool] = False
    solved: ClassVar[frozenset[str]] = frozenset({"element_counts", "linear"})
    outputs: ClassVar[Mapping[str, str]] = {"prediction": "the energy of a frame"}
    no_interval: ClassVar[str] = "energies and forces have scales in place of bounds."
    labels = None

    def __init__(self) -> None:
        self.names: list[str] = ["energy"]
        self.mean = 0.0  # energy of an atom

    # Reading.

    @classmethod
    def check_columns(
        cls,
        frame: Any,
        column_roles: Any,
        likelihood: str,
        options: dict[str, Any],
        *,
        named: bool,
    ) -> None:
        for name in column_roles.target:
            numbers_of(frame, name, "the energy")

    def beside(self, y: Any, rows: Any) -> Any:
        """Energies with the forces that the frames hold."""
        if not isinstance(rows, Molecules):
            raise UsageError("forces are those of molecules: give frames of atoms.")
        given = np.asarray(y, dtype=np.float64)
        if given.ndim == 2:
            return given
        if rows.forces is None:
            raise DataError(
                "the frames hold no forces. Name their property with --forces, or fit the energy "
                "alone with another likelihood, such as normal."
            )
        found = np.full((len(rows), 1 + 3 * int(rows.sizes.max(initial=0))), np.nan)
        found[:, 0] = given.reshape(-1)
        atom = np.arange(len(rows.positions)) - np.repeat(rows.offsets[:-1], rows.sizes)
        frame = np.repeat(np.arange(len(rows)), rows.sizes)
        for axis in range(3):
            found[frame, 1 + 3 * atom + axis] = rows.forces[:, axis]
        return found

    def encode(self, y: Any, settings: Settings, *, reset: bool) -> tuple[NDArray[Any], TargetSpec]:
        values = np.asarray(y, dtype=np.float64)
        if values.ndim == 1:  # keys of columns alone
            return values.reshape(-1, 1), TargetSpec(event=(1,))
        if reset and getattr(y, "name", None):
            self.names = [str(y.name)]
        return values, TargetSpec(event=values.shape[1:])

    def read(self, job: Job) -> Job:
        """Keeps frames together that follow each other in a run."""
        rows: Any = job.rows
        return job if job.group is not None else job._replace(group=rows.blocks)

    def content(self, y: Tensor, settings: Settings) -> NDArray[Any]:
        """The energy alone: forces follow the order of atoms, which keys forget."""
        return y[:, :1].numpy()

    # Fitting.

    def likelihood(self, settings: Settings, target: TargetSpec, *, few: bool) -> Likelihood:
        given = settings.likelihood
        if isinstance(given, str):
            given = LIKELIHOOD if given == "auto" else given
            if given != LIKELIHOOD:
                raise UsageError(
                    f"{given} is not a likelihood of energies and forces: {LIKELIHOOD} is. Without "
                    "forces any likelihood of numbers will do."
                )
            given = likelihoods.create(given, **settings.likelihood_options)
        made: Likelihood = given
        return made

    @classmethod
    def network(cls, structure: Structure) -> str:
        return structure.network("row")

    @classmethod
    def network_options(cls, network: "str | nn.Module") -> dict[str, Any]:
        """Forces beside the energy."""
        return {"forces": True}

    def solve(
        self,
        structure: Structure,
        likelihood: Likelihood,
        job: Job,
        penalty: "Penalty | None" = None,
    ) -> LinearBaseline:
        """Constants of elements by least squares, and no forces."""
        found, _ = self.baseline(structure, likelihood, job, 0)
        assert found is not None
        return LinearBaseline(found, [])

    def baseline(
        self, structure: Structure, likelihood: Likelihood, job: Job, seed: int
    ) -> tuple[Posterior | None, list[str]]:
        """Constants of elements by least squares, with the scales of their residuals."""
        found, notes = structure.baseline(likelihood, job, seed)
        if found is not None:
            fit_scales(found, job.rows, job.y)
        return found, notes

    def begin(self, likelihood: Likelihood, job: Job) -> None:
        """The mean energy of an atom."""
        rows: Any = job.rows
        energy, atoms = job.y[:, 0].numpy(), np.maximum(rows.sizes, 1)
        seen = np.isfinite(energy)
        self.mean = float((energy[seen] / atoms[seen]).mean()) if seen.any() else 0.0

    def constant(
        self, model: Model, likelihood: Likelihood, learn: Job, test: Job
    ) -> Predictive | None:
        """The mean energy of an atom, and no forces."""

        def raw(job: Job) -> Tensor:
            rows: Any = job.rows
            atoms = torch.from_numpy(rows.sizes).double()
            found = torch.zeros(len(atoms), LEAD + job.y.shape[1] - 1, dtype=torch.float64)
            found[:, 0], found[:, 1] = atoms * self.mean, atoms
            return found

        made = EnergyForces().double()
        _fit_scales(made, raw(learn), learn.y)
        return Predictive(made, raw(test))

    def finish(self, model: Model, job: Job) -> None:
        r"""Refits the constants of elements by least squares, given the trained forces.

        A network of forces has learned energies up to a constant; the residuals settle it.
        """
        rows: Any = job.rows
        for trained in model.posterior.networks:
            settle = getattr(trained.network, "settle", None)
            if settle is None:
                continue
            chunks = model.structure.raws(
                [trained], model.encoder, rows, None, notes=[], options=model.posterior.options
            )
            raw = torch.cat([each for chunk in chunks for each in chunk])
            rest = (job.y[:, 0] - raw[:, 0]).numpy()
            seen = np.isfinite(rest) & (job.weight.numpy() > 0)
            if not seen.any():
                continue
            kinds = model.encoder.kinds  # type: ignore[attr-defined]
            counts = rows.counts(kinds)[seen]
            root = np.sqrt(job.weight.numpy()[seen] / counts.sum(1).clip(1))
            left, right = counts * root[:, None], rest[seen] * root
            settle(torch.from_numpy(np.linalg.lstsq(left, right, rcond=1e-10)[0]).reshape(-1, 1))

    # Predictions.

    def distribution(self, predictive: Predictive, y: Tensor) -> tuple[Distribution | None, Tensor]:
        return None, y

    def evaluate(self, predictive: Predictive, y: Tensor, weight: Tensor | None = None) -> Metrics:
        """Nats per frame; root mean squares of the errors of forces, and of energies per atom."""
        losses = self.row_losses(predictive, y)
        mass = torch.ones_like(losses) if weight is None else weight.double()
        energy, force = errors(predictive, y)
        found: Metrics = {"nll": float((losses * mass).sum() / mass.sum())}
        for name, error in (("force", force), ("energy", energy)):
            seen = error.isfinite()
            each = mass.reshape(-1, *(1,) * (error.ndim - 1)).expand_as(error)
            total = float(torch.where(seen, each, 0).sum())
            known = torch.where(seen, error, 0)
            if total:
                found[f"{name}_rmse"] = math.sqrt(float((each * known.square()).sum()) / total)
                found[f"{name}_mae"] = float((each * known.abs()).sum()) / total
            else:
                found[f"{name}_rmse"] = found[f"{name}_mae"] = None
        return found

    def estimate(self, predictive: Predictive, y: Tensor) -> Tensor:
        return mean_of(predictive)

    def point(self, predictive: Predictive) -> NDArray[np.float64]:
        """The energy of each frame."""
        found: NDArray[np.float64] = mean_of(predictive)[:, 0].numpy()
        return found

    def answers(self, likelihood: Likelihood, raw: Tensor) -> dict[str, Tensor]:
        return {"prediction": raw[..., 0]}

    def frame(self, model: Model, rows: Given, **options: Any) -> dict[str, Any]:
        """Energies, the largest force of each frame; of an ensemble how far members disagree."""
        if options.pop("interval", None) is not None:
            raise UsageError(self.no_interval)
        options.pop("method", None)
        refuse_others(options)
        given: Any = rows.rows
        parts = model.posterior.components(given, rows.offset)
        mean, deviation = combined(parts)
        forces = mean[:, LEAD:].reshape(len(mean), -1, 3)
        columns: dict[str, Any] = {
            "prediction": mean[:, 0].numpy(),
            "energy_per_atom": (mean[:, 0] / mean[:, 1].clamp(min=1)).numpy(),
            "largest_force": _largest(forces.norm(dim=2)),
        }
        if len(parts) > 1:
            spread = deviation[:, LEAD:].reshape(len(mean), -1, 3)
            columns["energy_sd"] = deviation[:, 0].numpy()
            columns["largest_force_sd"] = _largest(spread.norm(dim=2))
        return columns

    def numbers(self, model: Model, rows: Any) -> tuple[Tensor, Tensor]:
        """Raw numbers of frames, ``(B, 11 + 3 A)``, and how far the members of one stray."""
        return combined(model.posterior.components(rows))

    # On disk.

    def target(self, likelihood: Likelihood) -> TargetSpec:
        return TargetSpec(event=(1,))

    def state(self) -> dict[str, Any]:
        return {"names": self.names, "mean": self.mean}

    def load(self, state: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self.names, self.mean = list(state["names"]), float(state["mean"])


def _largest(norms: Tensor) -> NDArray[np.float64]:
    found: NDArray[np.float64] = (
        norms.max(1).values.numpy() if norms.shape[1] else np.zeros(len(norms))
    )
    return found


def _fit_scales(likelihood: EnergyForces, raw: Tensor, y: Tensor) -> None:
    """Sets both scales to the root mean squares of the residuals."""
    energy, force = errors(Predictive(likelihood, raw), y)
    energy = (energy * raw[:, 1].sqrt())[energy.isfinite()]
    force = force[force.isfinite()]
    sizes = [float(e.square().mean().sqrt()) if len(e) else 0.0 for e in (energy, force)]
    likelihood.set_scales(*sizes)


def fit_scales(posterior: Posterior, rows: Any, y: Tensor) -> None:
    """Sets the scales of a posterior of one network to its residuals on some rows."""
    predictive = posterior.predictive(rows, notes=[])
    assert isinstance(predictive.likelihood, EnergyForces)
    _fit_scales(predictive.likelihood, predictive.raw, y)
