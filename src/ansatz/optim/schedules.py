"""Learning-rate schedules: the number of the step -> multiplier of the base rate."""

import math
from typing import Any, Protocol

from ansatz.errors import UsageError
from ansatz.registry import Registry


class Schedule(Protocol):
    """A multiplier of the base rate for step 0, 1, ...

    All but ``plateau`` are pure functions of the step, so that a resumed run needs no state.

    Example:
        >>> from ansatz.optim import Schedule, create_schedule
        >>> schedule: Schedule = create_schedule("constant", steps=10)
        >>> schedule(3)
        1.0
    """

    def __call__(self, step: int) -> float: ...


class Constant:
    """1 throughout, after a linear warm-up.

    Args:
        steps: the length of the run.
        warmup: the share of it in which the rate rises linearly to 1.
    """

    def __init__(self, steps: int, *, warmup: float = 0.0) -> None:
        self.steps, self.warmup = _length(steps), _share("warmup", warmup)
        self._rise = round(self.warmup * self.steps)

    def __call__(self, step: int) -> float:
        return min(1.0, (step + 1) / self._rise) if self._rise else 1.0


class Cosine:
    r"""Warm-up, then half a cosine from 1 to ``final``.

    .. math:: f + \frac{1 - f}{2} (1 + \cos \pi t), \qquad t \in [0, 1] \text{ after the warm-up}

    Args:
        steps: the length of the run; later steps stay at ``final``.
        warmup: the share of it in which the rate rises linearly to 1.
        final: :math:`f`.

    References:
        Loshchilov and Hutter (2017), SGDR, eq. 5. https://arxiv.org/abs/1608.03983
    """

    def __init__(self, steps: int, *, warmup: float = 0.0, final: float = 0.0) -> None:
        self.steps, self.warmup = _length(steps), _share("warmup", warmup)
        self.final = _share("final", final)
        self._rise = round(self.warmup * self.steps)

    def __call__(self, step: int) -> float:
        if step < self._rise:
            return (step + 1) / self._rise
        t = min(1.0, (step - self._rise) / max(1, self.steps - self._rise))
        return self.final + 0.5 * (1 - self.final) * (1 + math.cos(math.pi * t))


class OneCycle:
    """Up from ``start`` to 1 and down to ``final``, each along half a cosine.

    Args:
        steps: the length of the run.
        peak: the share of it after which the rate is 1.
        start: the first multiplier.
        final: the last multiplier.

    References:
        Smith and Topin (2018), Super-convergence. https://arxiv.org/abs/1708.07120
    """

    def __init__(
        self, steps: int, *, peak: float = 0.3, start: float = 0.04, final: float = 4e-6
    ) -> None:
        self.steps, self.peak = _length(steps), _share("peak", peak)
        self.start, self.final = _share("start", start), _share("final", final)

    def __call__(self, step: int) -> float:
        last = max(1, self.steps - 1)
        top = self.peak * last
        if step < top:
            return _cosine(self.start, 1.0, step / top)
        return _cosine(1.0, self.final, min(1.0, (step - top) / max(1e-12, last - top)))


class Linear:
    """A straight line from 1 to ``final``.

    Args:
        steps: the length of the run.
        final: the multiplier at its end.
    """

    def __init__(self, steps: int, *, final: float = 0.0) -> None:
        self.steps, self.final = _length(steps), _share("final", final)

    def __call__(self, step: int) -> float:
        return 1 + (self.final - 1) * min(1.0, step / self.steps)


class Exponential:
    """Geometric decay from 1 to ``final``: equal factors over equal times.

    Args:
        steps: the length of the run.
        final: the multiplier at its end.
    """

    def __init__(self, steps: int, *, final: float = 0.01) -> None:
        if not 0 < final <= 1:
            raise UsageError(f"final of an exponential schedule must be in (0, 1], got {final}.")
        self.steps, self.final = _length(steps), final

    def __call__(self, step: int) -> float:
        return self.final ** (step / self.steps)


class Steps:
    """Multiplied by ``factor`` after each of ``drops`` equal stretches of the run.

    Args:
        steps: the length of the run.
        drops: how many times.
        factor: by how much.
    """

    def __init__(self, steps: int, *, drops: int = 2, factor: float = 0.1) -> None:
        self.steps, self.drops, self.factor = _length(steps), drops, _share("factor", factor)

    def __call__(self, step: int) -> float:
        return self.factor ** min(self.drops, step * (self.drops + 1) // self.steps)


class Plateau:
    """Multiplied by ``factor`` whenever the observed value has not improved for ``patience`` times.

    The only schedule with a memory: ``observe`` is called once per evaluation, and ``state_dict``
    belongs in a checkpoint.

    Args:
        steps: the length of the run; not used, since the values decide.
        factor: by how much the rate falls.
        patience: evaluations without improvement that are put up with.
        threshold: an improvement is a fall by more than this share of the best value's size.
        least: the multiplier never falls below it.
    """

    def __init__(
        self,
        steps: int = 1,
        *,
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        least: float = 0.0,
    ) -> None:
        self.steps, self.factor = _length(steps), _share("factor", factor)
        self.patience, self.threshold, self.least = patience, threshold, least
        self.multiplier, self.best, self.waited = 1.0, math.inf, 0

    def __call__(self, step: int) -> float:
        return self.multiplier

    def observe(self, value: float) -> None:
        """A new value of what should fall, as a validation loss."""
        margin = self.threshold * abs(self.best) if math.isfinite(self.best) else 0.0
        if value < self.best - margin:
            self.best, self.waited = value, 0
            return
        self.waited += 1
        if self.waited > self.patience:
            self.multiplier = max(self.least, self.multiplier * self.factor)
            self.waited = 0

    def state_dict(self) -> dict[str, float]:
        """Multiplier, best value (absent before the first) and how long it has been waited for."""
        state = {"multiplier": self.multiplier, "waited": float(self.waited)}
        return state | ({"best": self.best} if math.isfinite(self.best) else {})

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what ``state_dict`` gave."""
        self.multiplier, self.waited = float(state["multiplier"]), int(state["waited"])
        self.best = float(state.get("best", math.inf))


schedules = Registry(
    "schedule",
    {
        "constant": Constant,
        "cosine": Cosine,
        "exponential": Exponential,
        "linear": Linear,
        "one_cycle": OneCycle,
        "plateau": Plateau,
        "step": Steps,
    },
)


def create_schedule(name: str, *, steps: int, **options: Any) -> Schedule:
    """Creates the schedule ``name`` for a run of ``steps`` steps.

    Args:
        name: constant, cosine, exponential, linear, one_cycle, plateau or step.
        steps: the length of the run.
        options: of the schedule; a typo is an error that lists the known ones.

    Example:
        >>> from ansatz.optim import create_schedule
        >>> create_schedule("cosine", steps=100, warmup=0.1)(4)
        0.5
    """
    return schedules.create(name, steps, **options)


def _length(steps: int) -> int:
    if steps < 1:
        raise UsageError(f"a schedule needs at least 1 step, got {steps}.")
    return int(steps)


def _share(name: str, value: float) -> float:
    if not 0 <= value <= 1:
        raise UsageError(f"{name} of a schedule must be in [0, 1], got {value}.")
    return value


def _cosine(first: float, last: float, t: float) -> float:
    return last + 0.5 * (first - last) * (1 + math.cos(math.pi * t))
