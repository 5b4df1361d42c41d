"""The no-U-turn sampler: Hamiltonian paths that end where they would turn back."""

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.inference.samplers.density import Density
from ansatz.inference.samplers.mala import State as State
from ansatz.inference.samplers.mala import start as start
from ansatz.inference.samplers.metric import Metric

Array = NDArray[np.float64]
WORST = 1000.0  # an energy error beyond it is a divergence


class Settings(NamedTuple):
    """The paths."""

    step_size: Tensor  # (C,) or ()
    metric: Metric
    max_depth: int = 10  # a path has at most 2^max_depth steps


class Info(NamedTuple):
    """What a diagnostician wants to know, ``(C,)`` each."""

    acceptance: Tensor  # the mean over the path's steps of min(1, e^(H - H'))
    energy: Tensor  # of the new position and the momentum that led to it
    depth: Tensor  # doublings of the path
    diverging: Tensor  # bool: the energy error exceeded 1,000
    steps: Tensor  # leapfrog steps


class Point(NamedTuple):
    """One chain's position: what a path begins and ends with."""

    position: Array  # (D,)
    log_density: float
    gradient: Array  # (D,)


class Path(NamedTuple):
    """What one path of one chain has shown."""

    point: Point
    acceptance: float
    energy: float
    depth: int
    diverging: bool
    steps: int


class Paths(NamedTuple):
    """How one chain makes paths."""

    step_size: float
    inverse: Array  # the metric's, (D,) or (D, D)
    root: Array
    max_depth: int


class _Edge(NamedTuple):
    position: Array
    momentum: Array
    velocity: Array
    gradient: Array


class _Tree(NamedTuple):
    left: _Edge
    right: _Edge
    total: Array  # the sum of the momenta
    point: Point
    energy: float
    log_weight: float
    stopped: bool
    diverging: bool
    acceptance: float  # summed over the steps
    steps: int


Asking = Generator[Array, tuple[float, Array], Any]  # yields a position, is sent what is there


def path(point: Point, how: Paths, draw: np.random.Generator) -> Asking:
    r"""One path of one chain, as a coroutine that yields positions and is sent their densities.

    The path doubles, forwards or backwards by a coin, until it turns: with :math:`\rho` the sum
    of its momenta, until :math:`\rho^\top M^{-1} v \le 0` at one of its ends, or at those of one
    half and the first step of the other. The next position is drawn from all of the path
    by the weights :math:`e^{-H}`, with a preference for the last doubling.

    References:
        Hoffman and Gelman (2014), The no-U-turn sampler. https://arxiv.org/abs/1111.4246
        Betancourt (2017), A conceptual introduction to Hamiltonian Monte Carlo, appendix A.
        https://arxiv.org/abs/1701.02434
    """
    noise = draw.standard_normal(len(point.position))
    momentum = how.root * noise if how.root.ndim == 1 else how.root @ noise
    velocity = _velocity(how, momentum)
    began = 0.5 * float(momentum @ velocity) - point.log_density
    edge = _Edge(point.position, momentum, velocity, point.gradient)
    tree = _Tree(edge, edge, momentum, point, began, 0.0, False, False, 0.0, 0)
    depth, acceptance, steps = 0, 0.0, 0
    while depth < how.max_depth and not tree.stopped:
        forward = draw.random() < 0.5
        size = how.step_size if forward else -how.step_size
        edge = tree.right if forward else tree.left
        new = yield from _grow(edge, depth, size, began, how, draw)
        depth, acceptance, steps = depth + 1, acceptance + new.acceptance, steps + new.steps
        if new.stopped:
            tree = tree._replace(stopped=True, diverging=new.diverging)
        else:
            tree = _join(tree, new, forward, draw.random() < _ratio(new, tree.log_weight))
    return Path(tree.point, acceptance / steps, tree.energy, depth, tree.diverging, steps)


def _velocity(how: Paths, momentum: Array) -> Array:
    found: Array = how.inverse * momentum if how.inverse.ndim == 1 else how.inverse @ momentum
    return found


def _grow(
    edge: _Edge, depth: int, size: float, began: float, how: Paths, draw: np.random.Generator
) -> Asking:
    """A tree of 2^depth steps beyond an edge."""
    if depth == 0:
        return (yield from _leaf(edge, size, began, how))
    first = yield from _grow(edge, depth - 1, size, began, how, draw)
    if first.stopped:
        return first
    outer = first.right if size > 0 else first.left
    second = yield from _grow(outer, depth - 1, size, began, how, draw)
    acceptance, steps = first.acceptance + second.acceptance, first.steps + second.steps
    if second.stopped:
        return second._replace(acceptance=acceptance, steps=steps)
    total = np.logaddexp(first.log_weight, second.log_weight)
    found = _join(first, second, size > 0, draw.random() < _ratio(second, total))
    return found._replace(acceptance=acceptance, steps=steps)


