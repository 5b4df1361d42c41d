"""Molecules from files: the fit, its split, predictions and the report."""

import numpy as np
import pandas as pd
import pytest

import ansatz
from ansatz.__main__ import main
from ansatz.data import Molecules
from ansatz.fitting.replay import replay


def write(path, frames=60, forces="forces", seed=0):
    """A run of two springs, one frame after the other."""
    draw = np.random.default_rng(seed)
    lines = []
    for _ in range(frames):
        a, b = 1 + 0.1 * draw.normal(size=2)
        energy = ((a - 1) ** 2 + (b - 1) ** 2) / 2 - 10
        rows = [("O", 0, 0, a - 1, b - 1), ("H", a, 0, 1 - a, 0), ("H", 0, b, 0, 1 - b)]
        info = f"Properties=species:S:1:pos:R:3:{forces}:R:3 energy={energy} gap={a * b}"
        lines += ["3", info]
        lines += [f"{s} {x} {y} 0 {fx} {fy} 0" for s, x, y, fx, fy in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("molecules")
    data = write(folder / "run.extxyz")
    fit = ansatz.fit(data, options={"steps": 8}, out=folder / "model")
    return folder, data, fit


def test_a_file_with_forces_is_a_potential(fitted):
    _, _, fit = fitted
    assert type(fit.model).__name__ == "Potential" and fit.likelihood == "energy_forces"
    assert {"force_rmse", "energy_rmse"} <= set(fit.metrics)


def test_near_frames_of_a_run_stay_on_one_side(fitted):
    folder, data, _ = fitted
    again = replay(folder / "model")
    blocks = ansatz.load(folder / "model").model_.structure.as_rows(str(data)).blocks
    assert len(again.parts.test)
    assert not set(blocks[again.parts.test]) & set(blocks[again.parts.learn])
    valid = again.parts.learn[again.parts.valid]
    rest = np.setdiff1d(again.parts.learn, valid)
    assert not set(blocks[valid]) & set(blocks[rest])


def command(monkeypatch, *words):
    monkeypatch.setattr("sys.argv", ["ansatz", *map(str, words)])
    with pytest.raises(SystemExit) as caught:
        main()
    assert not caught.value.code


def test_predictions_and_scores_from_the_command_line(fitted, capfd, monkeypatch):
    folder, _, fit = fitted
    new = write(folder / "new.extxyz", frames=5, seed=1)
    out = folder / "predictions.csv"
    command(monkeypatch, "predict", folder / "model", new, "--out", out, "--overwrite")
    found = pd.read_csv(out)
    assert list(found.columns) == ["row", "prediction", "energy_per_atom", "largest_force"]
    np.testing.assert_allclose(found["prediction"], fit.model.predict(str(new)), rtol=1e-12)
    assert fit.model.evaluate(str(new))["force_rmse"] > 0


def test_the_report_shows_parity_and_a_certificate(fitted, monkeypatch, capfd):
    folder, _, _ = fitted
    command(monkeypatch, "report", folder / "model", "--out", folder / "report.html")
    page = (folder / "report.html").read_text()
    for words in ("Energies and forces", "Certificate of symmetry", "rmse of a force"):
        assert words in page


def test_forces_have_names_and_other_targets_are_numbers(tmp_path):
    data = write(tmp_path / "a.xyz", frames=30, forces="dft")
    named = ansatz.fit(data, forces="dft", options={"steps": 2})
    assert named.likelihood == "energy_forces"
    gap = ansatz.fit(
        data, target="gap", likelihood="normal", options={"steps": 2}, inference="point"
    )
    assert type(gap.model).__name__ == "Regressor" and gap.metrics["rmse"] > 0


def test_a_fit_goes_on_with_the_same_bits():
    """A source is a pure function of seed, epoch and position, so a fit can be repeated."""
    x = np.random.default_rng(0).normal(size=(12, 2, 3)) * 0.05 + [[0, 0, 0], [0, 0, 1]]
    frames = Molecules(x, ["H", "H"], energy=np.zeros(12), forces=np.zeros((24, 3)))
    one, two = (ansatz.Potential(steps=5, holdout=0).fit(frames) for _ in range(2))
    weights = (m.model_.network.state_dict() for m in (one, two))
    for a, b in zip(*(w.values() for w in weights), strict=True):
        assert (a == b).all()
