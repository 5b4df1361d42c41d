"""The noising process of a diffusion: how much of x is data and how much noise at each time."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from ansatz.errors import UsageError

Schedule = Literal["linear", "cosine"]
Weight = Literal["simple", "evidence", "snr"]
Spacing = Literal["time", "snr"]
Time = float | int | Tensor

_OFFSET = 0.008  # Nichol and Dhariwal: noise of the first of 1,000 steps just below a pixel's
_RATES = (0.1, 20.0)  # beta(0) and beta(1) of the linear schedule in continuous time
_LARGEST = 0.999  # of a step's variance, which keeps some signal to the end
_SHARE = 0.997  # of the quarter wave, in continuous time, for the same reason


class Posterior(NamedTuple):
    """Mean and variance of an earlier x given a later one and the start."""

    mean: Tensor
    variance: Tensor


class Process:
    r"""The variance-preserving noising of data: a normal chain that forgets where it began.

    .. math:: x_t = \alpha_t x_0 + \sigma_t \varepsilon, \qquad \varepsilon \sim N(0, I), \qquad
              \alpha_t = \sqrt{\bar\alpha_t}, \quad \sigma_t^2 = 1 - \bar\alpha_t

    Time 0 is the data. In ``steps`` steps, times are 0, 1, ..., T and
    :math:`\bar\alpha_t = \prod_{s \le t} (1 - \beta_s)`. In continuous time (``steps=None``), times
    are numbers between 0 and 1.

    ``"linear"``: the variances :math:`\beta_t` of the steps grow linearly between the two of
    ``beta``; in continuous time :math:`\log \bar\alpha_t = -0.1 t - 9.95 t^2`. ``"cosine"``:
    :math:`\bar\alpha_t = \cos^2\bigl(\tfrac{\pi}{2} \tfrac{t/T + 0.008}{1.008}\bigr)` over its
    value at 0, where no step has a variance above 0.999, and continuous time covers 0.997 T.

    At the last time some signal is left (``terminal_snr``), although sampling starts from noise
    alone. ``zero_terminal`` shifts and scales :math:`\alpha_t` so that none is. The noise then does
    not determine the start at the last time: predict velocity or start.

    Args:
        schedule: ``"cosine"`` or ``"linear"``.
        steps: number of steps T; None for continuous time.
        beta: variance of the first and the last step, of the linear schedule in steps.
        zero_terminal: leave no signal at the last time.

    Attributes:
        end: the last time: T, or 1.
        terminal_snr: signal-to-noise ratio at the last time.

    Example:
        >>> from ansatz.generative.diffusion import Process
        >>> process = Process("linear", steps=1000)
        >>> round(process.terminal_snr, 7), Process("cosine", zero_terminal=True).terminal_snr
        (4.04e-05, 0.0)

    References:
        Ho, Jain and Abbeel (2020), Denoising diffusion probabilistic models.
        https://arxiv.org/abs/2006.11239; Lin et al. (2024), Common diffusion noise schedules and
        sample steps are flawed, algorithm 1. https://arxiv.org/abs/2305.08891
    """

    def __init__(
        self,
        schedule: Schedule = "cosine",
        steps: int | None = None,
        *,
        beta: tuple[float, float] = (1e-4, 0.02),
        zero_terminal: bool = False,
    ) -> None:
        if schedule not in get_args(Schedule):
            known = " or ".join(repr(each) for each in get_args(Schedule))
            raise UsageError(f"schedule of Process must be {known}, got {schedule!r}.")
        if steps is not None and (type(steps) is not int or steps < 1):
            raise UsageError(
                f"steps of Process must be a whole number >= 1, or None for continuous time, "
                f"got {steps!r}."
            )
        if not 0 < beta[0] <= beta[1] < 1:
            raise UsageError(f"beta of Process must be 0 < first <= last < 1, got {beta}.")
        self.schedule: Schedule = schedule
        self.steps, self.beta, self.zero_terminal = steps, beta, zero_terminal
        self.end: int | float = 1.0 if steps is None else steps
        self._table = None if steps is None else self._chain(steps)
        if self._table is not None and zero_terminal:
            self._table = _shifted(self._table, self._table[-1])

    # --- the schedule ----------------------------------------------------------------------------

    def log_alpha(self, t: Time) -> Tensor:
        r"""Computes :math:`\log \alpha_t = \tfrac12 \log \bar\alpha_t` in float64."""
        time = torch.as_tensor(t, dtype=torch.float64)
        if time.numel() and not bool(((time >= 0) & (time <= self.end)).all()):
            wrong = time[(time < 0) | (time > self.end) | time.isnan()].flatten()[0].item()
            raise UsageError(f"a time of this process is between 0 and {self.end}, got {wrong:g}.")
        if self._table is not None:
            if not bool((time == time.round()).all()):
                raise UsageError(
                    f"a process of {self.steps} steps has whole times, got {time.flatten()[0]:g}; "
                    "use continuous time (steps=None)."
                )
            return self._table.to(time.device)[time.long()]
        found = self._continuous(time)
        if self.zero_terminal:
            found = _shifted(found, self._continuous(torch.ones((), dtype=torch.float64)))
        return found

    def alpha(self, t: Time) -> Tensor:
        """The factor of the start in x at time t."""
        return self.log_alpha(t).exp()

    def sigma(self, t: Time) -> Tensor:
        """The standard deviation of the noise in x at time t."""
        return (-torch.expm1(2 * self.log_alpha(t))).sqrt()

    def log_snr(self, t: Time) -> Tensor:
        r"""Computes :math:`\log \alpha_t^2 / \sigma_t^2`, plus infinity at time 0."""
        log = 2 * self.log_alpha(t)
        return log - (-torch.expm1(log)).log()

    def snr(self, t: Time) -> Tensor:
        r"""The signal-to-noise ratio :math:`\alpha_t^2 / \sigma_t^2`."""
        return self.log_snr(t).exp()

    @property
    def terminal_snr(self) -> float:
        """The signal-to-noise ratio at the last time."""
        return float(self.snr(self.end))

    def step_variance(self, t: Time, s: Time | None = None) -> Tensor:
        r"""The variance :math:`1 - \bar\alpha_t / \bar\alpha_s` that the noise from s to t adds.

        From one time to the next this is :math:`\beta_t`.
        """
        return -torch.expm1(2 * (self.log_alpha(t) - self.log_alpha(self._before(t, s))))

    def posterior_variance(self, t: Time, s: Time | None = None) -> Tensor:
        r"""The variance :math:`\tilde\beta` of x at s given x at t and the start."""
        s = self._before(t, s)
        ratio = torch.expm1(2 * self.log_alpha(s)) / torch.expm1(2 * self.log_alpha(t))
        return self.step_variance(t, s) * ratio

    # --- formulas --------------------------------------------------------------------------------

    def add_noise(self, start: Tensor, noise: Tensor, t: Time) -> Tensor:
        r"""Computes :math:`x_t = \alpha_t x_0 + \sigma_t \varepsilon`."""
        return broadcast(self.alpha(t), start) * start + broadcast(self.sigma(t), start) * noise

    def posterior(self, x: Tensor, start: Tensor, t: Time, s: Time | None = None) -> Posterior:
        r"""The distribution of x at an earlier time s (the step before) given x_t and x_0.

        .. math:: \tilde\mu = \frac{\alpha_s \beta_{t|s}}{\sigma_t^2} x_0
                  + \frac{\alpha_t}{\alpha_s} \frac{\sigma_s^2}{\sigma_t^2} x_t, \qquad
                  \tilde\beta = \frac{\sigma_s^2}{\sigma_t^2} \beta_{t|s}

        with :math:`\beta_{t|s} = 1 - \bar\alpha_t / \bar\alpha_s`.
        """
        s = self._before(t, s)
        early, late = self.log_alpha(s), self.log_alpha(t)
        variance = -torch.expm1(2 * late)
        of_start = early.exp() * self.step_variance(t, s) / variance
        of_x = (late - early).exp() * -torch.expm1(2 * early) / variance
        mean = broadcast(of_start, x) * start + broadcast(of_x, x) * x
        return Posterior(mean, broadcast(self.posterior_variance(t, s), x))

    def start_from_noise(self, x: Tensor, noise: Tensor, t: Time) -> Tensor:
        r"""Computes :math:`x_0 = (x_t - \sigma_t \varepsilon) / \alpha_t`."""
        return (x - broadcast(self.sigma(t), x) * noise) / broadcast(self.alpha(t), x)

    def mean_from_noise(self, x: Tensor, noise: Tensor, t: Time, s: Time | None = None) -> Tensor:
        r"""The posterior's mean by the noise instead of the start.

        .. math:: \tilde\mu = \frac{\alpha_s}{\alpha_t} \Bigl(x_t
                  - \frac{\beta_{t|s}}{\sigma_t} \varepsilon\Bigr)

        For the step before, :math:`\alpha_t / \alpha_s` is the root of :math:`1 - \beta_t`.
        """
        s = self._before(t, s)
        shrink = (self.log_alpha(s) - self.log_alpha(t)).exp()
        share = self.step_variance(t, s) / self.sigma(t)
        return broadcast(shrink, x) * (x - broadcast(share, x) * noise)

    def score(self, noise: Tensor, t: Time) -> Tensor:
        r"""The gradient of the log density of x_t given x_0: :math:`-\varepsilon / \sigma_t`.

        With the expectation of the noise given x_t it is the score of the density of x_t itself.
        """
        return -noise / broadcast(self.sigma(t), noise)

    def velocity(self, start: Tensor, noise: Tensor, t: Time) -> Tensor:
        r"""Computes :math:`v = \alpha_t \varepsilon - \sigma_t x_0`."""
        return broadcast(self.alpha(t), start) * noise - broadcast(self.sigma(t), start) * start

    def weight(self, t: Time, kind: Weight = "simple", s: Time | None = None) -> Tensor:
        r"""The weight of the squared error of the *noise* in an objective.

        ``"simple"``: 1. ``"snr"``: :math:`\min(\mathrm{SNR}_t, 5)` for the start's error, thus
        :math:`\min(1, 5 / \mathrm{SNR}_t)` for the noise's. ``"evidence"``: what makes the sum
        over the steps the bound on the log density: the KL divergence of a step whose variance is
        the posterior's,

        .. math:: \tfrac12 (\mathrm{SNR}_s - \mathrm{SNR}_t) \|x_0 - \hat x_0\|^2
                  = \frac{\beta_t^2}{2 \tilde\beta_t (1 - \beta_t) \sigma_t^2}
                    \|\varepsilon - \hat\varepsilon\|^2

        infinite for the step to time 0. In continuous time without ``s`` it is the limit per unit
        of time, :math:`-\tfrac12 \tfrac{d}{dt} \log \mathrm{SNR}_t`.
        """
        if kind == "simple":
            return torch.ones_like(self.log_alpha(t))
        if kind == "snr":
            return (5 / self.snr(t)).clamp(max=1)
        if kind != "evidence":
            known = ", ".join(get_args(Weight))
            raise UsageError(f"weight must be one of {known}, got {kind!r}.")
        if s is None and self.steps is None:
            time = torch.as_tensor(t, dtype=torch.float64).detach().clone().requires_grad_()
            with torch.enable_grad():
                (slope,) = torch.autograd.grad(self.log_snr(time).sum(), time)
            return -slope / 2
        s = self._before(t, s)
        return torch.expm1(self.log_snr(s) - self.log_snr(t)) / 2

    # --- times -----------------------------------------------------------------------------------

    def times(
        self, count: int, spacing: Spacing = "time", *, last: float | None = None
    ) -> list[float]:
        """Lists ``count`` times from the last one down, and 0: a sampler's ``count`` steps.

        Args:
            count: number of steps; at most T for a process in T steps.
            spacing: equal distances in time, or in the logarithm of the signal-to-noise ratio
                down to ``last``, which a process in steps rounds to its own times.
            last: the time before 0 for the spacing ``"snr"``.
        """
        if type(count) is not int or count < 1:
            raise UsageError(f"steps must be a whole number >= 1, got {count!r}.")
        if self.steps is not None and count > self.steps:
            raise UsageError(
                f"steps must be at most those of the process, {self.steps}, got {count}."
            )
        if spacing == "time" or count == 1:
            found = [self.end * (1 - k / count) for k in range(count)]
        else:
            found = self._even_in_snr(count, last)
        if self.steps is not None:
            whole = [max(1, round(each)) for each in found]
            for k in range(count):  # as many different ones as were asked for
                highest = whole[k - 1] - 1 if k else self.steps
                whole[k] = max(min(whole[k], highest), count - k)
            found = [float(each) for each in whole]
        return [*found, 0.0]

    def times_at(self, log_snr: Sequence[float], *, last: float | None = None) -> list[float]:
        """The times of given log signal-to-noise ratios, by interpolation; T steps round later."""
        low = (1e-5 if self.steps is None else 1.0) if last is None else float(last)
        if self.steps is None:  # closer near the data, where the ratio changes most
            grid = low + (1 - low) * torch.linspace(1, 0, 20_001, dtype=torch.float64) ** 2
        else:
            grid = torch.arange(self.steps, int(low) - 1, -1, dtype=torch.float64)
        found: list[float] = np.interp(log_snr, self.log_snr(grid).numpy(), grid.numpy()).tolist()
        return found

    def _even_in_snr(self, count: int, last: float | None) -> list[float]:
        low = (1e-3 if self.steps is None else 1.0) if last is None else float(last)
        near = self.end * (1 - 1e-4) if self.steps is None else self.end - 1
        first = float(self.log_snr(self.end if self.terminal_snr > 0 else near))
        wanted = np.linspace(first, float(self.log_snr(low)), count)
        return [float(self.end), *self.times_at(wanted[1:].tolist())]

    def _before(self, t: Time, s: Time | None) -> Time:
        if s is not None:
            return s
        if self.steps is None:
            raise UsageError("in continuous time no step comes before another; give the time s.")
        return torch.as_tensor(t) - 1

    def _chain(self, steps: int) -> Tensor:
        if self.schedule == "linear":
            beta = torch.linspace(*self.beta, steps, dtype=torch.float64)
        else:
            level = _cosine(torch.linspace(0, 1, steps + 1, dtype=torch.float64))
            beta = (-torch.expm1(2 * level.diff())).clamp(max=_LARGEST)
        return torch.cat([beta.new_zeros(1), torch.log1p(-beta).cumsum(0) / 2])

    def _continuous(self, time: Tensor) -> Tensor:
        if self.schedule == "linear":
            low, high = _RATES
            return -(low * time + (high - low) * time**2 / 2) / 2
        return _cosine(time if self.zero_terminal else _SHARE * time)

    def settings(self) -> dict[str, object]:
        """The arguments that make this process again, as plain values."""
        return {
            "schedule": self.schedule,
            "steps": self.steps,
            "beta": list(self.beta),
            "zero_terminal": self.zero_terminal,
        }


def _cosine(share: Tensor) -> Tensor:
    angle = (share + _OFFSET) / (1 + _OFFSET) * (math.pi / 2)
    first = math.cos(_OFFSET / (1 + _OFFSET) * (math.pi / 2))
    return (angle.cos().clamp(min=0) / first).log()


def _shifted(log_alpha: Tensor, terminal: Tensor) -> Tensor:
    """The log of alpha after the shift that takes its last value to 0 and keeps its first, 1."""
    alpha, last = log_alpha.exp(), terminal.exp()
    return ((alpha - last) / (1 - last)).clamp(min=0).log()


def broadcast(value: Tensor, x: Tensor) -> Tensor:
    """Gives a number for each row the axes of x, in its precision."""
    value = value.to(x)
    return value.reshape(value.shape + (1,) * (x.ndim - value.ndim)) if value.ndim else value


def checked_times(process: Process, times: Sequence[float]) -> list[float]:
    """Checks a sampler's times: at least two, each below the one before."""
    found = [float(t) for t in times]
    if len(found) < 2 or any(a <= b for a, b in pairwise(found)):
        raise UsageError(f"times of a sampler fall from one entry to the next, got {found[:6]}.")
    process.log_alpha(torch.tensor(found, dtype=torch.float64))  # its own check of their range
    return found