def _leaf(edge: _Edge, size: float, began: float, how: Paths) -> Asking:
    """One leapfrog step."""
    half = edge.momentum + (0.5 * size) * edge.gradient
    position = edge.position + size * _velocity(how, half)
    log_density, gradient = yield position
    momentum = half + (0.5 * size) * gradient
    velocity = _velocity(how, momentum)
    energy = 0.5 * float(momentum @ velocity) - log_density
    error = began - energy
    diverging = not error > -WORST  # also where it is not a number
    new = _Edge(position, momentum, velocity, gradient)
    point = Point(position, log_density, gradient)
    acceptance = 0.0 if diverging else min(1.0, float(np.exp(min(error, 0.0))))
    return _Tree(new, new, momentum, point, energy, error, diverging, diverging, acceptance, 1)


def _ratio(new: _Tree, log_weight: float) -> float:
    return float(np.exp(min(new.log_weight - log_weight, 0.0)))


def _join(old: _Tree, new: _Tree, forward: bool, takes_new: bool) -> _Tree:
    """Two neighbouring trees as one, and whether the path turns within it."""
    left, right = (old, new) if forward else (new, old)
    total = left.total + right.total
    first, last = left.left.velocity, right.right.velocity
    turning = total @ first <= 0 or total @ last <= 0
    if not turning:  # of one half and the first step of the other
        reach = left.total + right.left.momentum
        turning = reach @ first <= 0 or reach @ right.left.velocity <= 0
    if not turning:
        reach = right.total + left.right.momentum
        turning = reach @ left.right.velocity <= 0 or reach @ last <= 0
    chosen = new if takes_new else old
    weight = float(np.logaddexp(old.log_weight, new.log_weight))
    return _Tree(
        left.left, right.right, total, chosen.point, chosen.energy, weight, bool(turning), False,
        0.0, 0,
    )  # fmt: skip


def advance(
    asking: Sequence[Asking | None],
    waiting: Array,
    density: Density,
    ended: Callable[[int, Path], None],
) -> None:
    """Answers what each chain asks for, all at once; ``ended`` replaces a path that is complete.

    Args:
        asking: a path for each chain; None for one that waits.
        waiting: ``(C, D)``, the positions they asked for, overwritten with the next ones.
        density: log p and its gradient.
        ended: takes the number of a chain and its complete path; it puts a new path into
            ``asking`` and its first position into ``waiting``.
    """
    values, gradients = density(torch.from_numpy(waiting.copy()))
    rows = gradients.numpy()
    for chain, value in enumerate(values.tolist()):
        asked = asking[chain]
        if asked is None:
            continue
        try:
            waiting[chain] = asked.send((value, rows[chain]))
        except StopIteration as done:
            ended(chain, done.value)


def step(
    state: State, density: Density, settings: Settings, generator: torch.Generator | None = None
) -> tuple[State, Info]:
    """One path for each chain; chains whose path is complete wait for the longest.

    :func:`~ansatz.inference.sample` lets none wait: each begins its next path at once.

    Args:
        state: of the chains.
        density: log p and its gradient, as of :func:`~ansatz.inference.samplers.with_gradient`.
        settings: step size, metric and largest depth.
        generator: of the noise.

    Example:
        >>> import torch
        >>> from ansatz.inference.samplers import Metric, nuts, with_gradient
        >>> density = with_gradient(lambda x: -(x**2).sum(1) / 2)
        >>> state = nuts.start(torch.zeros(4, 2, dtype=torch.float64), density)
        >>> settings = nuts.Settings(torch.tensor(0.5), Metric.of(torch.ones(2).double()))
        >>> state, info = nuts.step(state, density, settings)
        >>> bool((info.depth >= 1).all())
        True

    References:
        Hoffman and Gelman (2014), The no-U-turn sampler. https://arxiv.org/abs/1111.4246
    """
    count = len(state.position)
    sizes = settings.step_size.double().expand(count).tolist()
    inverse, root = (each.double().numpy() for each in settings.metric)
    seeds = torch.randint(2**62, (count,), generator=generator).tolist()
    arrays = [each.double().numpy() for each in state]
    asking: list[Asking | None] = [
        path(Point(q, float(p), g), Paths(size, inverse, root, settings.max_depth), _rng(seed))
        for q, p, g, size, seed in zip(*arrays, sizes, seeds, strict=True)
    ]
    waiting = np.stack([next(each) for each in asking if each is not None])
    found: dict[int, Path] = {}

    def ended(chain: int, done: Path) -> None:
        found[chain] = done
        asking[chain] = None

    while len(found) < count:
        advance(asking, waiting, density, ended)
    return _gathered([found[chain] for chain in range(count)], state)


def _rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def _gathered(paths: list[Path], state: State) -> tuple[State, Info]:
    kind = state.position.dtype
    points = [each.point for each in paths]
    moved = State(
        torch.from_numpy(np.stack([p.position for p in points])).to(kind),
        torch.tensor([p.log_density for p in points], dtype=kind),
        torch.from_numpy(np.stack([p.gradient for p in points])).to(kind),
    )
    info = Info(
        torch.tensor([p.acceptance for p in paths], dtype=kind),
        torch.tensor([p.energy for p in paths], dtype=kind),
        torch.tensor([p.depth for p in paths]),
        torch.tensor([p.diverging for p in paths]),
        torch.tensor([p.steps for p in paths]),
    )
    return moved, info
