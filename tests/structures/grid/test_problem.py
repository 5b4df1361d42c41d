"""What is predicted from images: by the columns beside them."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import ansatz
from ansatz.errors import DataError, UsageError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.problem import structure_of
from ansatz.fitting.replay import replay
from ansatz.structures.grid.problem import build_grid_problem, grid_problem
from ansatz.structures.grid.reading import special_columns

IMAGES = np.zeros((12, 6, 6), np.uint8)


def build_problem(y, target="y", **options):
    return build_grid_problem(
        {"x": IMAGES, target: np.asarray(y)}, ColumnRoles(target=[target]), **options
    )


def test_labels_from_zero_on_beside_images_are_classes():
    problem = build_problem(np.arange(12) % 3)
    assert problem.candidates == ["categorical"] and problem.kind == "class"
    assert "if it counts something: --likelihood poisson" in problem.notes[-1]


@pytest.mark.parametrize(
    "values, target",
    [
        (np.arange(12) % 3, "cells"),  # a name that says nothing of labels
        ([0, 1, 3] * 4, "y"),  # 2 is missing
        (np.arange(12), "y"),  # one of each
        ([1, 2, 3] * 4, "y"),
    ],
)
def test_other_whole_numbers_are_counts(values, target):
    assert build_problem(values, target).kind == "number"


def test_zero_and_one_are_two_classes():
    assert build_problem(np.arange(12) % 2).candidates == ["bernoulli"]


def test_a_likelihood_that_is_named_is_taken():
    assert build_problem(np.arange(12) % 3, likelihood="poisson").candidates == ["poisson"]


def test_examples_without_a_target_are_left_out_with_a_note():
    problem = build_problem([0.5, np.nan, 1.5] * 4)
    assert len(problem.frame) == len(problem.rows) == 8
    assert "left out: 4" in " ".join(problem.notes)


def test_the_fingerprint_is_of_cells_and_outcomes():
    y = np.arange(12) % 2
    same = build_problem(y).fingerprint
    assert build_problem(y.copy()).fingerprint == same
    assert build_problem(1 - y).fingerprint != same
    changed = IMAGES.copy()
    changed[5, 2, 2] = 1
    assert build_grid_problem({"x": changed, "y": y}, ColumnRoles(target=["y"])).fingerprint != same


def test_what_cannot_be_asked_is_said():
    with pytest.raises(UsageError, match=r"no target: name the column.*Columns: age"):
        build_grid_problem({"x": IMAGES, "age": np.arange(12)}, ColumnRoles())
    with pytest.raises(DataError, match=r"missing everywhere"):
        build_problem(np.full(12, np.nan))
    with pytest.raises(DataError, match=r"'y' is 0 for every example: one class only"):
        build_problem(np.zeros(12, int))
    assert build_problem(np.zeros(12, int), likelihood="poisson").candidates == ["poisson"]
    with pytest.raises(DataError, match=r"no column 'z' for target. Columns: y"):
        build_grid_problem({"x": IMAGES, "y": np.arange(12)}, ColumnRoles(target=["z"]))
    with pytest.raises(UsageError, match=r"no column 'z' to drop. Columns: y"):
        build_problem(np.arange(12) % 2, drop=["z"])
    with pytest.raises(UsageError, match=r"dice evaluates masks"):
        build_problem(np.arange(12) % 2, likelihood="dice")
    with pytest.raises(UsageError, match=r"'roles' \(--role\) is an option of tables"):
        ansatz.fit({"x": IMAGES}, target="y", roles={"y": "numeric"})
    with pytest.raises(UsageError, match=r"'delimiter' is an option of tables"):
        ansatz.fit({"x": IMAGES}, target="y", delimiter=";")


def test_rows_of_a_table_are_signals_without_their_special_columns():
    frame = pd.DataFrame(np.zeros((8, 5)), columns=[f"t{k}" for k in range(5)])
    frame["rhythm"], frame["patient"], frame["often"] = ["a", "b"] * 4, range(8), 1.0
    column_roles = ColumnRoles(target=["rhythm"], group="patient", weights="often")
    assert special_columns(column_roles) == ["rhythm", "often", "patient"]
    problem = grid_problem(frame, column_roles)
    assert problem.rows.shape == (1, 5)


def test_masks_are_the_outcome_where_they_are():
    problem = build_grid_problem({"x": IMAGES, "masks": IMAGES // 255}, ColumnRoles())
    assert problem.kind == "mask"


def test_a_folder_of_images_is_no_table(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.png").write_bytes(b"")
    assert structure_of(tmp_path) == "grid"
    with pytest.raises(UsageError, match=r"leave out --x vector"):
        ansatz.fit(tmp_path, x="vector", target="y")


def in_folders(folder, **counts):
    """Grey images of two classes in folders of parts."""
    rng = np.random.default_rng(0)
    for part, count in counts.items():
        for k in range(count):
            path = folder / part / ("dark" if k % 2 else "light")
            path.mkdir(parents=True, exist_ok=True)
            values = rng.integers(0, 100, (8, 8)) + 100 * (k % 2 == 0)
            Image.fromarray(values.astype(np.uint8)).save(path / f"{part}{k}.png")
    return folder


SETTINGS = {"network": "linear_grid", "options": {"epochs": 1}}


def test_the_test_is_the_folder_called_test(tmp_path):
    fit = ansatz.fit(in_folders(tmp_path, train=20, test=6), **SETTINGS)
    _, job, parts = fit.split_problem
    assert (job.part[parts.test] == "test").all() and (job.part[parts.learn] == "train").all()
    assert len(parts.test) == 6 and len(parts.learn) == 20
    assert any("the data's own, 6 examples" in note for note in fit.notes)


def test_examples_for_validation_stop_the_fit(tmp_path):
    fit = ansatz.fit(in_folders(tmp_path, train=20, valid=4, test=6), **SETTINGS)
    _, job, parts = fit.split_problem
    assert (job.part[parts.learn][parts.valid] == "validation").all() and len(parts.valid) == 4


def test_a_pass_is_over_training_examples_where_data_bring_their_validation(tmp_path):
    folder = in_folders(tmp_path, train=20, valid=20, test=6)
    settings = {"network": "linear_grid", "options": {"epochs": 3, "batch_size": 10}}
    fit = ansatz.fit(folder, **settings)
    assert fit.epochs == 3 and "stopping on 50% held-out rows" in fit.recipe["recipe"]


def test_a_class_that_only_the_test_has_is_noted(tmp_path):
    folder = in_folders(tmp_path, train=20, test=6)
    (folder / "test" / "new").mkdir()
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(folder / "test" / "new" / "0.png")
    fit = ansatz.fit(folder, **SETTINGS)
    assert any("no training row is of class new" in note for note in fit.notes)


def test_a_share_that_is_asked_for_mixes_the_folders(tmp_path):
    fit = ansatz.fit(in_folders(tmp_path, train=20, test=6), test=0.5, **SETTINGS)
    assert len(fit.split_problem[2].test) == 13
    assert any("are mixed" in note for note in fit.notes)


def test_a_saved_model_finds_its_test_again(tmp_path):
    folder = in_folders(tmp_path / "images", train=20, test=6)
    fit = ansatz.fit(folder, out=tmp_path / "model", **SETTINGS)
    again = replay(tmp_path / "model")
    assert (again.parts.test == fit.split_problem[2].test).all()
    assert (again.parts.learn == fit.split_problem[2].learn).all()
    from ansatz.report import replayed
    from ansatz.report.what_was_fitted import command_line, python_lines

    told = replayed(again)
    assert "--test" not in command_line(told) and "test=" not in python_lines(told)
