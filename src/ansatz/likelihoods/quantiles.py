"""Quantile regression: several quantiles at once, in order."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import softplus

from ansatz.likelihoods.dispersion import UnitScale, softplus_inverse
from ansatz.likelihoods.likelihood import (
    Likelihood,
    expand_weight,
    require_same_shape,
    unit_and_floor,
)
from ansatz.spec import TargetSpec


class Quantiles(Likelihood):
    r"""The quantiles of y given x at fixed levels, by the pinball loss.

    .. math:: \ell = \sum_\tau \max(\tau e_\tau, (\tau - 1) e_\tau), \qquad e_\tau = y - q_\tau

    whose minimiser is, level by level, the tau-quantile; at tau = 1/2 it is half the absolute
    error. The median is raw[0] (identity link). Each further quantile is its inner neighbour moved
    outward by unit * softplus of one raw number, first upward, then downward: quantiles never
    cross. The unit is the sd of y.

    There is no density between the quantiles: no nll, AIC or PIT, and comparisons by pinball loss
    only. An ensemble averages quantiles.

    Args:
        levels: strictly between 0 and 1, in ascending order, 0.5 among them.

    Shapes:
        - raw: ``(..., Q)``.
        - y: ``(...)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Quantiles
        >>> likelihood = Quantiles(levels=[0.5, 0.9])
        >>> likelihood.loss(torch.tensor([[0.0, -50.0]]), torch.tensor([2.0]))  # (0.5 + 0.9) * 2
        tensor([2.8000])

    References:
        Koenker and Bassett (1978), Regression quantiles. https://doi.org/10.2307/1913643
    """

    name = "quantiles"
    support = "real"
    has_distribution = False

    def __init__(self, *, levels: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95)) -> None:
        super().__init__()
        levels = tuple(float(level) for level in levels)
        if "levels" in self.options:
            self.options["levels"] = list(levels)  # a JSON value, whatever sequence came
        if not levels or not all(0 < a < 1 for a in levels) or list(levels) != sorted({*levels}):
            raise ValueError(
                f"levels must be ascending numbers strictly between 0 and 1, got {list(levels)}."
            )
        if 0.5 not in levels:
            raise ValueError(
                f"levels must contain 0.5, from which the others grow, got {list(levels)}."
            )
        self.levels, self.middle = levels, levels.index(0.5)
        self.unit = UnitScale()

    def outputs(self, target: TargetSpec | None = None) -> int:
        """One per level."""
        return len(self.levels)

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """The unit of the distances between quantiles, the sd of y."""
        self.unit.observe(unit_and_floor(y, weight)[0])

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The empirical quantiles; equal ones are held 1e-4 of the unit apart."""
        q = weighted_quantiles(y, weight, self.levels)  # (..., Q)
        unit = self.unit.value.to(y)
        gaps = softplus_inverse((q.diff(dim=-1) / unit.unsqueeze(-1)).clamp(min=1e-4))
        up, down = gaps[..., self.middle :], gaps[..., : self.middle].flip(-1)
        shift = torch.cat([q[..., self.middle : self.middle + 1], up, down], -1)
        scale = torch.ones_like(shift)
        scale[..., 0] = unit
        return shift, scale

    def quantiles(self, raw: Tensor) -> Tensor:
        """``(..., Q)``, ascending, one per level."""
        unit = self.unit.value.to(raw.dtype).unsqueeze(-1)
        steps = unit * softplus(raw[..., 1:])
        up, down = steps.split([len(self.levels) - 1 - self.middle, self.middle], -1)
        median = raw[..., :1]
        lower = (median - down.cumsum(-1)).flip(-1)
        return torch.cat([lower, median, median + up.cumsum(-1)], -1)

    def interval(self, raw: Tensor, level: float) -> tuple[Tensor, Tensor]:
        """The quantiles (1 - level) / 2 and (1 + level) / 2, which must be among the levels.

        Nothing is interpolated: the model has no values between two quantiles.
        """
        ends = [
            [i for i, known in enumerate(self.levels) if math.isclose(known, end, abs_tol=1e-9)]
            for end in ((1 - level) / 2, (1 + level) / 2)
        ]
        if not all(ends):
            inner = [1 - 2 * a for a in self.levels if a < 0.5]
            known = [p for p in inner if any(abs(b - (1 + p) / 2) < 1e-9 for b in self.levels)]
            raise ValueError(
                f"interval needs both ends among the levels {list(self.levels)}, got level "
                f"{level}. Available: {', '.join(f'{p:.6g}' for p in known) or 'none'}."
            )
        q = self.quantiles(raw)
        return q[..., ends[0][0]], q[..., ends[1][0]]

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The sum of the pinball losses of all levels."""
        require_same_shape(self.name, raw, y)
        error = y.unsqueeze(-1) - self.quantiles(raw)
        level = torch.tensor(self.levels, dtype=raw.dtype, device=raw.device)
        return torch.maximum(level * error, (level - 1) * error).sum(-1)

    def training_loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The loss over the unit of y."""
        return self.loss(raw, y) / self.unit.value.to(raw.dtype)

    def point(self, raw: Tensor) -> Tensor:
        """The median."""
        return raw[..., 0]


def weighted_quantiles(y: Tensor, weight: Tensor, levels: Sequence[float]) -> Tensor:
    """Computes the quantiles over rows with frequency weights, ``(..., Q)`` for y ``(B, ...)``.

    The smallest value at which the cumulated weight reaches the level; where it is reached exactly
    every number up to the next value minimises the pinball loss, and the middle of the two is
    taken.
    """
    weight = expand_weight(weight, y)
    # Unobserved rows go last: they carry no weight, and may hold nan.
    ordered, order = torch.where(weight > 0, y, torch.inf).sort(0)
    mass = weight.gather(0, order).cumsum(0)
    total = mass[-1:]
    found = []
    for level in levels:
        # Rounding must not separate 0.95 * 20 from 19.
        goal = level * total
        slack = 1e-9 if y.dtype == torch.float64 else 1e-5
        first = (mass >= goal * (1 - slack)).int().argmax(0, keepdim=True)
        second = (mass > goal * (1 + slack)).int().argmax(0, keepdim=True)
        found.append((ordered.gather(0, first) + ordered.gather(0, second)).squeeze(0) / 2)
    return torch.stack(found, -1)
