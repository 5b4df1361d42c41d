"""Reads one point cloud from a file: xyz, ply, off, npy, npz."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansatz.errors import DataError, MissingExtraError
from ansatz.seeds import derive

OWN = (".xyz", ".off", ".ply")  # nothing but point clouds and meshes
ENDINGS = (*OWN, ".npy", ".npz")
SAMPLED = 1_024  # points of the surface of a mesh


def read_points(path: Path, labels: str | None = None) -> tuple[NDArray[Any], Any]:
    """The points ``(n, 3 + C)`` of a file, and the labels of its points where they are named.

    A mesh gives 1,024 points that are uniform on its surface, the same ones every time.

    Args:
        path: of the file.
        labels: the array of an ``.npz`` file with a label for each point; None for none.
    """
    ending = path.suffix.lower()
    if labels is not None and ending != ".npz":
        raise DataError(f"{path}: labels of points ('{labels}') are arrays of .npz files.")
    if not path.is_file():
        raise DataError(f"{path}: no such file.")
    if ending == ".xyz":
        return _text(path), None
    if ending in (".ply", ".off"):
        return _mesh(path), None
    return _arrays(path, labels)


def _text(path: Path) -> NDArray[np.float64]:
    """Numbers with blanks or commas between them, a point in each line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise DataError(f"{path} is not text: a .xyz file has a point in each line.") from None
    rows: list[list[float]] = []
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].replace(",", " ").split()
        if not words:
            continue
        try:
            rows.append([float(word) for word in words])
        except ValueError:
            molecule = " (a molecule? then --x molecule)" if words[0].isalpha() else ""
            raise DataError(
                f"{path}, line {number}: expected numbers x y z, got '{line[:40]}'{molecule}."
            ) from None
        if len(rows[-1]) != len(rows[0]) or len(rows[0]) < 3:
            raise DataError(
                f"{path}, line {number}: {len(rows[-1])} numbers, expected "
                f"{max(3, len(rows[0]))} as in the first line."
            )
    if not rows:
        raise DataError(f"{path} has no points.")
    return np.array(rows)


def _mesh(path: Path) -> NDArray[np.float64]:
    try:
        import trimesh
    except ImportError:
        raise MissingExtraError("ply and off files", "points") from None
    try:
        found: Any = trimesh.load(path, process=False, force=None)
    except Exception as error:
        raise DataError(f"{path} cannot be read: {str(error).splitlines()[0]}.") from None
    faces = getattr(found, "faces", None)
    if faces is None or not len(faces):
        vertices = np.asarray(getattr(found, "vertices", np.zeros((0, 3))), dtype=np.float64)
        if not len(vertices):
            raise DataError(f"{path} has no points.")
        return vertices
    return surface(np.asarray(found.vertices), np.asarray(faces), SAMPLED, derive(0, path.name))


def surface(
    vertices: NDArray[Any], faces: NDArray[Any], count: int, seed: int
) -> NDArray[np.float64]:
    """Points that are uniform on the triangles of a mesh."""
    draw = np.random.default_rng(seed)
    corners = np.asarray(vertices, dtype=np.float64)[faces]  # (F, 3, 3)
    sides = corners[:, 1:] - corners[:, :1]
    area = np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1)
    if not area.sum() > 0:
        raise DataError("a mesh has no surface: all its triangles have the area 0.")
    chosen = draw.choice(len(area), count, p=area / area.sum())
    u = draw.random((count, 2))
    u = np.where(u.sum(1, keepdims=True) > 1, 1 - u, u)  # into the triangle
    return corners[chosen, 0] + np.einsum("nk,nkd->nd", u, sides[chosen])


def _arrays(path: Path, labels: str | None) -> tuple[NDArray[np.float64], Any]:
    try:
        loaded: Any = np.load(path, allow_pickle=False)
        arrays = {n: loaded[n] for n in loaded.files} if path.suffix == ".npz" else {"x": loaded}
    except (ValueError, OSError, EOFError) as error:
        what = "it holds Python objects" if "allow_pickle" in str(error) else str(error)
        raise DataError(f"{path}: {what}.") from None
    name = next((each for each in ("x", "points", "pos", "xyz") if each in arrays), None)
    if name is None:
        raise DataError(f"{path}: no array 'x' with the points; it has {', '.join(arrays)}.")
    points = arrays[name]
    if points.ndim != 2 or points.dtype.kind not in "fiu" or points.shape[1] < 3:
        raise DataError(f"{path}: points must be numbers (n, 3 + C), got {points.shape}.")
    if not len(points):
        raise DataError(f"{path} has no points.")
    if labels is None:
        return points.astype(np.float64), None
    if labels not in arrays or arrays[labels].shape != (len(points),):
        raise DataError(
            f"{path}: no array '{labels}' with a label for each of {len(points)} points."
        )
    return points.astype(np.float64), arrays[labels]
