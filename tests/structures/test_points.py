"""Point clouds from files, arrays and the generator to predictions."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import ansatz
from ansatz import Classifier
from ansatz.data import Clouds, solids
from ansatz.data.points.files import read_points, surface
from ansatz.data.points.solids import NAMES
from ansatz.errors import DataError, UsageError
from ansatz.structures.set.points.encoder import PointEncoder, load_encoder, pose_p_value

RNG = np.random.default_rng(0)


def folder_of(tmp_path, count=60):
    clouds, names = solids(count, 20)
    for k in range(count):
        place = tmp_path / names[k] / f"{k}.xyz"
        place.parent.mkdir(exist_ok=True)
        np.savetxt(place, clouds[[k]].values)
    return clouds, names


def test_solids_are_centred_of_one_size_and_pure_in_the_seed():
    clouds, names = solids(20, 500, noise=0.0, seed=3)
    again, _ = solids(20, 500, noise=0.0, seed=3)
    assert_array_equal(clouds.values, again.values)
    assert names.tolist() == [*NAMES, *NAMES]
    x = clouds.values.reshape(20, 500, 3)
    assert_allclose(x.mean(1), 0, atol=1e-12)
    assert_allclose((x**2).sum(2).mean(1), 1)
    radius = np.linalg.norm(x[names == "sphere"], axis=2)
    assert radius.std() < 0.06  # but for the centre of the sample
    assert not np.allclose(x[0], x[10])


def test_points_of_a_surface_are_uniform_by_area():
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [9, 0, 0], [9, 3, 0], [12, 0, 0.0]])
    found = surface(corners, np.array([[0, 1, 2], [3, 4, 5]]), 10_000, seed=0)
    far = found[:, 0] > 5
    assert far.mean() == pytest.approx(0.9, abs=4 * 0.003)
    assert_allclose(found[~far].mean(0), [1 / 3, 1 / 3, 0], atol=4 * 0.01)


def test_a_folder_by_class_is_fitted_saved_and_predicted(tmp_path):
    folder_of(tmp_path)
    quick = {"steps": 20, "batch_size": 16, "network.width": 8}
    fit = ansatz.fit(str(tmp_path), out=str(tmp_path.parent / "m"), options=quick)
    assert (
        fit.structure == "points" and fit.network == "pointnet" and fit.likelihood == "categorical"
    )
    again, data = ansatz.load(tmp_path.parent / "m"), solids(8, 20, seed=1)[0]
    assert_array_equal(again.predict_proba(data), fit.model.predict_proba(data))
    alone = np.concatenate([again.predict_proba(data[[k]]) for k in range(3)])
    assert_allclose(alone, again.predict_proba(data)[:3], atol=1e-5)


def test_a_table_of_paths_brings_its_outcome(tmp_path):
    clouds, _ = folder_of(tmp_path)
    files = sorted(tmp_path.glob("*/*.xyz"))
    sizes = [np.abs(np.loadtxt(file)).max() for file in files]
    table = pd.DataFrame({"scan": [f"{f.parent.name}/{f.name}" for f in files], "size": sizes})
    table.to_csv(tmp_path / "table.csv", index=False)
    how = {"x": "points", "network": "linear_points", "likelihood": "normal"}
    fit = ansatz.fit(str(tmp_path / "table.csv"), target="size", **how, options={"steps": 50})
    assert sum(fit.rows.values()) == 60 and clouds.values.shape[1] == 3


def test_labels_of_points_are_arrays_of_files(tmp_path):
    for k in range(40):
        x = RNG.normal(size=(RNG.integers(5, 12), 3))
        np.savez(
            tmp_path / f"{k}.npz",
            x=x,
            part=np.where(np.linalg.norm(x, axis=1) > 1.5, "rim", "core"),
        )
    quick = {"steps": 60, "batch_size": 128}
    fit = ansatz.fit(
        str(tmp_path), x="points", labels="part", network="invariant_points", options=quick
    )
    assert fit.metrics["accuracy"] > fit.constant["accuracy"]
    with pytest.raises(DataError, match="no array 'organ' with a label for each"):
        ansatz.fit(str(tmp_path), x="points", labels="organ")


def test_estimators_take_arrays_and_train_to_the_same_bits():
    X, y = solids(100, 16)
    arrays = X.values.reshape(100, 16, 3)
    options = {"network": "invariant_points", "steps": 30, "batch_size": 32}
    first = Classifier(x="points", **options).fit(arrays, y)
    again = Classifier(**options).fit(X, y)
    assert_array_equal(first.predict_proba(arrays), again.predict_proba(X))
    turned = arrays @ np.linalg.qr(RNG.normal(size=(3, 3)))[0] + 5
    assert_allclose(first.predict_proba(turned), first.predict_proba(arrays), atol=1e-4)


def test_meshes_are_sampled_and_clouds_read_from_ply_and_off(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    box = trimesh.creation.box((2, 2, 2))
    for ending in ("ply", "off"):
        box.export(tmp_path / f"box.{ending}")
        found, _ = read_points(tmp_path / f"box.{ending}")
        assert found.shape == (1024, 3)
        assert_allclose(np.abs(found).max(1), 1, atol=1e-6)  # on the surface
        assert_array_equal(found, read_points(tmp_path / f"box.{ending}")[0])
    trimesh.PointCloud(np.eye(3)).export(tmp_path / "cloud.ply")
    assert_allclose(read_points(tmp_path / "cloud.ply")[0], np.eye(3))


@pytest.mark.parametrize(
    "content, words",
    [
        ("1 2 3\n4 5\n", r"a\.xyz, line 2: 2 numbers, expected 3"),
        ("1 2\n", r"a\.xyz, line 1: 2 numbers, expected 3"),
        ("# nothing\n", r"a\.xyz has no points"),
        ("1 2 3\nnan 1 1\n", r"a\.xyz, point 2: a number is not finite"),
        ("3\nwater\nO 0 0 0\n", r"a\.xyz, line 1: 1 numbers|line 2: expected numbers"),
    ],
)
def test_bad_files_are_named_with_their_line(tmp_path, content, words):
    (tmp_path / "a.xyz").write_text(content)
    with pytest.raises(DataError, match=words):
        ansatz.fit(str(tmp_path), x="points", target="class")


def test_bad_arrays_are_named():
    with pytest.raises(DataError, match="cloud 1 has no points"):
        Clouds.of([np.zeros((0, 3)), np.zeros((2, 3))])
    with pytest.raises(DataError, match="cloud 2, point 1: a coordinate or feature is not finite"):
        Clouds.of([np.zeros((2, 3)), np.full((1, 3), np.nan)])
    with pytest.raises(DataError, match="points need three coordinates, got 2"):
        Clouds.of(np.zeros((2, 5, 2)))
    with pytest.raises(UsageError, match="count and points"):
        solids(0)


def test_files_that_do_not_fit_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((3, 3)))
    np.save(tmp_path / "b.npy", np.zeros((3, 4)))
    with pytest.raises(DataError, match=r"b\.npy: 4 numbers per point, .*a\.npy has 3"):
        ansatz.fit(str(tmp_path), x="points", target="y")
    np.savez(tmp_path / "c.npz", x=np.array([None]))
    with pytest.raises(DataError, match=r"c\.npz: it holds Python objects"):
        read_points(tmp_path / "c.npz")


def test_a_common_pose_is_found_and_rotations_follow_from_it():
    turned, _ = solids(200, 50)
    flat = RNG.normal(size=(200, 50, 3)) * np.array([1.0, 2.0, 5.0])
    assert PointEncoder.fit(turned).rotates
    encoder = PointEncoder.fit(Clouds.of(flat))
    assert not encoder.rotates and PointEncoder.fit(turned).notes
    again = load_encoder(json.loads(json.dumps(encoder.state())))
    assert again.spec == encoder.spec and again.scale == encoder.scale
    # Under uniform poses the test rejects as often as its level says.
    axes = RNG.normal(size=(400, 60, 1, 3))
    offsets = torch.arange(61)
    rejected = [pose_p_value(torch.tensor(each[:, 0]), offsets) < 0.1 for each in axes]
    assert np.mean(rejected) == pytest.approx(0.1, abs=4 * (0.09 / 400) ** 0.5)
