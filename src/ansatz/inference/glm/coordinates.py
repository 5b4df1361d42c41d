"""The coordinates that a sampler moves in, each with a prior on the scale of the data.

Legend: C chains, D coordinates.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit

from ansatz.inference.priors import Prior

Array = NDArray[np.float64]


class Range(NamedTuple):
    """How a coordinate x becomes a number v: itself, or ``unit * softplus(x) + floor``, or e^x."""

    kind: str = "real"  # "real", "softplus" or "exp"
    unit: float = 1.0
    floor: float = 0.0

    def value(self, x: Array) -> Array:
        """v."""
        if self.kind == "real":
            return x
        if self.kind == "exp":
            found: Array = np.exp(x)
            return found
        return self.unit * np.logaddexp(0.0, x) + self.floor

    def coordinate(self, v: Array) -> Array:
        """x."""
        if self.kind == "real":
            return v
        if self.kind == "exp":
            found: Array = np.log(np.maximum(v, 1e-300))
            return found
        u = np.maximum(v - self.floor, 1e-6 * self.unit) / self.unit
        return u + np.log(-np.expm1(-u))

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
        plain = [
            k
            for k, each in enumerate(coordinates)
            if each.prior.name == "normal" and each.range.kind == "real"
        ]
        self._normal = np.array(plain, dtype=np.intp)
        moments = np.array([coordinates[k].prior.parameters for k in plain]).reshape(-1, 2)
        scales = np.array([coordinates[k].scale for k in plain])
        self._mean, self._precision = moments[:, 0] / scales, (scales / moments[:, 1]) ** 2
        others: dict[tuple[Prior, Range], list[int]] = {}
        for k, each in enumerate(coordinates):
            if k not in set(plain) and not (
                each.prior.name == "flat" and each.range.kind == "real"
            ):
                others.setdefault((each.prior, each.range), []).append(k)
        self._others = [
            (np.array(index), prior, kind, np.array([coordinates[k].scale for k in index]))
            for (prior, kind), index in others.items()
        ]

    def __call__(self, x: Array) -> tuple[Array, Array]:
        gradient = np.zeros_like(x)
        away = x[:, self._normal] - self._mean
        pull = away * self._precision
        value: Array = -0.5 * (away * pull).sum(1)
        gradient[:, self._normal] = -pull
        for index, prior, kind, scale in self._others:
            at = x[:, index]
            v, dv = kind.value(at), kind.slope(at)
            density, slope = prior.log_prob_and_slope(torch.from_numpy(scale * v))
            own = slope.numpy() * scale * dv
            value += density.numpy().sum(1)
            if self.jacobian and kind.kind != "real":
                value += np.log(dv).sum(1)
                own += kind.log_slope_slope(at)
            gradient[:, index] = own
        return value, gradient
