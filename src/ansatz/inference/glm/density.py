"""The posterior density of a generalised linear model, with its gradient written out.

Legend: C chains, N rows, Q columns with the intercept, Z numbers of a row, G groups, k terms of a
group.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from torch import Tensor

from ansatz.inference.glm.coordinates import PriorDensity
from ansatz.inference.glm.correlation import Root, correlations, lkj, root_of, slopes_of
from ansatz.inference.glm.row_score import RowScore
from ansatz.linear.terms import Term, TermRows

Array = NDArray[np.float64]


class Predictors(NamedTuple):
    """How coefficients make the numbers that a row's likelihood takes.

    Args:
        matrix: ``(N, Q)``, its first column ones.
        kinds: of the Z numbers: ``"x"``, ``"slopes"``, ``"one"`` or ``"fixed"``.
        parts: the coordinates of each number's coefficients.
        weight: ``(N,)`` frequency weights.
        offset: ``(N,)``, added to the first number, or None.
    """

    matrix: Array
    kinds: Sequence[str]
    parts: Sequence[slice]
    weight: Array
    offset: Array | None

    def columns(self, kind: str) -> slice:
        """The columns of the matrix that a number of this kind has coefficients for."""
        width = self.matrix.shape[1]
        return slice(*{"x": (0, width), "slopes": (1, width), "one": (0, 1)}.get(kind, (0, 0)))

    def z(self, theta: Array) -> Array:
        """``(C, N, Z)`` for coordinates ``(C, D)``."""
        found = np.zeros((len(theta), len(self.matrix), len(self.kinds)))
        for j, (kind, part) in enumerate(zip(self.kinds, self.parts, strict=True)):
            if kind == "one":
                found[:, :, j] = theta[:, part]
            elif kind != "fixed":
                found[:, :, j] = theta[:, part] @ self.matrix[:, self.columns(kind)].T
        if self.offset is not None:
            found[:, :, 0] += self.offset
        return found

    def add_slopes(self, gradient: Array, slope: Array) -> None:
        """Adds slopes by z ``(C, N, Z)`` to those by the coordinates."""
        for j, (kind, part) in enumerate(zip(self.kinds, self.parts, strict=True)):
            if kind == "one":
                gradient[:, part] += slope[:, :, j].sum(1)[:, None]
            elif kind != "fixed":
                gradient[:, part] += slope[:, :, j] @ self.matrix[:, self.columns(kind)]


class Effects:
    r"""The coefficients of the groups of one term, not centred.

    .. math:: u_g = L z_g, \quad z_g \sim N(0, I), \qquad \eta_i = x_i^\top u_{g(i)}

    so that z and the scale are nearly independent where groups have few rows. Coordinates: k
    logarithms of standard deviations, the angles of the correlations, then G k numbers z.

    Args:
        term: what varies.
        rows: the group and the columns of each row.
        groups: G.
        start: the first coordinate.
        eta: of the LKJ prior.
        jacobian: whether the density is that of the coordinates.
        sampled: whether z are coordinates; else they are integrated out.
    """

    def __init__(
        self,
        term: Term,
        rows: TermRows,
        groups: int,
        start: int,
        eta: float,
        jacobian: bool = True,
        sampled: bool = True,
    ) -> None:
        self.term, self.groups, self.eta, self.jacobian = term, groups, eta, jacobian
        self.k = rows.values.shape[1]
        self.angles = correlations(self.k) if term.correlated else 0
        self.start, self.middle = start, start + self.k + self.angles
        self.stop = self.middle + (groups * self.k if sampled else 0)
        count = len(rows.codes)
        places = (rows.codes[:, None] * self.k + np.arange(self.k)).ravel()
        pointers = np.arange(0, count * self.k + 1, self.k)
        shape = (count, groups * self.k)
        self.matrix = csr_matrix((rows.values.ravel(), places, pointers), shape=shape)
        self.transposed = self.matrix.T.tocsr()
        nothing = np.zeros((0, 0))
        self._last: tuple[Array, Root] = nothing, Root(nothing, nothing)

    def root(self, theta: Array) -> Root:
        """L ``(C, k, k)`` with the partial correlations."""
        if self._last[0] is not theta:
            part = theta[:, self.start : self.middle]
            self._last = theta, root_of(part[:, : self.k], part[:, self.k :])
        return self._last[1]

    def numbers(self, theta: Array) -> Array:
        """z, ``(C, G, k)``."""
        return theta[:, self.middle : self.stop].reshape(len(theta), self.groups, self.k)

    def values(self, theta: Array) -> Array:
        """u, ``(C, G, k)``."""
        found: Array = self.numbers(theta) @ self.root(theta).lower.transpose(0, 2, 1)
        return found

    def eta_of(self, theta: Array) -> Array:
        """What is added to the linear predictor, ``(C, N)``."""
        flat = self.values(theta).reshape(len(theta), -1)
        found: Array = (self.matrix @ flat.T).T
        return found

    def add_prior(self, theta: Array, value: Array, gradient: Array) -> None:
        """Adds log p(z) and the LKJ density; standard deviations have priors of their own."""
        z = theta[:, self.middle : self.stop]
        value -= 0.5 * (z * z).sum(1)
        gradient[:, self.middle : self.stop] -= z
        if self.angles:
            density, slope = lkj(self.root(theta), self.eta, self.jacobian)
            value += density
            gradient[:, self.start + self.k : self.middle] += slope

    def add_slopes(self, theta: Array, gradient: Array, slope: Array) -> None:
        """Adds slopes by eta ``(C, N)`` to those by the coordinates."""
        root = self.root(theta)
        by_u = (self.transposed @ slope.T).T.reshape(len(theta), self.groups, self.k)
        gradient[:, self.middle : self.stop] += (by_u @ root.lower).reshape(len(theta), -1)
        by_root = by_u.transpose(0, 2, 1) @ self.numbers(theta)  # (C, k, k)
        by_sd, by_angle = slopes_of(root, by_root, bool(self.angles))
        gradient[:, self.start : self.start + self.k] += by_sd
        if self.angles:
            gradient[:, self.start + self.k : self.middle] += by_angle


class GeneralizedLinear:
    r"""The log posterior density of a generalised linear model and its gradient.

    .. math:: \log p(\theta \mid y) = \sum_i w_i \log p(y_i \mid z_i) + \log p(\theta), \qquad
        z_i = A_i \theta + o_i + \sum_t x_{it}^\top u_{t, g(i)}

    Called with ``(C, D)`` it gives ``(C,)`` and ``(C, D)``, as
    :func:`~ansatz.inference.sample` takes it.

    Args:
        score: minus the log-likelihood of rows by z.
        predictors: from coordinates to z.
        prior: of all coordinates.
        effects: of the terms that vary between groups.
    """

    def __init__(
        self,
        score: RowScore,
        predictors: Predictors,
        prior: PriorDensity,
        effects: Sequence[Effects] = (),
    ) -> None:
        self.score, self.predictors, self.prior = score, predictors, prior
        self.effects = list(effects)
        self._weighs = bool((predictors.weight != 1).any())

    def __call__(self, position: Tensor) -> tuple[Tensor, Tensor]:
        theta = position.numpy()
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            value, gradient = self._density(theta)
        lost = ~np.isfinite(value)
        if lost.any():
            value[lost], gradient[lost] = -np.inf, 0
        return torch.from_numpy(value), torch.from_numpy(gradient)

    def rows(self, theta: Array) -> Array:
        """The log-likelihood of each row, unweighted, ``(C, N)``."""
        return -self.score(self.z(theta))[0]

    def z(self, theta: Array) -> Array:
        """The numbers that each row's likelihood takes, ``(C, N, Z)``."""
        z = self.predictors.z(theta)
        for effect in self.effects:
            z[:, :, 0] += effect.eta_of(theta)
        return z

    def _density(self, theta: Array) -> tuple[Array, Array]:
        value, gradient = self.prior(theta)
        terms, slope = self.score(self.z(theta))
        if self._weighs:
            value -= terms @ self.predictors.weight
            slope = slope * self.predictors.weight[:, None]
        else:
            value -= terms.sum(1)
        np.negative(slope, out=slope)
        self.predictors.add_slopes(gradient, slope)
        for effect in self.effects:
            effect.add_prior(theta, value, gradient)
            effect.add_slopes(theta, gradient, slope[:, :, 0])
        return value, gradient
