"""Chains under way: they learn in warm-up, then record; they can be stopped and go on."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from ansatz.inference.chains import Chains
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
from ansatz.inference.samplers.density import Density
from ansatz.inference.samplers.metric import Metric
from ansatz.seeds import derive

State = dict[str, Any]  # numbers, text and tensors, as checkpoints hold them
AFTER = 50  # draws of a chain between two looks at the clock


class Plan(NamedTuple):
    """What chains are to do."""

    method: str
    warmup: int
    draws: int
    thin: int
    seed: int
    target: float
    max_depth: int
    learns: bool  # whether the metric is adapted

    @property
    def total(self) -> int:
        """The draws of one chain, those of the warm-up and those thinned out included."""
        return self.warmup + self.thin * self.draws


class Run(Protocol):
    """Several chains of one method."""

    plan: Plan
    density: Density

    def ends(self) -> tuple[Tensor, Tensor]:
        """Where each chain is, ``(C, D)``, and the log density there."""
        ...

    @property
    def done(self) -> int:
        """The draws of the chain that has fewest."""
        ...

    def go(self, look: Callable[["Run"], None] | None = None) -> None:
        """Draws until all chains are complete; ``look`` is called every few draws."""
        ...

    def chains(self) -> Chains:
        """The draws that were kept."""
        ...

    def state(self) -> State:
        """What the chains need to go on, and what they kept."""
        ...

    def load(self, state: Mapping[str, Any]) -> None:
        """Goes back to a state."""
        ...


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


class Kept(NamedTuple):
    """What is kept of one path."""

    position: np.ndarray[Any, Any]
    log_density: float
    acceptance: float
    diverging: bool
    depth: int
    energy: float


# Chains that do not wait for each other.


class _Chain:
    """One chain of nuts: it learns in warm-up, then records."""

    def __init__(self, number: int, point: nuts.Point, step: float, first: Metric, plan: Plan):
        self.plan, self.point = plan, point
        self.draw = np.random.default_rng(derive(plan.seed, "chain", number) % 2**63)
        self.inverse, self.root = (each.numpy() for each in first)
        self.step: StepSize = begin_step_size(step)
        self.moments = self._no_moments()
        self.ends, self.first = windows(plan.warmup), first_draw(plan.warmup)
        self.done = 0
        self.kept: list[Kept] = []
        self._before = self.draw.bit_generator.state

    @property
    def is_complete(self) -> bool:
        return self.done >= self.plan.total

    def _no_moments(self) -> Moments:
        return begin_moments(len(self.point.position), self.inverse.ndim == 2)

    def path(self) -> nuts.Asking:
        """The next path."""
        self._before = self.draw.bit_generator.state
        size = self.step.current if self.done < self.plan.warmup else self.step.settled
        how = nuts.Paths(float(size), self.inverse, self.root, self.plan.max_depth)
        return nuts.path(self.point, how, self.draw)

    def take(self, path: nuts.Path) -> None:
        """Takes a complete path: adapts to it, or keeps its position."""
        self.point, self.done = path.point, self.done + 1
        late = self.done - self.plan.warmup
        if late > 0:
            if late % self.plan.thin == 0:
                point, *rest = path[:-1]
                self.kept.append(Kept(point.position, point.log_density, *_in_order(rest)))
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

    def state(self) -> State:
        """As it was before the path under way, which it will make again."""
        noise = self._before if not self.is_complete else self.draw.bit_generator.state
        return {
            "position": torch.from_numpy(self.point.position.copy()),
            "gradient": torch.from_numpy(self.point.gradient.copy()),
            "log_density": float(self.point.log_density),
            "noise": [str(noise["state"]["state"]), str(noise["state"]["inc"])],
            "rest": [int(noise["has_uint32"]), int(noise["uinteger"])],
            "inverse": torch.from_numpy(self.inverse.copy()),
            "root": torch.from_numpy(self.root.copy()),
            "step": [float(each) for each in self.step],
            "count": self.moments.count,
            "mean": torch.from_numpy(self.moments.mean.copy()),
            "scatter": torch.from_numpy(self.moments.scatter.copy()),
            "done": self.done,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        position, gradient = state["position"].numpy().copy(), state["gradient"].numpy().copy()
        self.point = nuts.Point(position, float(state["log_density"]), gradient)
        self.draw.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": dict(zip(("state", "inc"), map(int, state["noise"]), strict=True)),
            "has_uint32": int(state["rest"][0]),
            "uinteger": int(state["rest"][1]),
        }
        self.inverse, self.root = state["inverse"].numpy().copy(), state["root"].numpy().copy()
        first, average, error, count, center = state["step"]
        self.step = StepSize(first, average, error, int(count), center)
        mean, scatter = state["mean"].numpy().copy(), state["scatter"].numpy().copy()
        self.moments = Moments(int(state["count"]), mean, scatter)
        self.done = int(state["done"])


def _in_order(rest: list[Any]) -> tuple[float, bool, int, float]:
    acceptance, energy, depth, diverging = rest
    return acceptance, diverging, depth, energy


class Apart(Run):
    """Chains of nuts, each of which begins its next path at once."""

    def __init__(self, density: Density, start: Tensor, first: Metric, plan: Plan) -> None:
        self.density, self.plan = density, plan
        sizes = first_step_size(density, start, first, plan.seed).tolist()
        values, gradients = density(start)
        points = zip(start.numpy(), values.tolist(), gradients.numpy(), strict=True)
        self._chains = [
            _Chain(k, nuts.Point(q.copy(), value, slope.copy()), size, first, plan)
            for k, ((q, value, slope), size) in enumerate(zip(points, sizes, strict=True))
        ]

    @property
    def done(self) -> int:
        return min(chain.done for chain in self._chains)

    def go(self, look: Callable[[Run], None] | None = None) -> None:
        chains = self._chains
        asking: list[nuts.Asking | None] = [None if c.is_complete else c.path() for c in chains]
        waiting = np.stack([chain.point.position for chain in chains])
        for number, each in enumerate(asking):
            if each is not None:
                waiting[number] = next(each)
        seen = self.done // AFTER

        def ended(number: int, path: nuts.Path) -> None:
            chain = chains[number]
            chain.take(path)
            if chain.is_complete:
                asking[number] = None
                return
            new = chain.path()
            asking[number], waiting[number] = new, next(new)

        while any(each is not None for each in asking):
            nuts.advance(asking, waiting, self.density, ended)
            if look is not None and self.done // AFTER > seen:
                seen = self.done // AFTER
                look(self)

    def chains(self) -> Chains:
        fewest = min(len(chain.kept) for chain in self._chains)
        return _as_chains([chain.kept[:fewest] for chain in self._chains], self._sizes(), self.plan)

    def ends(self) -> tuple[Tensor, Tensor]:
        points = [chain.point for chain in self._chains]
        values = torch.tensor([float(p.log_density) for p in points], dtype=torch.float64)
        return torch.from_numpy(np.stack([p.position for p in points])), values

    def _sizes(self) -> Tensor:
        return torch.tensor([float(chain.step.settled) for chain in self._chains])

    def state(self) -> State:
        found: State = {f"chain {k}": chain.state() for k, chain in enumerate(self._chains)}
        return {**found, **_packed([chain.kept for chain in self._chains])}

    def load(self, state: Mapping[str, Any]) -> None:
        for k, (chain, kept) in enumerate(zip(self._chains, _unpacked(state), strict=True)):
            chain.load(state[f"chain {k}"])
            chain.kept = kept


# Chains in step with each other.


class Method(NamedTuple):
    """A sampler whose chains move together."""

    module: Any
    target: float
    settings: Callable[[Tensor, Metric], Any]


METHODS: Mapping[str, Any] = {
    "nuts": None,
    "hmc": Method(hmc, 0.8, lambda size, metric: hmc.Settings(size, metric)),
    "mala": Method(mala, 0.574, lambda size, metric: mala.Settings(size, metric)),
    "mh": Method(
        metropolis, 0.234, lambda size, metric: metropolis.Settings(size, _square_root(metric))
    ),
}


def _square_root(metric: Metric) -> Tensor:
    """The scale of proposals with the metric's covariance."""
    inverse = metric.inverse
    return inverse.sqrt() if inverse.ndim == 1 else torch.linalg.cholesky(inverse)


