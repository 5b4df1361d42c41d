import numpy as np
import pytest
import torch

import ansatz
from ansatz import Potential, Regressor
from ansatz.data import Molecules
from ansatz.errors import DataError, UsageError

QUICK = {"steps": 6, "holdout": 0}


def springs(frames=24, seed=0, box=True):
    """Four atoms joined by springs, r²/2 each beyond a rest length."""
    draw = np.random.default_rng(seed)
    corners = np.array([[0, 0, 0], [1, 1, 0], [1, 0, 1], [0, 1, 1]]) * 0.9
    x = corners + draw.normal(size=(frames, 4, 3)) * 0.05
    d = x[:, None] - x[:, :, None]
    r = np.linalg.norm(d + np.eye(4)[..., None], axis=3)
    stretch = (r - 1.2) * (1 - np.eye(4))
    energy = (stretch**2).sum((1, 2)) / 4 - 100
    forces = (stretch[..., None] * d / r[..., None]).sum(2)
    h = np.eye(3) * 9 if box else None
    return Molecules(x, ["O", "H", "H", "H"], h, energy=energy, forces=forces)


@pytest.fixture(scope="module")
def fitted():
    return Potential(steps=60, random_state=1, holdout=0).fit(springs(48))


def test_it_learns_forces(fitted):
    test = springs(20, seed=1)
    found = fitted.evaluate(test)
    assert found["force_rmse"] < 0.35 * np.sqrt((test.forces**2).mean())
    assert -fitted.score(test) == pytest.approx(found["force_rmse"])


def test_the_constant_is_refitted(fitted):
    train = springs(48)
    rest = fitted.predict(train) - train.energy
    assert abs(rest.mean()) < 1e-6


def test_metrics_are_root_mean_squares_per_atom(fitted):
    test = springs(5, seed=2)
    energy, forces = fitted.energies_and_forces(test)
    found = fitted.evaluate(test)
    assert found["force_rmse"] == pytest.approx(np.sqrt(((forces - test.forces) ** 2).mean()))
    assert found["energy_mae"] == pytest.approx(np.abs(energy - test.energy).mean() / 4)


def test_energies_and_forces_given_apart_are_those_of_the_frames():
    m = springs()
    bare = Molecules(m.positions, m.species, m.box, offsets=m.offsets)
    a = Potential(**QUICK).fit(bare, m.energy, m.forces.reshape(24, 4, 3))
    b = Potential(**QUICK).fit(m)
    assert (a.predict(m) == b.predict(m)).all()


def test_saved_and_loaded_it_answers_the_same_bits(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    again = ansatz.load(tmp_path / "model")
    test = springs(5, seed=2)
    for ours, theirs in zip(
        fitted.energies_and_forces(test), again.energies_and_forces(test), strict=True
    ):
        assert (ours == theirs).all()


def test_members_of_an_ensemble_disagree():
    m = springs()
    model = Potential(**QUICK, inference="ensemble", members=2).fit(m)
    raws = torch.stack([part.raw for _, part in model.model_.posterior.components(m[:3])])
    spread = model.force_deviation(m[:3])
    expected = raws[:, :, 11:].std(0, correction=0).reshape(-1, 3)
    np.testing.assert_allclose(spread, expected.numpy(), atol=1e-12)
    assert spread.shape == (12, 3) and spread.min() > 0


def test_the_calculator_moves_atoms_and_keeps_the_energy(fitted):
    """NVE: the total energy drifts by the error of the integrator, second order in the step."""
    pytest.importorskip("ase")
    from ase import units
    from ase.md.verlet import VelocityVerlet

    drifts = []
    for step in (0.5, 0.25):
        (atoms,) = springs(1, seed=3).to_ase()
        atoms.calc = fitted.calculator()
        atoms.set_velocities(np.random.default_rng(0).normal(size=(4, 3)) * 0.05)
        dynamics = VelocityVerlet(atoms, step * units.fs)
        totals = []
        for _ in range(round(20 / step)):
            dynamics.run(1)
            totals.append(atoms.get_total_energy())
        drifts.append(np.ptp(totals))
    assert drifts[0] / drifts[1] == pytest.approx(4, rel=0.35)
    assert drifts[0] < 0.02


def test_the_calculators_stress_is_the_derivative_of_the_energy(fitted):
    pytest.importorskip("ase")
    (atoms,) = springs(1, seed=3).to_ase()
    atoms.calc = fitted.calculator()
    stress = atoms.get_stress(voigt=False)
    h, ends = 1e-5, []
    for s in (1, -1):
        strained = atoms.copy()
        strained.set_cell(
            atoms.cell[:] @ (np.eye(3) + s * h * np.diag([1, 0, 0])), scale_atoms=True
        )
        strained.calc = fitted.calculator()
        ends.append(strained.get_potential_energy())
    slope = (ends[0] - ends[1]) / (2 * h) / atoms.get_volume()
    assert stress[0, 0] == pytest.approx(slope, abs=1e-8)


def test_the_linear_model_is_least_squares_on_counts():
    draw = np.random.default_rng(0)
    parts = [Molecules(draw.normal(size=(n, 3)) * 3, ["O"] + ["H"] * (n - 1)) for n in (1, 2, 3, 4)]
    m = Molecules.concatenate(parts).with_outcomes([-7.0, -8.0, -9.0, -10.0], np.zeros((10, 3)))
    model = Potential(network="element_counts", **QUICK).fit(m)
    np.testing.assert_allclose(model.predict(m), m.energy, atol=1e-4)


def test_energies_alone_take_any_likelihood():
    m = springs(box=False)
    for name in ("normal", "student_t"):
        model = Regressor(name, steps=20).fit(m, m.energy)
        assert np.abs(model.predict(m) - m.energy).max() < 1 and model.interval(m, 0.9).shape == (
            24,
            2,
        )
    assert Regressor("gamma", steps=3).fit(m, m.energy + 200).predict(m).min() > 0


def test_frames_of_different_sizes_stand_in_one_fit():
    small = springs(10)
    pair = Molecules(
        np.array([[[0, 0, 0], [0, 0, 1.0 + 0.01 * k]] for k in range(10)]), ["O", "H"],
        energy=np.arange(10) * 0.01 - 50, forces=np.zeros((20, 3)),
    )  # fmt: skip
    both = Molecules.concatenate([small, pair])
    model = Potential(**QUICK).fit(both)
    alone = model.energies_and_forces(pair)[1]
    assert np.abs(model.energies_and_forces(both)[1][40:] - alone).max() < 1e-12


def test_bad_input_is_named(fitted):
    m = springs(4)
    with pytest.raises(DataError, match="frame 1, atom 2: the model never saw the element He"):
        fitted.predict(Molecules(m.positions[:4], ["O", "He", "H", "H"]))
    with pytest.raises(DataError, match=r"forces must have the shape of the positions, \(16, 3\)"):
        Potential().fit(m, m.energy, np.zeros((4, 3)))
    with pytest.raises(DataError, match="the frames hold no forces"):
        Potential().fit(Molecules(m.positions, m.species, offsets=m.offsets, energy=m.energy))
    with pytest.raises(DataError, match="frame 1: atoms 1 and 2 are at the same place"):
        fitted.predict(Molecules(np.zeros((2, 3)), ["O", "H"]))
    with pytest.raises(UsageError, match="gamma is not a likelihood of energies and forces"):
        Potential("gamma").fit(m)
