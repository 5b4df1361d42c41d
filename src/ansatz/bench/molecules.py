"""Measures pairs of near atoms beside ASE and matscipy, and potentials of liquid water."""

import os
import statistics
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ansatz.bench.finding import BenchOptions, Bound, Finding
from ansatz.bench.race import race
from ansatz.bench.record import mean_of, repeated, run_facts
from ansatz.errors import DataError

ATOMS, CUTOFF, DENSITY = 20_000, 6.0, 0.1  # of water, atoms per cubic angstrom
FORCE, ENERGY, MINUTES = 0.09, 1.2, 10.0  # eV per angstrom, meV per atom, processor time
SEEDS = 3
DRIFT = 1.0  # meV per atom in 1 ps
STEP, STEPS = 0.5, 2_000  # femtoseconds
TEMPERATURE = 330.0  # kelvin
TRAINING = 700  # steps of a fit


def speed_molecules(options: BenchOptions) -> list[Finding]:
    """Measures all pairs of 20,000 atoms in a skewed box."""
    return [_pairs(options) for _ in options.pick(["pairs"])]


def _pairs(options: BenchOptions) -> Finding:
    from ansatz.data.molecules import neighbours

    generator = np.random.default_rng(options.seed)
    side = (ATOMS / DENSITY) ** (1 / 3)
    box = np.eye(3) * side
    box[1, 0] = 0.2 * side
    x = generator.random((ATOMS, 3)) @ box
    runs: dict[str, Callable[[], Any]] = {"ours": lambda: neighbours(x, CUTOFF, box)}
    limit, missing = {"ase": Bound(at_least=30.0), "matscipy": Bound(at_least=1.2)}, []
    if find_spec("ase") is None:
        missing += ["ase", "matscipy"]
    else:
        from ase import Atoms
        from ase.neighborlist import neighbor_list

        atoms = Atoms(f"H{ATOMS}", positions=x, cell=box, pbc=True)
        runs["ase"] = lambda: neighbor_list("ijSD", atoms, CUTOFF)
        if find_spec("matscipy") is None:
            missing.append("matscipy")
        else:
            from matscipy.neighbours import neighbour_list

            runs["matscipy"] = lambda: neighbour_list("ijSD", atoms, CUTOFF)
    found = race(runs, rounds=options.rounds or 3, seed=options.seed, notify=options.notify)
    facts = {"pairs": len(neighbours(x, CUTOFF, box).center), "atoms": ATOMS}
    return Finding.of("pairs", found, limit, missing=missing, facts=facts)


def quality_molecules(options: BenchOptions) -> list[Finding]:
    """Measures forces and energies of water that DFT computed, and the drift of its dynamics."""
    cases = options.pick(["water", "water-schnet"])
    done = repeated("quality-molecules", cases, _fit, options, times=SEEDS)
    return [finding for name, rows in done for finding in _findings(name, rows)]


def _water() -> Path:
    root = os.environ.get("ANSATZ_DATA")
    path = Path(root or ".") / "deepmd-water"
    if not path.is_dir():
        raise DataError(f"{path}: the suite needs DeePMD's example of water; set ANSATZ_DATA.")
    return path


def _fit(name: str, seed: int) -> dict[str, Any]:
    from ansatz import Potential
    from ansatz.data import Molecules
    from ansatz.data.molecules import read_molecules

    folder = _water()
    train = Molecules.concatenate(read_molecules(folder / f"data_{k}").molecules for k in range(3))
    test = read_molecules(folder / "data_3").molecules
    network = "schnet" if name.endswith("schnet") else "deeppot"
    began, used = time.perf_counter(), time.process_time()
    model = Potential(network=network, steps=TRAINING, random_state=seed).fit(train)
    seconds, processor = time.perf_counter() - began, time.process_time() - used
    assert test.forces is not None
    found = {
        **model.evaluate(test),
        "zero_forces": float(np.sqrt((test.forces**2).mean())),
        "seconds": seconds,
        "processor_seconds": processor,
        "parameters": model.model_.parameters,
        "steps": model.model_.iterations,
    }
    if network == "deeppot" and seed == 0 and find_spec("ase") is not None:
        found["drift"] = drift(model, test)
    return found


def drift(model: Any, frames: Any, steps: int = STEPS) -> float:
    """The drift of the total energy of an atom over 1 ps without a thermostat, in meV."""
    from ase import units
    from ase.md.verlet import VelocityVerlet

    atoms = frames[:1].to_ase()[0]
    atoms.calc = model.calculator()
    masses = atoms.get_masses()[:, None]
    momenta = np.random.default_rng(0).normal(size=(len(atoms), 3))
    momenta *= np.sqrt(masses * units.kB * TEMPERATURE)
    atoms.set_momenta(momenta - masses * momenta.sum(0) / masses.sum())  # the whole stands still
    dynamics, totals = VelocityVerlet(atoms, STEP * units.fs), []
    for _ in range(steps // 20):
        dynamics.run(20)
        totals.append(atoms.get_total_energy() / len(atoms))
    times = np.arange(len(totals)) * 20 * STEP / 1000  # picoseconds
    return abs(float(np.polyfit(times, totals, 1)[0])) * 1000


def _findings(name: str, rows: list[dict[str, Any]]) -> list[Finding]:
    is_bar = name == "water"
    force = statistics.fmean(row["force_rmse"] for row in rows)
    energy = 1000 * statistics.fmean(row["energy_rmse"] for row in rows)
    minutes = max(row["processor_seconds"] for row in rows) / 60
    facts = {
        **run_facts(rows, "seed"),
        "forces": [row["force_rmse"] for row in rows],
        "zero_forces": mean_of(rows, "zero_forces"),
        "steps": [row["steps"] for row in rows],
        "parameters": rows[0]["parameters"],
    }
    found = [
        _bounded(f"{name}: forces", "eV per angstrom, root mean square", force, FORCE, is_bar),
        _bounded(f"{name}: energy", "meV per atom, root mean square", energy, ENERGY, is_bar),
        _bounded(f"{name}: a fit", "minutes of processor time", minutes, MINUTES, is_bar),
    ]
    found[0].facts.update(facts)
    drifts = [row["drift"] for row in rows if "drift" in row]
    if drifts:
        found.append(
            _bounded(f"{name}: drift of NVE", "meV per atom and picosecond", drifts[0], DRIFT, True)
        )
    return found


def _bounded(name: str, unit: str, value: float, most: float, is_bar: bool) -> Finding:
    return Finding(name, unit, value, limit={"ours": Bound(at_most=most)} if is_bar else {})