class Together(Run):
    """Chains in step, with one metric for all of them."""

    def __init__(self, density: Density, start: Tensor, first: Metric, plan: Plan) -> None:
        self.density, self.plan = density, plan
        self.method: Method = METHODS[plan.method]
        self.target = plan.target if plan.target != 0.8 else self.method.target
        self._density: Any = density
        if plan.method == "mh":
            self._density = lambda position: density(position)[0]
        self.draw = torch.Generator().manual_seed(derive(plan.seed, "chains") % 2**63)
        self.current, self.metric = self.method.module.start(start, self._density), first
        size = first_step_size(density, start, first, plan.seed).numpy()
        if plan.method == "mh":
            size = np.full(len(start), 2.38 / start.shape[1] ** 0.5)
        self.step = begin_step_size(size)
        self.moments = self._no_moments()
        self.number = 0
        self.kept: list[list[Kept]] = [[] for _ in range(len(start))]

    def _no_moments(self) -> Moments:
        return begin_moments(len(self.metric.inverse), self.metric.inverse.ndim == 2)

    @property
    def done(self) -> int:
        return self.number

    def go(self, look: Callable[[Run], None] | None = None) -> None:
        ends, begin = windows(self.plan.warmup), first_draw(self.plan.warmup)
        while self.number < self.plan.total:
            self.number += 1
            learning = self.number <= self.plan.warmup
            now = torch.as_tensor(self.step.current if learning else self.step.settled)
            settings = self.method.settings(now, self.metric)
            self.current, info = self.method.module.step(
                self.current, self._density, settings, self.draw
            )
            if learning:
                self._learn(info, ends, begin)
            elif (self.number - self.plan.warmup) % self.plan.thin == 0:
                for kept, each in zip(self.kept, _of_chains(self.current, info), strict=True):
                    kept.append(each)
            if look is not None and self.number % AFTER == 0:
                look(self)

    def _learn(self, info: Any, ends: list[int], begin: int) -> None:
        self.step = update_step_size(self.step, info.acceptance.numpy(), self.target)
        if not self.plan.learns or self.number <= begin:
            return
        for position in self.current.position.numpy():
            self.moments = update_moments(self.moments, position)
        if self.number in ends:
            found = covariance(self.moments, self.metric.inverse.numpy())
            self.metric = Metric.of(torch.from_numpy(found))
            self.moments = self._no_moments()
            self.step = begin_step_size(np.asarray(self.step.settled))

    def chains(self) -> Chains:
        sizes = torch.as_tensor(np.asarray(self.step.settled))
        return _as_chains(self.kept, sizes, self.plan)

    def state(self) -> State:
        parts = {f"state.{name}": value for name, value in self.current._asdict().items()}
        return {
            **parts,
            "inverse": self.metric.inverse,
            "root": self.metric.root,
            "noise": self.draw.get_state(),
            "step": torch.from_numpy(
                np.stack([np.broadcast_to(v, self._like()) for v in self.step])
            ),
            "count": self.moments.count,
            "mean": torch.from_numpy(self.moments.mean.copy()),
            "scatter": torch.from_numpy(self.moments.scatter.copy()),
            "number": self.number,
            **_packed(self.kept),
        }

    def ends(self) -> tuple[Tensor, Tensor]:
        return self.current.position, self.current.log_density

    def _like(self) -> tuple[int, ...]:
        return np.shape(self.step.log_step)

    def load(self, state: Mapping[str, Any]) -> None:
        names = type(self.current)._fields
        self.current = type(self.current)(*(state[f"state.{name}"] for name in names))
        self.metric = Metric(state["inverse"], state["root"])
        self.draw.set_state(state["noise"])
        first, average, error, count, center = state["step"].numpy()
        self.step = StepSize(first, average, error, int(count.flat[0]), center)
        mean, scatter = state["mean"].numpy().copy(), state["scatter"].numpy().copy()
        self.moments = Moments(int(state["count"]), mean, scatter)
        self.number, self.kept = int(state["number"]), _unpacked(state)


