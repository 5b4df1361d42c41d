"""Draws from any density: warm-up, sampling and what the chains are worth."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from ansatz.errors import NumericalError, UsageError
from ansatz.inference.chains import Chains
from ansatz.inference.runs import METHODS, Plan, Run, begin
from ansatz.inference.samplers.density import Density, LogDensity, with_gradient
from ansatz.inference.samplers.metric import Metric
from ansatz.seeds import derive

Array = NDArray[np.float64]
DENSE = 500  # parameters up to which a whole covariance is learned


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
    density = gradient or with_gradient(_given(log_density))
    run = start_run(
        density, start, method, chains=chains, warmup=warmup, draws=draws, thin=thin,
        seed=seed, target_accept=target_accept, max_depth=max_depth, metric=metric,
    )  # fmt: skip
    run.go()
    return run.chains()


class About(NamedTuple):
    """What is known of a density besides its values.

    Args:
        names: of the parameters, for messages.
        held: coordinates that stay at the start while the mode is sought: the joint mode of a
            hierarchy and its scales lies far from its mass.
    """

    names: Sequence[str] | None = None
    held: Sequence[int] = ()


def start_run(
    density: Density,
    start: Tensor,
    method: str = "nuts",
    *,
    chains: int = 4,
    warmup: int = 1000,
    draws: int = 1000,
    thin: int = 1,
    seed: int = 0,
    target_accept: float = 0.8,
    max_depth: int = 10,
    metric: str | Tensor = "auto",
    about: "About | None" = None,
) -> Run:
    """The chains of :func:`sample` before their first draw."""
    _check(method, warmup=warmup, draws=draws, thin=thin, chains=chains, target=target_accept)
    names, held = about or About()
    start = start.detach().double()
    if start.ndim == 1:
        _check_start(density, start[None], names)
    centre = start if start.ndim == 1 else start.mean(0)
    shape = mode_and_covariance(density, centre, metric, held)
    places = _starts(start, shape, chains, seed) if start.ndim == 1 else start
    if start.ndim == 1:
        places = _nearer(density, places, start if shape is None else shape.mode)
    _check_start(density, places, names)
    first = _first_metric(metric, shape, places.shape[1])
    learns = isinstance(metric, str)
    plan = Plan(method, warmup, draws, thin, seed, target_accept, max_depth, learns)
    return begin(density, places, first, plan)


def _nearer(density: Density, places: Tensor, centre: Tensor) -> Tensor:
    """Places halfway to the centre, as often as the density is not finite there."""
    for _ in range(10):
        lost = ~density(places)[0].isfinite()
        if not lost.any():
            break
        places = torch.where(lost[:, None], (places + centre) / 2, places)
    return places


def _check_start(density: Density, places: Tensor, names: Sequence[str] | None) -> None:
    """Refuses a start without a density, and names the parameter that is to blame."""

    def name(place: int) -> str:
        return f"x{place}" if names is None else names[place]

    lost = (~places.isfinite()).nonzero()
    if len(lost):
        chain, place = lost[0].tolist()
        raise NumericalError(
            f"chain {chain + 1} begins where {name(place)} is {float(places[chain, place])}: "
            "start at a finite number."
        )
    values, _ = density(places)
    if values.isfinite().all():
        return
    chain = int((~values.isfinite()).nonzero()[0])
    others = places[chain].repeat(places.shape[1], 1)
    others.fill_diagonal_(0)  # each parameter in turn
    cured = density(others)[0].isfinite().nonzero()
    about = f" {name(int(cured[0]))} is the parameter to change." if len(cured) else ""
    raise NumericalError(
        f"the log density is {float(values[chain])} where chain {chain + 1} begins: start "
        f"where it is finite.{about}"
    )


def _check(method: str, *, target: float, **counts: int) -> None:
    if method not in METHODS:
        raise UsageError(f"method must be one of {', '.join(METHODS)}, got {method!r}.")
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


def mode_and_covariance(
    density: Density, start: Tensor, metric: str | Tensor, held: Sequence[int] = ()
) -> Shape | None:
    """The mode and the inverse Hessian there; None where there is none, or D is too large."""
    size = len(start)
    if not isinstance(metric, str) or metric == "diagonal" or size > DENSE:
        return None

    def function(x: Array) -> tuple[float, Array]:
        value, slope = density(torch.from_numpy(x)[None])
        found = -float(value)
        slope[:, list(held)] = 0
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
    if held:  # not at a mode: curvatures may be negative; the prior's are about 1
        values = values.abs().clamp(min=1.0)
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
