"""The normal model with the coefficients of groups integrated out.

Legend: C chains, N rows, Q columns with the intercept, B blocks of m coefficients of groups that
only rows of the same block touch.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from torch import Tensor

from ansatz.inference.glm.coordinates import PriorDensity, Range
from ansatz.inference.glm.correlation import slopes_of
from ansatz.inference.glm.density import Effects, Predictors
from ansatz.seeds import derive

Array = NDArray[np.float64]
MOST = 200  # coefficients of crossed groups that are integrated out together


class Sums(NamedTuple):
    """What the density needs of the rows, whatever their number."""

    rows: float
    yy: float
    xx: Array  # (Q, Q)
    xy: Array  # (Q,)
    zz: Array  # (B, m, m)
    zx: Array  # (B, m, Q)
    zy: Array  # (B, m)
    centre: float  # what was taken from y, and is taken from the intercept


class _At(NamedTuple):
    """The quantities at some coordinates, (C, ...)."""

    variance: Array  # (C,), sigma^2
    roots: Array  # (C, m, m), Lambda
    inverse: Array  # (C, B, m, m), M^-1
    log_det: Array  # (C,), of M, summed over blocks
    residual: Array  # (C, B, m), Z^T r
    squares: Array  # (C,), r^T r
    mean: Array  # (C, B, m), of u given the rest
    covariance: Array  # (C, B, m, m)


class MarginalNormal:
    r"""The log posterior density of a normal model without the coefficients of its groups.

    .. math:: y \sim N(X \beta,\; V), \qquad V = \sigma^2 I + Z \Lambda \Lambda^\top Z^\top

    with :math:`\Lambda` made of the roots of the terms' covariances. With :math:`r = y - X \beta`,
    :math:`S = Z^\top Z / \sigma^2`, :math:`s = Z^\top r / \sigma^2` and
    :math:`M = I + \Lambda^\top S \Lambda`,

    .. math:: -2 \log p = N \log \sigma^2 + \log |M| + r^\top r / \sigma^2 - s^\top K s, \qquad
        K = \Lambda M^{-1} \Lambda^\top

    so that an evaluation costs nothing by the row: sums over rows are taken once. Given the rest,
    u is normal with mean K s and covariance K, which :meth:`draw` draws from.

    Args:
        predictors: of the location; the last number of a row is the standard deviation's.
        y: ``(N,)``.
        scale: how its coordinate becomes the standard deviation.
        prior: of all coordinates.
        effects: of the terms, without coordinates of their own for groups.

    References:
        Bates, Maechler, Bolker and Walker (2015), Fitting linear mixed-effects models using lme4,
        section 2. https://doi.org/10.18637/jss.v067.i01
    """

    def __init__(
        self,
        predictors: Predictors,
        y: Array,
        scale: Range,
        prior: PriorDensity,
        effects: Sequence[Effects],
    ) -> None:
        self.predictors, self.scale, self.prior = predictors, scale, prior
        self.effects = list(effects)
        self.is_one_factor = len({effect.term.group for effect in effects}) == 1
        self.sums = self._sum(y)
        self._places = self._layout()

    def _sum(self, y: Array) -> Sums:
        weight, x = self.predictors.weight, self.predictors.matrix
        if self.predictors.offset is not None:
            y = y - self.predictors.offset
        centre = float(weight @ y / weight.sum())
        y = y - centre
        z = [effect.matrix for effect in self.effects]
        if self.is_one_factor:  # the columns of a group side by side
            groups, k = self.effects[0].groups, [effect.k for effect in self.effects]
            blocks, m = groups, sum(k)
            starts = np.cumsum([0, *k[:-1]])
            order = np.concatenate(
                [
                    (np.arange(groups)[:, None] * m + start + np.arange(width)).ravel()
                    for start, width in zip(starts, k, strict=True)
                ]
            )
        else:
            blocks, m = 1, sum(effect.groups * effect.k for effect in self.effects)
            order = np.arange(m)
        joined = _beside(z, order)
        weighted = joined.multiply(weight[:, None]).tocsr()
        full = (weighted.T @ joined).toarray()
        zz = np.stack([full[b * m : (b + 1) * m, b * m : (b + 1) * m] for b in range(blocks)])
        return Sums(
            float(weight.sum()),
            float(weight @ (y * y)),
            (x * weight[:, None]).T @ x,
            x.T @ (weight * y),
            zz,
            (weighted.T @ x).reshape(blocks, m, -1),
            (weighted.T @ y).reshape(blocks, m),
            centre,
        )

    def _layout(self) -> list[list[slice]]:
        """Where Lambda has each term's root."""
        found, start = [], 0
        for effect in self.effects:
            copies = 1 if self.is_one_factor else effect.groups
            found.append(
                [slice(start + g * effect.k, start + (g + 1) * effect.k) for g in range(copies)]
            )
            start += copies * effect.k
        return found

    def __call__(self, position: Tensor) -> tuple[Tensor, Tensor]:
        theta = position.numpy()
        value, gradient = self.prior(theta)
        with np.errstate(all="ignore"):
            try:
                self._add_likelihood(theta, value, gradient)
            except np.linalg.LinAlgError:
                value[:] = np.nan
        lost = ~np.isfinite(value)
        value[lost], gradient[lost] = -np.inf, 0
        return torch.from_numpy(value), torch.from_numpy(gradient)

    def _beta(self, theta: Array) -> Array:
        found: Array = theta[:, self.predictors.parts[0]].copy()
        found[:, 0] -= self.sums.centre
        return found

    def _at(self, theta: Array) -> _At:
        sums, beta = self.sums, self._beta(theta)
        sd = self.scale.value(theta[:, self.predictors.parts[-1]])[:, 0]
        variance = sd**2
        m = sums.zz.shape[1]
        roots = np.zeros((len(theta), m, m))
        for effect, places in zip(self.effects, self._places, strict=True):
            lower = effect.root(theta).lower
            for place in places:
                roots[:, place, place] = lower
        left = roots.transpose(0, 2, 1)[:, None]
        matrix = left @ sums.zz @ roots[:, None] / variance[:, None, None, None] + np.eye(m)
        factor = np.linalg.cholesky(matrix)
        inverse = np.asarray(np.linalg.inv(matrix), dtype=np.float64)
        log_det = 2 * np.log(np.diagonal(factor, axis1=2, axis2=3)).sum((1, 2))
        residual = sums.zy - np.einsum("bmq,cq->cbm", sums.zx, beta)
        squares = sums.yy - 2 * beta @ sums.xy + ((beta @ sums.xx) * beta).sum(1)
        covariance = roots[:, None] @ inverse @ left
        mean = (covariance @ residual[..., None])[..., 0] / variance[:, None, None]
        return _At(variance, roots, inverse, log_det, residual, squares, mean, covariance)

    def _add_likelihood(self, theta: Array, value: Array, gradient: Array) -> None:
        sums, at, beta = self.sums, self._at(theta), self._beta(theta)
        wide = at.variance[:, None, None]
        s = at.residual / wide
        quad = at.squares / at.variance - (s * at.mean).sum((1, 2))
        value -= 0.5 * (sums.rows * np.log(2 * np.pi * at.variance) + at.log_det + quad)
        by_beta = sums.xy - beta @ sums.xx - np.einsum("bmq,cbm->cq", sums.zx, at.mean)
        gradient[:, self.predictors.parts[0]] += by_beta / at.variance[:, None]
        # By sigma^2: the trace of V^-1, and the squared length of V^-1 r.
        trace = sums.rows - at.mean[0].size + np.trace(at.inverse, axis1=2, axis2=3).sum(1)
        fitted = np.einsum("bmn,cbn->cbm", sums.zz, at.mean)
        length = at.squares + ((fitted - 2 * at.residual) * at.mean).sum((1, 2))
        by_variance = 0.5 * (length / at.variance - trace) / at.variance
        place = self.predictors.parts[-1]
        sd, slope = np.sqrt(at.variance), self.scale.slope(theta[:, place])[:, 0]
        gradient[:, place] += (by_variance * 2 * sd * slope)[:, None]
        self._add_roots(theta, at, s, gradient)
        for effect in self.effects:
            effect.add_prior(theta, value, gradient)

    def _add_roots(self, theta: Array, at: _At, s: Array, gradient: Array) -> None:
        """Slopes by the roots: -(Z^T V^-1 Z - a a^T) Lambda, with a = Z^T V^-1 r."""
        scaled = self.sums.zz / at.variance[:, None, None, None]
        a = s - (scaled @ at.mean[..., None])[..., 0]
        inner = scaled - scaled @ at.covariance @ scaled - a[..., :, None] * a[..., None, :]
        by_roots = -(inner.sum(1) @ at.roots)  # (C, m, m)
        for effect, places in zip(self.effects, self._places, strict=True):
            own = sum(by_roots[:, place, place] for place in places)
            root = effect.root(theta)
            by_sd, by_angle = slopes_of(root, np.asarray(own), bool(effect.angles))
            gradient[:, effect.start : effect.start + effect.k] += by_sd
            if effect.angles:
                gradient[:, effect.start + effect.k : effect.middle] += by_angle

    def draw(self, theta: Array, seed: int) -> list[Array]:
        """u of each term given draws of the coordinates, ``(S, G, k)``."""
        found: list[list[Array]] = [[] for _ in self.effects]
        noise = np.random.default_rng(derive(seed, "groups") % 2**63)
        for part in np.array_split(theta, max(1, len(theta) // 256)):
            at = self._at(part)
            m = at.covariance.shape[-1]
            # Of Lambda M^-1 Lambda^T, which is singular where a deviation is 0.
            root = at.roots[:, None] @ np.linalg.cholesky(at.inverse)
            z = noise.standard_normal((*at.mean.shape[:2], m, 1))
            u = at.mean + (root @ z)[..., 0]  # (C, B, m)
            for effect, places, own in zip(self.effects, self._places, found, strict=True):
                if self.is_one_factor:
                    own.append(u[:, :, places[0]])
                else:
                    own.append(np.stack([u[:, 0, place] for place in places], 1))
                assert own[-1].shape[1:] == (effect.groups, effect.k)
        return [np.concatenate(each) for each in found]

    def z(self, theta: Array) -> Array:
        """The numbers of each row, ``(C, N, 2)``, with groups drawn from their prior."""
        found = self.predictors.z(theta)
        noise = np.random.default_rng(0)
        for effect in self.effects:
            lower = effect.root(theta).lower
            u = noise.standard_normal((len(theta), effect.groups, effect.k))
            flat = (u @ lower.transpose(0, 2, 1)).reshape(len(theta), -1)
            found[:, :, 0] += (effect.matrix @ flat.T).T
        return found


def _beside(parts: Sequence[csr_matrix], order: NDArray[np.intp]) -> csr_matrix:
    """Sparse columns side by side, the columns of ``parts`` at the places of ``order``."""
    from scipy.sparse import hstack

    joined = hstack(parts).tocsc()
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    found: csr_matrix = joined[:, back].tocsr()
    return found
