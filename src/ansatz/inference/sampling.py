"""Draws from any density: warm-up, sampling and what the chains are worth."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from ansatz.errors import NumericalError, UsageError
from ansatz.inference.convergence import ess_bulk, ess_tail, mcse_mean, r_hat
from ansatz.inference.samplers import hmc, mala, metropolis, nuts
from ansatz.inference.samplers.adaptation import (
    Moments,
    StepSize,
    begin_moments,
    begin_step_size,
    covariance,
    first_draw,
    update_moments,
    update_step_size,
    windows,
)
from ansatz.inference.samplers.density import Density, LogDensity, with_gradient
from ansatz.inference.samplers.metric import Metric
from ansatz.seeds import derive

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
DENSE = 500  # parameters up to which a whole covariance is learned


class Chains(NamedTuple):
    """Draws of several chains, and how they were made.

    Args:
        draws: ``(C, N, D)``, the warm-up left out.
        log_density: ``(C, N)``.
        acceptance: ``(C, N)``, the probability of accepting, or its mean over a path.
        diverging: ``(C, N)`` bool, whether the path left the region where its energy is kept.
        depth: ``(C, N)``, doublings of the paths of ``nuts``; 0 for others.
        energy: ``(C, N)``; nan for samplers without momentum.
        step_size: ``(C,)``.
        max_depth: the largest depth allowed.

    Example:
        >>> import torch
        >>> from ansatz.inference import sample
        >>> found = sample(lambda x: -(x**2).sum(1) / 2, torch.zeros(1), warmup=100, draws=200)
        >>> found.summary(["x"]).index.tolist()
        ['x']
    """

    draws: Tensor
    log_density: Tensor
    acceptance: Tensor
    diverging: Tensor
    depth: Tensor
    energy: Tensor
    step_size: Tensor
    max_depth: int

    def summary(self, names: list[str] | None = None) -> "pd.DataFrame":
        """Mean, standard deviation, quantiles, Monte-Carlo error, R-hat and effective draws.

        Args:
            names: of the parameters; x0, x1, ... by default.
        """
        import pandas as pd

        x = self.draws.numpy()
        flat = x.reshape(-1, x.shape[2])
        low, high = np.quantile(flat, [0.05, 0.95], axis=0)
        columns = {
            "mean": flat.mean(0),
            "sd": flat.std(0, ddof=1),
            "mcse": mcse_mean(x),
            "5%": low,
            "95%": high,
            "r_hat": r_hat(x),
            "ess_bulk": ess_bulk(x),
            "ess_tail": ess_tail(x),
        }
        return pd.DataFrame(columns, index=names or [f"x{k}" for k in range(x.shape[2])])

    @property
    def problems(self) -> list[str]:
        """Reasons not to believe the draws, in sentences; none where there are none.

        R-hat above 1.01, fewer than 100 effective draws a chain, divergences, paths that reached
        their largest depth, and an energy that hardly moves (E-BFMI below 0.3).
        """
        x, found = self.draws.numpy(), []
        worst, least = float(np.nanmax(r_hat(x))), float(min(ess_bulk(x).min(), ess_tail(x).min()))
        if not worst <= 1.01:
            found.append(f"the chains disagree: R-hat {worst:.3f}, above 1.01.")
        if not least >= 100 * len(x):
            found.append(f"{least:.0f} effective draws; {100 * len(x)} are needed.")
        if self.diverging.any():
            found.append(
                f"{int(self.diverging.sum())} paths diverged: the step size is too large for a "
                "part of the posterior (target_accept=0.95, or another parameterisation)."
            )
        deepest = int((self.depth >= self.max_depth).sum())
        if deepest:
            found.append(f"{deepest} paths reached the largest depth, {self.max_depth}.")
        fraction = energy_fraction(self.energy.numpy())
        if (fraction < 0.3).any():
            found.append(f"the energy hardly moves: E-BFMI {np.nanmin(fraction):.2f}, below 0.3.")
        return found


def energy_fraction(energy: Array) -> Array:
    r"""E-BFMI: how far one momentum moves the energy, beside how far it ranges, ``(C,)``.

    .. math:: \frac{\sum_n (E_n - E_{n-1})^2}{\sum_n (E_n - \bar E)^2}

    References:
        Betancourt (2016), Diagnosing suboptimal cotangent disintegrations.
        https://arxiv.org/abs/1604.00695
    """
    steps = (np.diff(energy, axis=1) ** 2).sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Array = steps / ((energy - energy.mean(1, keepdims=True)) ** 2).sum(1)
    return found


def sample(
    log_density: LogDensity | None,
    start: Tensor,
    method: str = "nuts",
    gradient: Density | None = None,
    *,
    chains: int = 4,
    warmup: int = 1000,
    draws: int = 1000,
    thin: int = 1,
    seed: int = 0,
    target_accept: float = 0.8,
    max_depth: int = 10,
    metric: str | Tensor = "auto",
) -> Chains:
    """Draws from a density that is known up to a constant.

    Args:
        log_density: positions ``(C, D)`` to values ``(C,)``; ``samplers.batched`` wraps one of a
            single vector. May be None beside ``gradient``.
        start: ``(C, D)``, where each chain begins; or ``(D,)``, from where the mode is sought,
            around which the chains begin, twice as far apart as the posterior is wide.
        method: ``"nuts"``, ``"hmc"``, ``"mala"`` or ``"mh"``.
        gradient: positions to values ``(C,)`` and gradients ``(C, D)``, where you have written them
            out; by autograd when not given.
        chains: number of chains, where ``start`` is one vector.
        warmup: draws that learn step size and metric, and are thrown away.
        draws: kept from each chain.
        thin: one of this number of draws is kept.
        seed: of everything random; each chain of ``nuts`` has a stream of its own.
        target_accept: the acceptance probability that the step size is adapted to; ``nuts`` and
            ``hmc`` 0.8, ``mala`` takes 0.574 and ``mh`` 0.234 unless another is given.
        max_depth: ``nuts`` doubles a path so often at most.
        metric: ``"dense"`` learns a covariance, ``"diagonal"`` variances, ``"auto"`` is dense up to
            500 parameters and begins with the inverse Hessian at the mode; or the inverse mass
            itself, ``(D,)`` or ``(D, D)``, which is then kept.

    Returns:
        The draws, with their diagnostics.

    Raises:
        NumericalError: the density is not finite at a start.

    Example:
        >>> import torch
        >>> from ansatz.inference import sample
        >>> found = sample(lambda x: -(x**2).sum(1) / 2, torch.zeros(2), warmup=200, draws=500)
        >>> found.draws.shape, found.problems
        (torch.Size([4, 500, 2]), [])

    References:
        Hoffman and Gelman (2014), The no-U-turn sampler. https://arxiv.org/abs/1111.4246
    """
    _check(method, warmup=warmup, draws=draws, thin=thin, chains=chains, target=target_accept)
    density = gradient or with_gradient(_given(log_density))
    start = start.detach().double()
    shape = mode_and_covariance(density, start if start.ndim == 1 else start.mean(0), metric)
    begin = _starts(start, shape, chains, seed) if start.ndim == 1 else start
    values, _ = density(begin)
    if not values.isfinite().all():
        chain = int((~values.isfinite()).nonzero()[0])
        raise NumericalError(
            f"the log density is {float(values[chain])} where chain {chain + 1} begins: start "
            "where it is finite."
        )
    first = _first_metric(metric, shape, begin.shape[1])
    learns = isinstance(metric, str)
    plan = _Plan(method, warmup, draws, thin, seed, target_accept, max_depth, learns)
    if method == "nuts":
        return _apart(density, begin, first, plan)
    return _together(density, begin, first, plan)


class _Plan(NamedTuple):
    method: str
    warmup: int
    draws: int
    thin: int
    seed: int
    target: float
    max_depth: int
    learns: bool  # whether the metric is adapted


def _check(method: str, *, target: float, **counts: int) -> None:
    if method not in _METHODS:
        raise UsageError(f"method must be one of {', '.join(_METHODS)}, got {method!r}.")
    for name, count in counts.items():
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise UsageError(f"{name} must be a whole number of 1 or more, got {count!r}.")
    if not 0 < target < 1:
        raise UsageError(f"target_accept must be in (0, 1), got {target}.")


def _given(log_density: LogDensity | None) -> LogDensity:
    if log_density is None:
        raise UsageError("sample needs a log density, or a gradient that gives it too.")
    return log_density


# Where the density is, and how wide.


class Shape(NamedTuple):
    """The normal approximation at the mode."""

    mode: Tensor  # (D,)
    covariance: Tensor  # (D, D), the inverse Hessian of -log p


def mode_and_covariance(density: Density, start: Tensor, metric: str | Tensor) -> Shape | None:
    """The mode and the inverse Hessian there; None where there is none, or D is too large."""
    size = len(start)
    if not isinstance(metric, str) or metric == "diagonal" or size > DENSE:
        return None

    def function(x: Array) -> tuple[float, Array]:
        value, slope = density(torch.from_numpy(x)[None])
        found = -float(value)
        return (found, -slope[0].numpy()) if math.isfinite(found) else (1e300, np.zeros(size))

    done = minimize(function, start.numpy(), jac=True, method="L-BFGS-B", options={"maxiter": 500})
    mode = torch.from_numpy(done.x)
    if not math.isfinite(done.fun) or done.fun >= 1e300:
        return None
    # Central differences of the gradient, off by h^2: with h the cube root of the precision.
    h = 6e-6 * torch.clamp(mode.abs(), min=1.0)
    points = torch.cat([mode + torch.diag(h), mode - torch.diag(h)])
    slopes = torch.cat([density(part)[1] for part in points.split(64)])
    hessian = -(slopes[:size] - slopes[size:]) / (2 * h[:, None])
    hessian = (hessian + hessian.mT) / 2
    if not hessian.isfinite().all():
        return None
    values, vectors = torch.linalg.eigh(hessian)
    if float(values[0]) <= 1e-10 * float(values[-1]):
        return None
    return Shape(mode, (vectors / values) @ vectors.mT)


def _starts(start: Tensor, shape: Shape | None, chains: int, seed: int) -> Tensor:
    """Where the chains begin: dispersed around the mode, or a little around the start."""
    draw = torch.Generator().manual_seed(derive(seed, "starts") % 2**63)
    noise = torch.randn(chains, len(start), generator=draw, dtype=torch.float64)
    if shape is None:
        return start + 0.1 * torch.clamp(start.abs(), min=1.0) * noise
    root: Tensor = torch.linalg.cholesky(shape.covariance)
    return shape.mode + 2 * noise @ root.mT


def _first_metric(metric: str | Tensor, shape: Shape | None, size: int) -> Metric:
    if isinstance(metric, Tensor):
        return Metric.of(metric.double())
    if metric not in ("auto", "dense", "diagonal"):
        raise UsageError(f"metric must be auto, dense, diagonal or a tensor, got {metric!r}.")
    if shape is not None:
        return Metric.of(shape.covariance)
    one = torch.ones(size, dtype=torch.float64)
    return Metric.of(
        torch.diag(one) if metric == "dense" or (size <= DENSE and metric == "auto") else one
    )


def first_step_size(density: Density, start: Tensor, metric: Metric, seed: int) -> Tensor:
    """The size at which one leapfrog step is accepted with probability 0.8, roughly, ``(C,)``."""
    draw = torch.Generator().manual_seed(derive(seed, "first step") % 2**63)
    state = mala.start(start, density)
    size = torch.ones(len(start), dtype=torch.float64)
    direction = torch.zeros_like(size)
    for _ in range(50):
        momentum = metric.draw(start, draw)
        moved, end = hmc.leapfrog(state, momentum, density, size[:, None], metric, 1)
        error = state.log_density - metric.kinetic(momentum)
        error = moved.log_density - metric.kinetic(end) - error
        now = torch.where(error > math.log(0.8), 1.0, -1.0)
        going = (direction == 0) | (direction == now)
        direction = torch.where(direction == 0, now, direction)
        if not going.any():
            break
        size = torch.where(going, size * 2**direction, size)
    return size


# Chains that do not wait for each other.


class _Chain:
    """One chain of nuts: it learns in warm-up, then records."""

    def __init__(self, number: int, point: nuts.Point, step: float, first: Metric, plan: _Plan):
        self.plan, self.point = plan, point
        self.draw = np.random.default_rng(derive(plan.seed, "chain", number) % 2**63)
        self.inverse, self.root = (each.numpy() for each in first)
        self.step: StepSize = begin_step_size(step)
        self.moments = self._no_moments()
        self.ends, self.first = windows(plan.warmup), first_draw(plan.warmup)
        self.done = 0
        self.kept: list[nuts.Path] = []

    @property
    def is_complete(self) -> bool:
        return self.done >= self.plan.warmup + self.plan.thin * self.plan.draws

    def _no_moments(self) -> Moments:
        return begin_moments(len(self.point.position), self.inverse.ndim == 2)

    def path(self) -> nuts.Asking:
        """The next path."""
        size = self.step.current if self.done < self.plan.warmup else self.step.settled
        how = nuts.Paths(float(size), self.inverse, self.root, self.plan.max_depth)
        return nuts.path(self.point, how, self.draw)

    def take(self, path: nuts.Path) -> None:
        """Takes a complete path: adapts to it, or keeps its position."""
        self.point, self.done = path.point, self.done + 1
        late = self.done - self.plan.warmup
        if late > 0:
            if late % self.plan.thin == 0:
                self.kept.append(path)
            return
        self.step = update_step_size(self.step, path.acceptance, self.plan.target)
        if not self.plan.learns or self.done <= self.first:
            return
        self.moments = update_moments(self.moments, path.point.position)
        if self.done in self.ends:
            metric = Metric.of(torch.from_numpy(covariance(self.moments, self.inverse)))
            self.inverse, self.root = (each.numpy() for each in metric)
            self.moments = self._no_moments()
            self.step = begin_step_size(float(self.step.settled))


def _apart(density: Density, start: Tensor, first: Metric, plan: _Plan) -> Chains:
    """Chains of nuts, each of which begins its next path at once."""
    sizes = first_step_size(density, start, first, plan.seed).tolist()
    values, gradients = density(start)
    points = zip(start.numpy(), values.tolist(), gradients.numpy(), strict=True)
    chains = [
        _Chain(k, nuts.Point(q.copy(), value, slope.copy()), size, first, plan)
        for k, ((q, value, slope), size) in enumerate(zip(points, sizes, strict=True))
    ]
    asking: list[nuts.Asking | None] = [chain.path() for chain in chains]
    waiting = np.stack([next(each) for each in asking if each is not None])

    def ended(number: int, path: nuts.Path) -> None:
        chain = chains[number]
        chain.take(path)
        if chain.is_complete:
            asking[number] = None
            return
        new = chain.path()
        asking[number], waiting[number] = new, next(new)

    while any(each is not None for each in asking):
        nuts.advance(asking, waiting, density, ended)
    return _gathered(chains, plan)


def _gathered(chains: list[_Chain], plan: _Plan) -> Chains:
    def of(value: Callable[[nuts.Path], Any]) -> Tensor:
        return torch.as_tensor(np.array([[value(path) for path in c.kept] for c in chains]))

    return Chains(
        of(lambda path: path.point.position),
        of(lambda path: path.point.log_density),
        of(lambda path: path.acceptance),
        of(lambda path: path.diverging),
        of(lambda path: path.depth),
        of(lambda path: path.energy),
        torch.tensor([float(chain.step.settled) for chain in chains]),
        plan.max_depth,
    )


# Chains in step with each other.


class _Method(NamedTuple):
    module: Any
    target: float
    settings: Callable[[Tensor, Metric], Any]


_METHODS: Mapping[str, Any] = {
    "nuts": None,
    "hmc": _Method(hmc, 0.8, lambda size, metric: hmc.Settings(size, metric)),
    "mala": _Method(mala, 0.574, lambda size, metric: mala.Settings(size, metric)),
    "mh": _Method(
        metropolis, 0.234, lambda size, metric: metropolis.Settings(size, _square_root(metric))
    ),
}


def _square_root(metric: Metric) -> Tensor:
    """The scale of proposals with the metric's covariance."""
    inverse = metric.inverse
    return inverse.sqrt() if inverse.ndim == 1 else torch.linalg.cholesky(inverse)


