"""Barron's general robust loss, whose shape can be learned."""

import copy
import math
from typing import Literal

import torch
from torch import Tensor, nn

from ansatz.likelihoods.barron_distribution import BarronDistribution
from ansatz.likelihoods.constant_fit import fit_constant
from ansatz.likelihoods.dispersion import Dispersion, PositiveHead
from ansatz.likelihoods.general_loss import shaped_loss
from ansatz.likelihoods.huber import Huber
from ansatz.likelihoods.likelihood import (
    Likelihood,
    expand_weight,
    require_same_shape,
    unit_and_floor,
)
from ansatz.likelihoods.support import refuse_outside
from ansatz.spec import TargetSpec

_MOST = 6.0  # of the learned a: alpha = 1.995


class Barron(Likelihood):
    r"""One family from squared error to losses that ignore outliers, its shape given or learned.

    .. math:: \rho(x, \alpha, c) = \frac{|\alpha - 2|}{\alpha} \left(\left(
              \frac{(x / c)^2}{|\alpha - 2|} + 1\right)^{\alpha/2} - 1\right), \qquad x = y - f

    with f = raw[0]. :math:`\alpha` = 2 is squared error :math:`\frac12 (x/c)^2`, 1 Charbonnier's
    (pseudo-Huber), 0 Cauchy's, -2 Geman and McClure's, minus infinity Welsch's.

    With shape and scale both given it is that loss, and predicts no distribution. As soon as one of
    them is learned it is a *likelihood*, with the density

    .. math:: p(y) = \frac{e^{-\rho(x, \alpha, c)}}{c\, Z(\alpha)}

    because without the partition function Z the learned number would run away. Z is finite from
    :math:`\alpha` = 0 on only, so a learned :math:`\alpha = 2 \sigma(a)` lives in (0, 2), one
    number for all x; it starts at its maximum-likelihood value, or at 1.995 where y has no heavier
    tails than normal, and a network begins at 1.5 or less. A learned c = unit * softplus(r) + floor
    has the median absolute deviation of y times 1.4826 as its unit and the normal distribution's
    floor, max(1e-3 sd(y), resolution of y / sqrt(12)), at most half the unit. ``predict`` gives f.

    Args:
        alpha: ``"learned"``, or any number up to 2, ``-math.inf`` included.
        dispersion: c ``"constant"``, that is learned once, ``"predicted"`` from x, ``"mad"``, the
            median absolute deviation of y times 1.4826, or known.

    Shapes:
        - raw: ``(..., 1)``, or ``(..., 2)`` with a predicted c.
        - y: ``(...)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Barron
        >>> cauchy = Barron(alpha=0.0, dispersion=1.0)
        >>> cauchy.loss(torch.zeros(2, 1), torch.tensor([1.0, 100.0]))
        tensor([0.4055, 8.5174])
        >>> cauchy.has_distribution, Barron().has_distribution
        (False, True)

    References:
        Barron (2019), A general and adaptive robust loss function. https://arxiv.org/abs/1701.03077
    """

    name = "barron"

    def __init__(
        self,
        *,
        alpha: Literal["learned"] | float = "learned",
        dispersion: Dispersion | Literal["mad"] = "constant",
    ) -> None:
        super().__init__()
        learned = isinstance(alpha, str)
        if learned and alpha != "learned":
            raise ValueError(f"alpha of Barron must be 'learned' or a number <= 2, got {alpha!r}.")
        if not learned and not alpha <= 2:  # type: ignore[operator]  # no string here
            raise ValueError(f"alpha of Barron must be at most 2, got {alpha}.")
        self.measured = dispersion == "mad"
        self.dispersion = PositiveHead(1.0 if self.measured else dispersion)  # type: ignore[arg-type]
        likelihood = learned or self.dispersion.kind != "known"
        if likelihood and not learned and alpha < 0:  # type: ignore[operator]
            raise ValueError(
                f"a scale can be learned for alpha >= 0 only, got alpha={alpha}: below 0 there is "
                "no density. Give dispersion='mad' or a number."
            )
        self.has_distribution = likelihood  # type: ignore[misc]  # a loss or a likelihood, by its options
        self.given_alpha = None if learned else float(alpha)
        self.shape = nn.Parameter(torch.tensor(0.0)) if learned else None

    def alpha(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """alpha and 2 - alpha, ``()``, or ``(K,)`` for K targets."""
        if self.shape is None:
            assert self.given_alpha is not None
            value = torch.tensor(self.given_alpha, dtype=like.dtype, device=like.device)
            return value, 2 - value
        a = self.shape.to(like.dtype)
        return 2 * torch.sigmoid(a), 2 * torch.sigmoid(-a)

    def outputs(self, target: TargetSpec) -> int:
        """2 with a predicted scale, else 1."""
        return 1 + self.dispersion.outputs

    def check(self, y: Tensor) -> None:
        """Any finite number."""
        refuse_outside(~y.isfinite(), y, "Outcomes of barron must be finite numbers")

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """Unit and floor of the scale; the measured scale; one alpha per target."""
        huber = Huber()
        huber.observe(y, weight)  # the median absolute deviation, or the sd
        unit = huber.unit.value
        if self.measured:
            self.dispersion.known = unit.clone()
        self.dispersion.observe(unit, torch.minimum(unit_and_floor(y, weight)[1], unit / 2))
        if self.shape is not None:
            self.shape = nn.Parameter(torch.zeros_like(unit))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The maximum-likelihood location, scale and alpha; from Huber's estimate of location."""
        columns = y.reshape(len(y), -1)
        rows = expand_weight(weight, y).reshape(columns.shape)
        solved = [self._solve_constant(columns[:, k], rows[:, k], k) for k in range(rows.shape[1])]
        location, c, a = (
            torch.stack(part).reshape(y.shape[1:]).to(y.dtype) for part in zip(*solved, strict=True)
        )
        if self.shape is not None:
            self.shape = nn.Parameter(a.detach().clone())
        unit = self.dispersion.unit.to(y.dtype).expand_as(location)
        return self.dispersion.append(location, unit.clone(), c)

    def _solve_constant(self, y: Tensor, weight: Tensor, target: int) -> tuple[Tensor, ...]:
        """Location, scale and a of one target."""
        y, weight = y[weight > 0].double(), weight[weight > 0].double()
        one = copy.deepcopy(self).double()
        for name in ("unit", "floor", "known"):
            value = getattr(self.dispersion, name).double().reshape(-1)
            setattr(one.dispersion, name, value[min(target, len(value) - 1)])
        if one.dispersion.constant is not None:
            one.dispersion.constant = nn.Parameter(torch.zeros((), dtype=y.dtype))
        if one.shape is not None:
            one.shape = nn.Parameter(torch.zeros((), dtype=y.dtype))
        huber = Huber()
        huber.observe(y, weight)
        unit = one.dispersion.unit
        first = one.dispersion.append(huber.start(y, weight)[0][0], unit.clone(), unit)
        if bool((y == y[0]).all()):  # the likelihood rises all the way to a spike: to the floor
            return y[0], one.dispersion.floor, torch.zeros_like(unit)
        shift = fit_constant(one, y, weight, *first)
        if one.shape is not None and not float(one.shape.detach()) < _MOST:
            # It rises all the way to the normal distribution: stop a little before.
            one.shape, one.given_alpha = None, 2 / (1 + math.exp(-_MOST))
            shift = fit_constant(one, y, weight, *first)
        a = torch.full_like(unit, _MOST) if one.shape is None else one.shape.detach()
        return shift[0], one.dispersion(shift).detach(), a

    def relax_shapes(self) -> None:
        """Alpha of at most 1.5: the variance of the means hides heavy tails."""
        if self.shape is not None:
            with torch.no_grad():
                self.shape.clamp_(max=math.log(3))

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """Rho; for a likelihood, the negative log-likelihood."""
        require_same_shape(self.name, raw, y)
        if self.has_distribution:
            return -self._distribution(raw).log_prob(y)
        return shaped_loss(((y - raw[..., 0]) / self.dispersion(raw)) ** 2, *self.alpha(raw))

    def _distribution(self, raw: Tensor) -> BarronDistribution:
        return BarronDistribution(raw[..., 0], self.dispersion(raw), *self.alpha(raw))

    def distribution(self, raw: Tensor) -> BarronDistribution:
        """The likelihood at raw[0]; none where shape and scale are both given."""
        if not self.has_distribution:
            raise TypeError(
                "Barron with a given alpha and scale is a loss, not a likelihood: it predicts a "
                "point, no distribution. Learn one of them, or use conformal intervals."
            )
        return self._distribution(raw)

    def point(self, raw: Tensor) -> Tensor:
        """The location f."""
        return raw[..., 0]

    def _load_from_state_dict(self, state, prefix, *rest) -> None:  # type: ignore[no-untyped-def]
        # One entry per target, which only the saved file knows.
        saved = state.get(prefix + "shape")
        if self.shape is not None and saved is not None and saved.shape != self.shape.shape:
            fresh = torch.empty_like(saved, dtype=self.shape.dtype, device=self.shape.device)
            self.shape = nn.Parameter(fresh)
        known = state.get(prefix + "dispersion.known")
        if known is not None and known.shape != self.dispersion.known.shape:
            mine = self.dispersion.known
            self.dispersion.known = torch.empty_like(known, dtype=mine.dtype, device=mine.device)
        super()._load_from_state_dict(state, prefix, *rest)
