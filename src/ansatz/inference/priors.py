"""Prior distributions as strings: ``normal(0, 2.5)``, ``half_student_t(3, 0, 2.5)``, ``flat``."""

import difflib
import math
import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from ansatz.errors import UsageError


class Prior(NamedTuple):
    """The distribution of a parameter before the data.

    Args:
        name: of the distribution.
        parameters: its numbers, all of them.

    Example:
        >>> import torch
        >>> from ansatz.inference import Prior
        >>> prior = Prior.read("normal(0, 2.5)")
        >>> str(prior), prior.log_prob(torch.zeros(1)).item() < -1.8
        ('normal(0, 2.5)', True)
    """

    name: str
    parameters: tuple[float, ...] = ()

    @classmethod
    def read(cls, text: "str | Prior", where: str = "prior") -> "Prior":
        """Reads a distribution; a wrong one is an error that suggests the nearest.

        Args:
            text: like ``"student_t(3, 0, 2.5)"``; parameters that are left out have defaults.
            where: what messages call the parameter.
        """
        if isinstance(text, Prior):
            return text
        form = re.fullmatch(r"\s*([A-Za-z_][\w-]*)\s*(?:\(([^()]*)\))?\s*", str(text))
        if form is None:
            raise UsageError(f"{where}: expected a distribution like normal(0, 2.5), got '{text}'.")
        name = form[1].lower().replace("-", "_")
        law = _LAWS.get(name)
        if law is None:
            near = difflib.get_close_matches(name, _LAWS, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise UsageError(
                f"{where}: unknown distribution '{form[1]}'.{hint} Known: {', '.join(_LAWS)}."
            )
        return cls(name, _numbers(form[2] or "", name, law, where))

    def __str__(self) -> str:
        numbers = ", ".join(f"{value:.4g}" for value in self.parameters)
        return f"{self.name}({numbers})" if self.parameters else self.name

    @property
    def is_positive(self) -> bool:
        """Whether it is a distribution of positive numbers."""
        return _LAWS[self.name].positive

    @property
    def is_proper(self) -> bool:
        """Whether it can be drawn from."""
        return self.name != "flat"

    @property
    def is_of_numbers(self) -> bool:
        """Whether it is one of single numbers: ``lkj`` and ``horseshoe`` are not."""
        return self.name not in ("lkj", "horseshoe")

    def log_prob(self, x: Tensor) -> Tensor:
        """The log density at x, elementwise; 0 for ``flat``."""
        return self.log_prob_and_slope(x)[0]

    def log_prob_and_slope(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The log density and its derivative, elementwise."""
        return _LAWS[self.name].density(x, *self.parameters)

    def sample(self, shape: tuple[int, ...], generator: torch.Generator | None = None) -> Tensor:
        """Independent draws in float64."""
        if not self.is_proper or not self.is_of_numbers:
            raise UsageError(f"the prior {self} is not one that numbers are drawn from.")
        return _LAWS[self.name].draw(shape, generator, *self.parameters)


class _Law(NamedTuple):
    defaults: tuple[float, ...]
    density: Callable[..., tuple[Tensor, Tensor]]
    draw: Callable[..., Tensor]
    positive: bool = False
    scales: tuple[int, ...] = ()  # the parameters that must be positive


def _numbers(text: str, name: str, law: _Law, where: str) -> tuple[float, ...]:
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    try:
        given = [float(part) for part in parts]
    except ValueError:
        raise UsageError(f"{where}: {name} takes numbers, got '{text}'.") from None
    if name == "half_student_t" and len(given) == 2:  # without the place, which is 0
        given = [given[0], 0.0, given[1]]
    if len(given) > len(law.defaults):
        takes = ", ".join(f"{value:g}" for value in law.defaults) or "no numbers"
        raise UsageError(f"{where}: {name} takes {takes}, got '{text}'.")
    found = (*given, *law.defaults[len(given) :])
    if not all(map(math.isfinite, found)) or any(found[place] <= 0 for place in law.scales):
        raise UsageError(f"{where}: scales of {name} are positive numbers, got '{text}'.")
    if name == "half_student_t" and found[1] != 0:
        raise UsageError(f"{where}: the place of {name} is 0, got '{text}'.")
    return found


def _flat(x: Tensor) -> tuple[Tensor, Tensor]:
    return torch.zeros_like(x), torch.zeros_like(x)


def _normal(x: Tensor, mean: float, sd: float) -> tuple[Tensor, Tensor]:
    z = (x - mean) / sd
    return -0.5 * z * z - math.log(sd) - 0.5 * math.log(2 * math.pi), -z / sd


def _student_t(x: Tensor, df: float, mean: float, scale: float) -> tuple[Tensor, Tensor]:
    z = (x - mean) / scale
    constant = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - 0.5 * math.log(df * math.pi)
    value = constant - math.log(scale) - (df + 1) / 2 * torch.log1p(z * z / df)
    return value, -(df + 1) * z / (df + z * z) / scale


def _halved(
    density: Callable[..., tuple[Tensor, Tensor]],
) -> Callable[..., tuple[Tensor, Tensor]]:
    """The distribution above 0 of one that is symmetric about 0."""

    def half(x: Tensor, *parameters: float) -> tuple[Tensor, Tensor]:
        value, slope = density(x, *parameters)
        return _above(x, value + math.log(2), slope)

    return half


def _above(x: Tensor, value: Tensor, slope: Tensor) -> tuple[Tensor, Tensor]:
    return torch.where(x >= 0, value, -torch.inf), torch.where(x >= 0, slope, 0)


def _log_normal(x: Tensor, mean: float, sd: float) -> tuple[Tensor, Tensor]:
    log = x.clamp(min=1e-300).log()
    value, slope = _normal(log, mean, sd)
    return _above(x, value - log, (slope - 1) / x.clamp(min=1e-300))


def _exponential(x: Tensor, rate: float) -> tuple[Tensor, Tensor]:
    return _above(x, math.log(rate) - rate * x, torch.full_like(x, -rate))


def _gamma(x: Tensor, shape: float, rate: float) -> tuple[Tensor, Tensor]:
    safe = x.clamp(min=1e-300)
    value = shape * math.log(rate) - math.lgamma(shape) + (shape - 1) * safe.log() - rate * x
    return _above(x, value, (shape - 1) / safe - rate)


Shape: TypeAlias = tuple[int, ...]
Source: TypeAlias = torch.Generator | None


def _noise(shape: Shape, source: Source) -> Tensor:
    return torch.randn(shape, generator=source, dtype=torch.float64)


def _uniform(shape: Shape, source: Source) -> Tensor:
    return torch.rand(shape, generator=source, dtype=torch.float64).clamp(1e-16, 1 - 1e-16)


def _draw_normal(shape: Shape, source: Source, mean: float, sd: float) -> Tensor:
    return mean + sd * _noise(shape, source)


def _draw_student(shape: Shape, source: Source, df: float, mean: float, scale: float) -> Tensor:
    chi = 2 * _draw_gamma(shape, source, df / 2, 1.0)
    return mean + scale * _noise(shape, source) * (df / chi).sqrt()


def _draw_gamma(shape: Shape, source: Source, k: float, rate: float) -> Tensor:
    return torch._standard_gamma(torch.full(shape, k, dtype=torch.float64), source) / rate


def _draw_log_normal(shape: Shape, source: Source, mean: float, sd: float) -> Tensor:
    return _draw_normal(shape, source, mean, sd).exp()


def _draw_half_normal(shape: Shape, source: Source, sd: float) -> Tensor:
    return (sd * _noise(shape, source)).abs()


def _draw_half_cauchy(shape: Shape, source: Source, scale: float) -> Tensor:
    return scale * (torch.pi / 2 * _uniform(shape, source)).tan()


def _draw_half_student(
    shape: Shape, source: Source, df: float, mean: float, scale: float
) -> Tensor:
    return _draw_student(shape, source, df, mean, scale).abs()


def _draw_exponential(shape: Shape, source: Source, rate: float) -> Tensor:
    return -_uniform(shape, source).log() / rate


def _no_draw(shape: Shape, source: Source, *parameters: float) -> Tensor:
    raise AssertionError("refused by Prior.sample")


_LAWS = {
    "flat": _Law((), _flat, _no_draw),
    "normal": _Law((0.0, 1.0), _normal, _draw_normal, scales=(1,)),
    "student_t": _Law((3.0, 0.0, 2.5), _student_t, _draw_student, scales=(0, 2)),
    "log_normal": _Law((0.0, 1.0), _log_normal, _draw_log_normal, True, (1,)),
    "half_normal": _Law(
        (1.0,), _halved(lambda x, sd: _normal(x, 0.0, sd)), _draw_half_normal, True, (0,)
    ),
    "half_cauchy": _Law(
        (1.0,), _halved(lambda x, s: _student_t(x, 1.0, 0.0, s)), _draw_half_cauchy, True, (0,)
    ),
    "half_student_t": _Law((3.0, 0.0, 2.5), _halved(_student_t), _draw_half_student, True, (0, 2)),
    "exponential": _Law((1.0,), _exponential, _draw_exponential, True, (0,)),
    "gamma": _Law((2.0, 0.1), _gamma, _draw_gamma, True, (0, 1)),
    "lkj": _Law((1.0,), _flat, _no_draw, scales=(0,)),
    "horseshoe": _Law((1.0,), _flat, _no_draw, scales=(0,)),
}