def _together(density: Density, start: Tensor, first: Metric, plan: _Plan) -> Chains:
    """Chains in step, with one metric for all of them."""
    method: _Method = _METHODS[plan.method]
    target = plan.target if plan.target != 0.8 else method.target
    own: Any = density if plan.method != "mh" else lambda position: density(position)[0]
    draw = torch.Generator().manual_seed(derive(plan.seed, "chains") % 2**63)
    state, metric = method.module.start(start, own), first
    size = first_step_size(density, start, first, plan.seed).numpy()
    if plan.method == "mh":
        size = np.full(len(start), 2.38 / start.shape[1] ** 0.5)
    step = begin_step_size(size)
    dense = metric.inverse.ndim == 2
    moments = begin_moments(start.shape[1], dense)
    ends, begin, kept = windows(plan.warmup), first_draw(plan.warmup), []
    for number in range(1, plan.warmup + plan.thin * plan.draws + 1):
        learning = number <= plan.warmup
        now = torch.as_tensor(step.current if learning else step.settled)
        state, info = method.module.step(state, own, method.settings(now, metric), draw)
        if not learning:
            if (number - plan.warmup) % plan.thin == 0:
                kept.append((state, info))
            continue
        step = update_step_size(step, info.acceptance.numpy(), target)
        if not plan.learns or number <= begin:
            continue
        for position in state.position.numpy():
            moments = update_moments(moments, position)
        if number in ends:
            metric = Metric.of(torch.from_numpy(covariance(moments, metric.inverse.numpy())))
            moments = begin_moments(start.shape[1], dense)
            step = begin_step_size(np.asarray(step.settled))
    return _stacked(kept, torch.as_tensor(np.asarray(step.settled)), plan)


def _stacked(kept: list[Any], step_size: Tensor, plan: _Plan) -> Chains:
    def of(values: Iterator[Tensor]) -> Tensor:
        return torch.stack(list(values), 1)

    blank = torch.zeros_like(kept[0][1].accepted)
    nothing = torch.full_like(kept[0][0].log_density, math.nan)
    return Chains(
        of(state.position for state, _ in kept),
        of(state.log_density for state, _ in kept),
        of(info.acceptance for _, info in kept),
        of(getattr(info, "diverging", blank) for _, info in kept),
        of(blank.long() for _ in kept),
        of(getattr(info, "energy", nothing) for _, info in kept),
        step_size,
        plan.max_depth,
    )