def _of_chains(state: Any, info: Any) -> Iterator[Kept]:
    count = len(state.position)
    blank, nothing = torch.zeros(count, dtype=torch.bool), torch.full((count,), math.nan)
    numbers = zip(
        state.position.numpy(),
        state.log_density.tolist(),
        info.acceptance.tolist(),
        getattr(info, "diverging", blank).tolist(),
        getattr(info, "energy", nothing).tolist(),
        strict=True,
    )
    for position, value, acceptance, diverging, energy in numbers:
        yield Kept(position.copy(), value, acceptance, diverging, 0, energy)


def begin(density: Density, start: Tensor, first: Metric, plan: Plan) -> Run:
    """The chains of a method, at their starts."""
    return (Apart if plan.method == "nuts" else Together)(density, start, first, plan)


# What was kept, as tensors.


def _as_chains(kept: list[list[Kept]], step_size: Tensor, plan: Plan) -> Chains:
    def of(name: str) -> Tensor:
        return torch.as_tensor(np.array([[getattr(each, name) for each in one] for one in kept]))

    return Chains(
        of("position"),
        of("log_density").double(),
        of("acceptance").double(),
        of("diverging").bool(),
        of("depth").long(),
        of("energy").double(),
        step_size,
        plan.max_depth,
    )


def _packed(kept: list[list[Kept]]) -> State:
    """The kept draws of chains, which may differ in number."""
    found: State = {"lengths": [len(each) for each in kept]}
    for k, chain in enumerate(kept):
        if chain:
            found[f"draws {k}"] = torch.from_numpy(np.stack([each.position for each in chain]))
            found[f"numbers {k}"] = torch.tensor([each[1:] for each in chain], dtype=torch.float64)
    return found


def _unpacked(state: Mapping[str, Any]) -> list[list[Kept]]:
    found: list[list[Kept]] = []
    for k, length in enumerate(state["lengths"]):
        if not length:
            found.append([])
            continue
        positions, numbers = state[f"draws {k}"].numpy(), state[f"numbers {k}"].tolist()
        found.append(
            [
                Kept(position, value, acceptance, bool(diverging), int(depth), energy)
                for position, (value, acceptance, diverging, depth, energy) in zip(
                    positions, numbers, strict=True
                )
            ]
        )
    return found
