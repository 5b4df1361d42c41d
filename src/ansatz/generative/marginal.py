"""The distribution of one column by itself: shares of levels, a histogram with atoms and tails."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[np.float64]
ATOM = 0.2  # share of a column from which a value gets a probability of its own
DISTINCT = 256  # values of a lattice that have bins of their own
PER_VALUE = 10  # rows for each of these values, on average
PER_BIN, MOST_BINS = 30, 256  # rows
DECIMALS = 6


class Kind(NamedTuple):
    """What the codes of a column are: levels 0..K-1, or numbers on a lattice.

    Args:
        levels: their number; 0 for numbers.
        step: the distance of neighbouring values; 0 where there is no lattice.
    """

    levels: int = 0
    step: float = 0.0


def lattice(values: Array) -> float:
    """The largest step of which all values are multiples; 0 where decimals are too many."""
    if not len(values):
        return 0.0
    unique = np.unique(values)
    for places in range(DECIMALS + 1):
        scaled = unique * 10**places
        if np.abs(scaled).max() > 2**52:
            return 0.0
        whole = np.round(scaled)
        if np.allclose(scaled, whole, rtol=0, atol=1e-6):
            divisor = int(np.gcd.reduce(whole.astype(np.int64)))
            return float(max(divisor, 1) / 10**places)
    return 0.0


class Marginal:
    r"""The distribution of one column as a monotone map to (0, 1).

    .. math:: F(x) = \Big(1 - \sum_k p_k\Big) F_c(x) + \sum_{a_k \le x} p_k

    A level, and a value :math:`a_k` that fills a fifth of the column, occupies an interval of the
    width of its share :math:`p_k`. All other numbers have a histogram :math:`F_c` with
    exponential tails; a value on a lattice stands for the interval of one step around it, so that
    its density is per unit.

    Args:
        kind: levels, or numbers.
        atoms: ``(A,)`` values with probabilities of their own, ascending; the codes of levels.
        masses: ``(A,)`` their probabilities.
        edges: ``(M + 1,)`` of the histogram; empty for levels.
        shares: ``(M,)`` of the bins and the two tails together, summing to 1 with ``tail``.
        tail: probability of each tail, and its scale.
        bounds: least and largest value of the fit; drawn values stay between them.
    """

    def __init__(
        self,
        kind: Kind,
        atoms: Array,
        masses: Array,
        edges: Array,
        shares: Array,
        tail: tuple[float, float],
        bounds: tuple[float, float],
    ) -> None:
        self.kind, self.atoms, self.masses = kind, atoms, masses
        self.edges, self.shares, self.tail, self.bounds = edges, shares, tail, bounds
        self._rest = 1.0 - float(masses.sum()) if len(edges) else 0.0
        self._below = np.concatenate([[0.0], np.cumsum(masses)])  # of atoms
        self._at = np.concatenate([[tail[0]], tail[0] + np.cumsum(shares)])  # F_c at the edges
        self._atoms_at = self._rest * self._smooth(atoms) + self._below[:-1] if len(atoms) else None

    @classmethod
    def fit(cls, values: Array, weight: Array, kind: Kind, *, atoms: bool = True) -> "Marginal":
        """Estimates the distribution of the values that are not nan."""
        known = ~np.isnan(values)
        values, weight = values[known], weight[known]
        total = float(weight.sum())
        none = np.empty(0)
        if kind.levels:
            counts = np.bincount(values.astype(int), weight, kind.levels) + 0.5
            codes = np.arange(kind.levels, dtype=float)
            ends = (0.0, kind.levels - 1.0)
            return cls(kind, codes, counts / counts.sum(), none, none, (0.0, 1.0), ends)
        if not len(values):
            values, weight, total = np.zeros(1), np.ones(1), 1.0
        found, place = np.unique(values, return_inverse=True)
        mass: Array = np.bincount(place, weight).astype(np.float64)
        is_atom = mass >= ATOM * total
        if not atoms or (not kind.step and len(found) == len(values)):
            is_atom[:] = False  # of few rows every value is its own
        rest: Array = mass[~is_atom]
        masses = mass[is_atom] / (total + 1.0)
        edges, shares = _histogram(found[~is_atom], rest, kind.step, found)
        scale = max((edges[-1] - edges[0]) / max(len(shares), 1), 1e-12)
        tail = 0.5 / (float(rest.sum()) + 2.0)
        return cls(
            kind,
            found[is_atom],
            masses,
            edges,
            shares * (1 - 2 * tail),
            (tail, scale),
            (float(found[0]), float(found[-1])),
        )

    @property
    def has_jitter(self) -> bool:
        """Whether a value stands for an interval, in which a place is drawn."""
        return bool(self.kind.levels or self.kind.step or len(self.atoms))

    def place(self, values: Array, uniform: Array) -> tuple[Array, Array]:
        """u in (0, 1) for each value, drawn within its interval, and its log probability."""
        if self.kind.levels:
            code = values.astype(int)
            return self._below[code] + uniform * self.masses[code], np.log(self.masses[code])
        shifted = values + (uniform - 0.5) * self.kind.step
        shifted, log_density = self._inside(shifted)
        u = self._rest * self._smooth(shifted) + self._mass_below(values)
        log_measure = np.log(max(self._rest, 1e-12)) + log_density
        if len(self.atoms):
            assert self._atoms_at is not None
            k = np.searchsorted(self.atoms, values).clip(max=len(self.atoms) - 1)
            at = self.atoms[k] == values
            u = np.where(at, self._atoms_at[k] + uniform * self.masses[k], u)
            log_measure = np.where(at, np.log(self.masses[k]), log_measure)
        return u, log_measure

    def interval(self, values: Array) -> tuple[Array, Array]:
        """The interval of (0, 1) that each value occupies; one point where it has no width."""
        ends = [self.place(values, np.full(len(values), end))[0] for end in (0.0, 1.0)]
        return ends[0], np.maximum(*ends)

    def value(self, u: Array) -> Array:
        """The value at each u: the inverse of :meth:`place`, rounded to the lattice."""
        if self.kind.levels:
            found: Array = np.searchsorted(self._below[1:-1], u, side="right").astype(float)
            return found
        result = np.full(len(u), np.nan)
        rest, at_atom = u.copy(), np.zeros(len(u), bool)
        for k in range(len(self.atoms)):
            assert self._atoms_at is not None
            low = self._atoms_at[k]
            inside = (u >= low) & (u < low + self.masses[k])
            result[inside] = self.atoms[k]
            at_atom |= inside
            rest = np.where(u >= low + self.masses[k], rest - self.masses[k], rest)
        share = (rest / max(self._rest, 1e-300)).clip(self._at[0], self._at[-1])
        x = np.interp(share, self._at, self.edges)
        if self.kind.step:
            x = np.round(x / self.kind.step) * self.kind.step
        merged: Array = np.where(at_atom, result, x.clip(*self.bounds))
        return merged

    def _smooth(self, x: Array) -> Array:
        """F_c."""
        if not len(self.edges):
            return np.zeros(len(x))
        tail, scale = self.tail
        inside = np.interp(x, self.edges, self._at)
        with np.errstate(over="ignore"):
            low = tail * np.exp(-(self.edges[0] - x).clip(min=0) / scale)
            high = 1 - tail * np.exp(-(x - self.edges[-1]).clip(min=0) / scale)
        outside: Array = np.where(x > self.edges[-1], high, inside)
        return np.where(x < self.edges[0], low, outside)

    def _inside(self, x: Array) -> tuple[Array, Array]:
        """x, and the logarithm of the density of F_c there."""
        tail, scale = self.tail
        k = np.searchsorted(self.edges, x, side="right").clip(1, len(self.shares)) - 1
        inside = np.log(self.shares[k] / (self.edges[k + 1] - self.edges[k]))
        outside = np.maximum(self.edges[0] - x, x - self.edges[-1]).clip(min=0)
        return x, np.where(outside > 0, np.log(tail / scale) - outside / scale, inside)

    def _mass_below(self, values: Array) -> Array:
        found: Array = self._below[np.searchsorted(self.atoms, values, side="right")]
        return found

    def record(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {
            "kind": list(self.kind),
            "atoms": self.atoms.tolist() if not self.kind.levels else [],
            "masses": self.masses.tolist(),
            "edges": self.edges.tolist(),
            "shares": self.shares.tolist(),
            "tail": list(self.tail),
            "bounds": list(self.bounds),
        }

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> "Marginal":
        """The inverse of :meth:`record`."""
        kind = Kind(*state["kind"])
        atoms = np.arange(kind.levels) if kind.levels else state["atoms"]
        masses, edges, shares = (
            np.asarray(state[name], float) for name in ("masses", "edges", "shares")
        )
        tail, bounds = ((state[name][0], state[name][1]) for name in ("tail", "bounds"))
        return cls(kind, np.asarray(atoms, float), masses, edges, shares, tail, bounds)


def _histogram(values: Array, mass: Array, step: float, found: Array) -> tuple[Array, Array]:
    """Edges and shares of bins: of each value of a short lattice, else of equally many rows.

    A pseudo-row is distributed evenly over the range, so that no place in it is impossible.
    """
    if not len(values):  # all mass is on atoms
        width = step or max(abs(found[0]), 1.0) * 0.5
        return np.array([found[0] - width / 2, found[-1] + width / 2]), np.ones(1)
    if step and len(values) <= DISTINCT and mass.sum() >= PER_VALUE * len(values):
        edges = np.unique(np.round(np.concatenate([values - step / 2, values + step / 2]), 9))
        keep = np.concatenate([[True], np.diff(edges) > step * 1e-3])
        edges = edges[keep]
        counts = np.histogram(values, edges, weights=mass)[0]
    else:
        half = step / 2
        total = mass.sum()
        bins = int(min(max(total / PER_BIN, 4), MOST_BINS, max(len(values) - 1, 1)))
        level = np.concatenate([[0.0], np.cumsum(mass)]) / total
        borders = np.concatenate([[values[0] - half], (values[1:] + values[:-1]) / 2])
        borders = np.concatenate([borders, [values[-1] + half]])
        edges = np.unique(np.interp(np.linspace(0, 1, bins + 1), level, borders))
        if len(edges) < 2:
            width = max(abs(values[0]), 1.0) * 0.5
            edges = np.array([values[0] - width, values[0] + width])
        counts = np.diff(np.interp(edges, borders, level)) * total
    width = np.diff(edges)
    counts = counts + width / width.sum()
    return edges, counts / counts.sum()


class Marginals:
    r"""Normal scores of codes: :math:`z_j = \Phi^{-1}(F_j(x_j))`, with what the change costs.

    .. math:: \log p(x) = \log p_Z(z) + \sum_j [\log f_j(x_j) - \log \varphi(z_j)]

    A level and an atom occupy an interval, in which z is drawn; :math:`f_j` is then the share, and
    the mean over draws is a lower bound. A missing value is nan in z as well.

    Args:
        columns: the distribution of each.
        linear: ``(D,)`` mean and scale of columns that are standardised and not bent; None of the
            others.
    """

    def __init__(self, columns: list[Marginal], linear: list[tuple[float, float] | None]) -> None:
        self.laws, self.linear = columns, linear

    @classmethod
    def fit(
        cls, codes: Tensor, weight: Tensor, kinds: list[Kind], *, bend: bool = True
    ) -> "Marginals":
        """Estimates each column; without ``bend`` numbers without atoms are standardised."""
        values = codes.double().reshape(len(codes), -1).numpy()
        mass = weight.double().numpy()
        laws, linear = [], list[tuple[float, float] | None]()
        for j, kind in enumerate(kinds):
            law = Marginal.fit(values[:, j], mass, kind)
            laws.append(law)
            straight = None
            if not bend and not kind.levels and not len(law.atoms):
                x, w = values[:, j], mass
                seen = ~np.isnan(x)
                mean = float(np.average(x[seen], weights=w[seen])) if seen.any() else 0.0
                variance = np.average((x[seen] - mean) ** 2, weights=w[seen]) if seen.any() else 1.0
                straight = (mean, max(float(variance) ** 0.5, 1e-12))
            linear.append(straight)
        return cls(laws, linear)

    @property
    def is_exact(self) -> bool:
        """Whether no place is drawn, so that densities are exact."""
        return not any(law.has_jitter for law in self.laws)

    def scores(
        self, codes: Tensor, rng: torch.Generator | None, *, middle: bool = False
    ) -> tuple[Tensor, Tensor]:
        """z, ``(N, D)``, and the logarithm of the volume change of each row's known values."""
        flat = codes.double().reshape(len(codes), -1)
        uniform = torch.full_like(flat, 0.5)
        if not middle:
            uniform = torch.rand(flat.shape, generator=rng, dtype=torch.float64)
        values, places = flat.numpy(), uniform.numpy()
        z, volume = np.full(values.shape, np.nan), np.zeros(values.shape)
        for j, law in enumerate(self.laws):
            seen = ~np.isnan(values[:, j])
            x, line = values[seen, j], self.linear[j]
            if line is not None:
                shifted = x + (places[seen, j] - 0.5) * law.kind.step
                z[seen, j] = (shifted - line[0]) / line[1]
                volume[seen, j] = -np.log(line[1])
                continue
            u, log_measure = law.place(x, places[seen, j])
            score = torch.special.ndtri(torch.from_numpy(u).clamp(1e-12, 1 - 1e-12)).numpy()
            z[seen, j] = score
            volume[seen, j] = log_measure + 0.5 * score**2 + 0.5 * np.log(2 * np.pi)
        return torch.from_numpy(z), torch.from_numpy(volume.sum(1))

    def intervals(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        """The ends of the interval of scores of each value; all numbers where it is missing."""
        values = codes.double().reshape(len(codes), -1).numpy()
        low, high = np.full(values.shape, -np.inf), np.full(values.shape, np.inf)
        for j, law in enumerate(self.laws):
            seen = ~np.isnan(values[:, j])
            x, line = values[seen, j], self.linear[j]
            if line is not None:
                half = law.kind.step / 2
                low[seen, j], high[seen, j] = ((x + s * half - line[0]) / line[1] for s in (-1, 1))
                continue
            for place, u in zip((low, high), law.interval(x), strict=True):
                at = torch.from_numpy(u).clamp(1e-12, 1 - 1e-12)
                place[seen, j] = torch.special.ndtri(at).numpy()
        return torch.from_numpy(low), torch.from_numpy(high)

    def measured(self, codes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The intervals of scores, and what each value adds to the log density of its scores.

        A value that is one point adds log f - log phi, the change of volume; one of a lattice
        -log step, so that densities are per unit; a level and an atom nothing.
        """
        low, high = self.intervals(codes)
        values = codes.double().reshape(len(codes), -1).numpy()
        added = np.zeros(values.shape)
        for j, law in enumerate(self.laws):
            seen = ~np.isnan(values[:, j])
            x, line, own = values[seen, j], self.linear[j], added[:, j]
            if law.kind.levels:
                continue
            if law.kind.step:
                own[seen] = np.where(np.isin(x, law.atoms), 0.0, -np.log(law.kind.step))
            elif line is not None:
                own[seen] = -np.log(line[1])
            else:
                _, log_measure = law.place(x, np.full(len(x), 0.5))
                z = low[seen, j].numpy()
                normal = -0.5 * z**2 - 0.5 * np.log(2 * np.pi)
                own[seen] = np.where(np.isin(x, law.atoms), 0.0, log_measure - normal)
        return low, high, torch.from_numpy(added)

    def codes(self, z: Tensor) -> Tensor:
        """The codes at scores, ``(N, D)``."""
        u = torch.special.ndtr(z.double()).numpy()
        found = np.empty(u.shape)
        for j, law in enumerate(self.laws):
            line = self.linear[j]
            if line is None:
                found[:, j] = law.value(u[:, j])
                continue
            x = line[0] + line[1] * z[:, j].double().numpy()
            step = law.kind.step
            found[:, j] = np.round(x / step) * step if step else x
        return torch.from_numpy(found)

    def record(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {"laws": [law.record() for law in self.laws], "linear": self.linear}

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> "Marginals":
        """The inverse of :meth:`record`."""
        linear = [None if each is None else (each[0], each[1]) for each in state["linear"]]
        return cls([Marginal.load(each) for each in state["laws"]], linear)
