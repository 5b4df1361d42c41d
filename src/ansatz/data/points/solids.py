"""Clouds of points on ten solids in any pose: a task whose answer does not depend on the pose."""

import itertools

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from ansatz.data.points.clouds import Clouds
from ansatz.errors import UsageError

NAMES = (
    "tetrahedron",
    "cube",
    "octahedron",
    "prism",
    "pyramid",
    "sphere",
    "hemisphere",
    "cylinder",
    "cone",
    "torus",
)
_NOISE = 0.02  # standard deviation of a coordinate, of solids with mean square radius 1
_RING = 0.4  # the smaller radius of the torus


def solids(
    count: int = 1_000, points: int = 128, *, noise: float = _NOISE, seed: int = 0
) -> tuple[Clouds, NDArray[np.str_]]:
    """Draws clouds of points, uniform on the surfaces of ten solids, turned at random.

    Every cloud is centred, has mean square radius 1 before the noise, and a rotation that is
    uniform. Classes are equally frequent.

    Args:
        count: of clouds.
        points: of each cloud.
        noise: standard deviation of what is added to each coordinate.
        seed: of all that is drawn.

    Example:
        >>> from ansatz.data import solids
        >>> clouds, names = solids(20, 64)
        >>> len(clouds), clouds.lengths[0].item(), names[:2].tolist()
        (20, 64, ['tetrahedron', 'cube'])
    """
    if count < 1 or points < 1:
        raise UsageError(f"solids needs count and points of 1 or more, got {count} and {points}.")
    draw = np.random.default_rng(seed)
    code = np.arange(count) % len(NAMES)
    x = np.empty((count, points, 3))
    for number, name in enumerate(NAMES):
        mine = code == number
        x[mine] = _surface(name, int(mine.sum()) * points, draw).reshape(-1, points, 3)
    x -= x.mean(1, keepdims=True)
    x /= np.sqrt((x**2).sum(2).mean(1))[:, None, None]
    turn = Rotation.random(count, random_state=draw).as_matrix()
    x = x @ turn.transpose(0, 2, 1) + noise * draw.normal(size=x.shape)
    offsets = np.arange(count + 1) * points
    return Clouds(x.reshape(-1, 3), offsets).checked(), np.array(NAMES)[code]


def _surface(name: str, count: int, draw: np.random.Generator) -> NDArray[np.float64]:
    """Points that are uniform on the surface of a solid."""
    if name in _CORNERS:
        from ansatz.data.points.files import surface

        corners = np.array(_CORNERS[name], dtype=np.float64)
        faces = ConvexHull(corners).simplices
        return surface(corners, faces, count, int(draw.integers(2**62)))
    if name == "torus":
        return _torus(count, draw)
    ball = draw.normal(size=(count, 3))
    ball /= np.linalg.norm(ball, axis=1, keepdims=True)
    if name == "sphere":
        return ball
    angle, place = 2 * np.pi * draw.random(count), draw.random(count)
    circle = np.stack([np.cos(angle), np.sin(angle)], 1)
    disc = circle * np.sqrt(draw.random((count, 1)))
    if name == "hemisphere":  # 2 pi of the dome, pi of the disc
        dome = np.column_stack([ball[:, :2], np.abs(ball[:, 2])])
        return np.where(place[:, None] < 2 / 3, dome, np.column_stack([disc, np.zeros(count)]))
    height = 2.0
    if name == "cylinder":  # the side 2 pi h, both lids 2 pi
        side = np.column_stack([circle, height * draw.random(count)])
        lid = np.column_stack([disc, height * (draw.random(count) < 0.5)])
        return np.where(place[:, None] < height / (height + 1), side, lid)
    slant = (1 + height**2) ** 0.5  # the side of the cone pi s, its disc pi
    far = np.sqrt(draw.random((count, 1)))  # from the tip
    side = np.column_stack([far * circle, height * (1 - far)])
    lid = np.column_stack([disc, np.zeros(count)])
    return np.where(place[:, None] < slant / (slant + 1), side, lid)


def _torus(count: int, draw: np.random.Generator) -> NDArray[np.float64]:
    """By rejection: the area at an angle is proportional to its distance from the axis."""
    kept: list[NDArray[np.float64]] = []
    while not kept or sum(map(len, kept)) < count:
        angle = 2 * np.pi * draw.random(2 * count)
        accept = draw.random(2 * count) * (1 + _RING) < 1 + _RING * np.cos(angle)
        kept.append(angle[accept])
    inner, outer = np.concatenate(kept)[:count], 2 * np.pi * draw.random(count)
    radius = 1 + _RING * np.cos(inner)
    return np.stack([radius * np.cos(outer), radius * np.sin(outer), _RING * np.sin(inner)], 1)


_TRIANGLE = [(np.cos(a), np.sin(a)) for a in (0, 2 * np.pi / 3, 4 * np.pi / 3)]
_CORNERS = {
    "tetrahedron": [(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)],
    "cube": list(itertools.product((-1, 1), repeat=3)),
    "octahedron": [(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)],
    "prism": [(x, y, z) for x, y in _TRIANGLE for z in (-1, 1)],
    "pyramid": [(1, 1, 0), (1, -1, 0), (-1, 1, 0), (-1, -1, 0), (0, 0, 2)],
}
