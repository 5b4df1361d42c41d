"""The coordinates that a sampler moves in, each with a prior on the scale of the data.

Legend: C chains, D coordinates.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit

from ansatz.inference.priors import Prior

Array = NDArray[np.float64]


class Range(NamedTuple):
    """How a coordinate x becomes a number v: itself, or ``unit * softplus(x) + floor``, or e^x."""

    kind: str = "real"  # "real", "softplus" or "exp"
    unit: float | Array = 1.0
    floor: float | Array = 0.0

    def value(self, x: Array) -> Array:
        """v."""
        if self.kind == "real":
            return x
        if self.kind == "exp":
            found: Array = np.exp(x)
            return found
        positive: Array = self.unit * np.logaddexp(0.0, x) + self.floor
        return positive

    def coordinate(self, v: Array) -> Array:
        """x."""
        if self.kind == "real":
            return v
        if self.kind == "exp":
            found: Array = np.log(np.maximum(v, 1e-300))
            return found
        u = np.maximum(v - self.floor, 1e-6 * self.unit) / self.unit
        inverse: Array = u + np.log(-np.expm1(-u))
        return inverse

    def slope(self, x: Array) -> Array:
        """dv/dx."""
        if self.kind == "real":
            return np.ones_like(x)
        found: Array = np.exp(x) if self.kind == "exp" else self.unit * expit(x)
        return found

    def log_slope_slope(self, x: Array) -> Array:
        """d log(dv/dx) / dx."""
        if self.kind == "real":
            return np.zeros_like(x)
        found: Array = np.ones_like(x) if self.kind == "exp" else expit(-x)
        return found


class Coordinate(NamedTuple):
    """One coordinate: the prior is that of ``scale`` times its number.

    Args:
        name: of the parameter.
        prior: of the parameter, on the scale of the data.
        scale: the parameter is ``scale * value``.
        range: how the coordinate becomes a number.
    """

    name: str
    prior: Prior
    scale: float = 1.0
    range: Range = Range()


class PriorDensity:
    r"""The log prior density of coordinates and its gradient.

    .. math:: \log p(x) = \sum_k \log p_k(s_k v_k(x_k)) + \log \frac{dv_k}{dx_k}

    constants left out. Without ``jacobian`` the last term is left out, too: then the mode is that
    of the density of the parameters themselves, which a flat prior makes the maximum likelihood.

    Args:
        coordinates: D of them.
        jacobian: whether the density is that of the coordinates.

    Shapes:
        - x: ``(C, D)``.
        - returns: ``(C,)`` and ``(C, D)``.

    Example:
        >>> import numpy as np
        >>> from ansatz.inference.glm.coordinates import Coordinate, PriorDensity
        >>> from ansatz.inference.priors import Prior
        >>> density = PriorDensity([Coordinate("x", Prior.read("normal(0, 2)"))])
        >>> density(np.array([[2.0]]))[1].tolist()
        [[-0.5]]
    """

    def __init__(self, coordinates: Sequence[Coordinate], jacobian: bool = True) -> None:
        self.jacobian = jacobian
        groups: dict[Any, list[int]] = {}
        for k, each in enumerate(coordinates):
            if each.prior.name == "flat" and each.range.kind == "real":
                continue
            written = each.prior.name in _WRITTEN
            groups.setdefault(
                (each.range.kind, each.prior.name if written else each.prior), []
            ).append(k)
        self._groups = [_Group.of([coordinates[k] for k in at], at) for at in groups.values()]

    def __call__(self, x: Array) -> tuple[Array, Array]:
        value, gradient = np.zeros(len(x)), np.zeros_like(x)
        for group in self._groups:
            at = x[:, group.places]
            if group.range.kind == "real":
                density, slope = group.density(at * group.scale)
                value += density.sum(1)
                gradient[:, group.places] = slope * group.scale
                continue
            dv = group.range.slope(at)
            density, slope = group.density(group.scale * group.range.value(at))
            value += density.sum(1)
            own = slope * group.scale * dv
            if self.jacobian:
                value += np.log(dv).sum(1)
                own += group.range.log_slope_slope(at)
            gradient[:, group.places] = own
        return value, gradient


class _Group(NamedTuple):
    """Coordinates of one kind of prior, each with its own parameters."""

    places: NDArray[np.intp]
    scale: Array
    range: Range
    density: Callable[[Array], tuple[Array, Array]]

    @classmethod
    def of(cls, coordinates: Sequence[Coordinate], index: Sequence[int]) -> "_Group":
        first = coordinates[0]
        ranges = [each.range for each in coordinates]
        units, floors = np.array([r.unit for r in ranges]), np.array([r.floor for r in ranges])
        parameters = np.array([each.prior.parameters for each in coordinates]).T
        written = _WRITTEN.get(first.prior.name)

        def density(v: Array) -> tuple[Array, Array]:
            if written is not None:
                return written(v, *parameters)
            value, slope = first.prior.log_prob_and_slope(torch.from_numpy(v))
            return value.numpy(), slope.numpy()

        scale = np.array([each.scale for each in coordinates])
        return cls(np.array(index), scale, Range(first.range.kind, units, floors), density)


def _normal(v: Array, mean: Array, sd: Array) -> tuple[Array, Array]:
    z = (v - mean) / sd
    return -0.5 * z * z, -z / sd


def _student_t(v: Array, df: Array, mean: Array, scale: Array) -> tuple[Array, Array]:
    z = (v - mean) / scale
    return -(df + 1) / 2 * np.log1p(z * z / df), -(df + 1) * z / (df + z * z) / scale


def _exponential(v: Array, rate: Array) -> tuple[Array, Array]:
    return -rate * v, np.broadcast_to(-rate, v.shape)


# Without constants; the half distributions are of coordinates that are positive already.
_WRITTEN: dict[str, Callable[..., tuple[Array, Array]]] = {
    "normal": _normal,
    "student_t": _student_t,
    "half_student_t": _student_t,
    "exponential": _exponential,
}
