"""The contract of likelihoods: how a network's raw numbers describe an outcome."""

import inspect
import math
from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar

import torch
from torch import Tensor

from ansatz.likelihoods.dispersion import Dispersion, PositiveHead, Resized
from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.support import Support, check_support
from ansatz.spec import TargetSpec


class Likelihood(Resized):
    """A model p(y | theta) of outcomes whose theta, the raw numbers, a network predicts.

    Training minimises the negative log-likelihood. The first raw number is the linear predictor of
    the generalised linear model; later ones are dispersions. Parameters of the module are learned
    shapes that do not depend on x; buffers are what is estimated from the outcomes (a unit, a
    floor, a baseline hazard).

    A likelihood is used in this order: ``check(y)``, ``observe(y, weight)``, ``start(y, weight)``,
    then ``training_loss`` and ``loss`` at every step, then ``distribution`` and ``point``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Poisson
        >>> likelihood, y = Poisson(), torch.tensor([0.0, 2.0, 4.0])
        >>> shift, scale = likelihood.start(y, torch.ones(3))
        >>> round(likelihood.distribution(shift.expand(3, 1)).mean[0].item(), 3)
        2.0
    """

    name: ClassVar[str]  # as the registry spells it
    additive: ClassVar[bool] = True  # False: the loss couples rows (Cox); see joint_loss
    has_distribution: ClassVar[bool] = True  # False: a loss without a density
    event_ndim: ClassVar[int] = 0  # trailing axes of y that make up one outcome: 1 for a vector
    link_name: ClassVar[str] = "identity"  # from the mean (or location) to the first raw number
    support: ClassVar[Support] = "any"  # the outcomes that check accepts
    least_loss: ClassVar[float] = -math.inf  # that a prediction can have: 0 for probabilities
    options: dict[str, Any]  # the keyword arguments it was made with: name + options remake it

    def __init_subclass__(cls, **options: Any) -> None:
        """Gives ``loss`` of every likelihood the argument ``axis``."""
        super().__init_subclass__(**options)
        if "loss" in vars(cls):
            cls.loss = takes_axis(cls.loss)  # type: ignore[method-assign]

    def __new__(cls, *args: Any, **options: Any) -> "Likelihood":
        """Remembers the options, so that a saved model can name them."""
        likelihood = super().__new__(cls)
        likelihood.__dict__["options"] = options
        return likelihood

    def outputs(self, target: TargetSpec) -> int:
        """P, the raw numbers per outcome."""
        raise TypeError(
            f"{type(self).__name__} does not define outputs, the number of its raw numbers."
        )

    def check(self, y: Any) -> None:
        """Rejects outcomes outside the support, naming the row, the value and what would fit."""
        check_support(self.support, y, type(self).__name__)

    def observe(self, y: Any, weight: Tensor) -> None:
        """Sets the buffers that depend on the outcomes of the training rows: unit and floor."""

    def start(self, y: Any, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Shift and scale, ``(P,)`` each, ``(K, P)`` for K targets: raw = shift + scale * network.

        ``shift`` alone is the maximum-likelihood constant model.
        """
        raise TypeError(f"{type(self).__name__} has no starting point.")

    def relax_shapes(self) -> None:
        """Moves the constant model's shapes to where a gradient can move them; called by networks.

        What varies with x makes outcomes look unlike the likelihood that they follow given x.
        """

    def loss(self, raw: Tensor, y: Any) -> Tensor:
        """One number per outcome: the negative log-likelihood, or the loss.

        ``loss(raw, y, axis=1)`` takes raw numbers along axis 1, ``(B, P, *size)``, as networks on
        grids and torch's losses have them; the last axis is the default.
        """
        require_same_shape(self.name, raw, y)
        return -self.distribution(raw).log_prob(y)

    def forward(self, raw: Tensor, y: Any, axis: int = -1) -> Tensor:
        """Computes ``loss``, so that a likelihood is called as torch's losses are."""
        return self.loss(raw, y, axis=axis)  # type: ignore[call-arg]  # see takes_axis

    def joint_loss(self, raw: Tensor, y: Any, weight: Tensor) -> Tensor:
        """Shares of the total loss, weights included, for likelihoods that couple rows.

        In their total a weight acts on more than its own row: a row of weight 2 is twice in every
        risk set. For additive likelihoods it is ``weight * loss``.
        """
        return expand_weight(weight, terms := self.loss(raw, y)) * terms

    def partial_loss(self, raw: Tensor, y: Any, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Losses and weights of outcomes that are observed in part: the weights reach inside them.

        For a mask, weights per pixel of which some are 0. One loss and one weight per outcome; the
        mean of the losses so weighted is that of ``loss`` where all parts have the same weight.
        """
        raise TypeError(
            f"{self.name} needs one weight per outcome: its outcomes have {self.event_ndim} axes, "
            f"but the weights {tuple(weight.shape)} differ within an outcome."
        )

    def training_loss(self, raw: Tensor, y: Any) -> Tensor:
        """The loss that the optimiser minimises; ``loss`` unless a likelihood overrides it."""
        return self.loss(raw, y)

    def distribution(self, raw: Tensor) -> Distribution:
        """The predictive distribution (likelihoods only)."""
        raise TypeError(
            f"{type(self).__name__} is a loss, not a likelihood: it predicts a point, no "
            "distribution."
        )

    def given(self, raw: Tensor, y: Any) -> tuple[Distribution, Tensor]:
        """The predictive distribution of each outcome, and the value that it is to be evaluated by.

        What is known before the outcome is taken from y: the number of trials of a binomial.
        """
        return self.distribution(raw), y

    def point(self, raw: Tensor) -> Tensor:
        """The prediction of ``predict``: the mean, unless the likelihood overrides it."""
        return self.distribution(raw).mean

    def unit_deviance(self, raw: Tensor, y: Any) -> Tensor:
        """2 (log-likelihood of the saturated model - that of raw), both with dispersion 1."""
        raise TypeError(
            f"{self.name} is not an exponential family in its mean: it has no deviance."
        )

    def variance_function(self, mu: Tensor) -> Tensor:
        """V(mu): the variance of y is dispersion * V(mu)."""
        raise TypeError(f"{self.name} is not an exponential family: it has no variance function.")

    def pearson(self, raw: Tensor, y: Any) -> Tensor:
        """Pearson residuals (y - mu) / sqrt(V(mu))."""
        require_same_shape(self.name, raw, y)
        mu = self.point(raw)
        return (y - mu) / self.variance_function(mu).sqrt()


def takes_axis(loss: Callable[[Any, Tensor, Any], Tensor]) -> Callable[..., Tensor]:
    """Adds ``axis``, where the raw numbers of an outcome are, to a loss that has them last."""
    if "axis" in inspect.signature(loss).parameters:
        return loss

    @wraps(loss)
    def wrapped(self: Any, raw: Tensor, y: Any, axis: int = -1) -> Tensor:
        return loss(self, raw if axis == -1 else raw.movedim(axis, -1), y)

    return wrapped


Likelihood.loss = takes_axis(Likelihood.loss)  # type: ignore[method-assign]


class Dispersed(Likelihood):
    """A likelihood with a dispersion that is predicted from x, constant, or known."""

    def __init__(self, *, dispersion: Dispersion = "predicted") -> None:
        super().__init__()
        self.dispersion = PositiveHead(dispersion)

    def outputs(self, target: TargetSpec) -> int:
        """2 with a predicted dispersion, else 1."""
        return 1 + self.dispersion.outputs


def require_same_shape(
    likelihood: str, raw: Tensor, y: Tensor, event: tuple[int, ...] = ()
) -> None:
    """Refuses to broadcast (N, 1) against (N,): raw without its last axis must have y's shape.

    An outcome that is a vector has the shape ``event`` behind it.
    """
    expected = (*raw.shape[:-1], *event)
    if expected != y.shape:
        raise ValueError(
            f"{likelihood} needs one outcome per raw row: raw {tuple(raw.shape)} goes with "
            f"y {expected}, got y {tuple(y.shape)}.{_advice(raw, y, event)}"
        )


def _advice(raw: Tensor, y: Tensor, event: tuple[int, ...]) -> str:
    if event or raw.ndim < 3:
        return ""
    if raw.shape == y.shape:
        return " One raw number per outcome needs an axis of its own: raw.unsqueeze(-1)."
    if (raw.shape[0], *raw.shape[2:]) != y.shape:
        return ""
    return " The raw numbers of a network on grids come second: loss(raw, y, axis=1)."


def expand_weight(weight: Tensor, y: Tensor) -> Tensor:
    """The weight of every outcome: ``(B,)`` row weights repeated over the targets of each row."""
    return weight.reshape(weight.shape + (1,) * (y.ndim - weight.ndim)).expand_as(y)


def weighted_mean(y: Tensor, weight: Tensor) -> Tensor:
    """Computes the mean over rows with frequency weights, ``(...)`` for y ``(B, ...)``."""
    weight = expand_weight(weight, y)
    # where, not multiplication: an unobserved row may hold nan, and nan * 0 is nan.
    return torch.where(weight > 0, y * weight, 0).sum(0) / weight.sum(0)


def weighted_sd(y: Tensor, weight: Tensor) -> Tensor:
    """Computes the maximum-likelihood standard deviation over rows with frequency weights."""
    return weighted_mean((y - weighted_mean(y, weight)) ** 2, weight).sqrt()


def weighted_median(y: Tensor, weight: Tensor) -> Tensor:
    """The median over rows with frequency weights; the middle of the two where two qualify."""
    weight = expand_weight(weight, y)
    # Unobserved rows go last: they carry no weight, and may hold nan.
    y, order = torch.where(weight > 0, y, torch.inf).sort(0)
    mass = weight.gather(0, order).cumsum(0)
    half = mass[-1:] / 2
    first = (mass >= half).int().argmax(0, keepdim=True)
    second = (mass > half).int().argmax(0, keepdim=True)
    return ((y.gather(0, first) + y.gather(0, second)) / 2).squeeze(0)


def by_target(solve: Callable[[Tensor, Tensor, int], Any], y: Tensor, weight: Tensor) -> list[Any]:
    """Calls ``solve(y, weight, k)`` on the observed rows of every target, in double precision."""
    columns = y.reshape(len(y), -1)
    rows = expand_weight(weight, y).reshape(columns.shape)
    pairs = enumerate(zip(columns.unbind(1), rows.unbind(1), strict=True))
    return [solve(c[w > 0].double(), w[w > 0].double(), k) for k, (c, w) in pairs]


def unit_and_floor(y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    r"""The natural unit of y, its sd, and the least scale a likelihood may claim.

    .. math:: \text{floor} = \max(10^{-3}\, sd(y),\; r / \sqrt{12})

    with r the resolution of y, its smallest gap between values: an outcome that was rounded to r
    carries no evidence for anything sharper. Without it, rounded outcomes reward spikes.
    """
    columns = y.reshape(len(y), -1)
    weight = expand_weight(weight, y).reshape(columns.shape)
    sd = weighted_sd(columns, weight)
    unit = torch.where(sd > 0, sd, 1e-3 * weighted_mean(columns, weight).abs().clamp(min=1))
    observed = zip(columns.unbind(1), weight.unbind(1), strict=True)
    resolution = torch.stack([_resolution(column[w > 0]) for column, w in observed])
    floor = torch.maximum(1e-3 * unit, resolution / 12**0.5)
    # Two rounding steps fill the whole range when y has two values: keep the floor below the unit.
    floor = torch.minimum(floor, 0.5 * unit)
    return unit.reshape(y.shape[1:]), floor.reshape(y.shape[1:])


def _resolution(y: Tensor) -> Tensor:
    """The step that all values are multiples of: their least gap, or a power of ten below it.

    A few values that were not rounded lie far apart without lying on a grid; then there is none.
    """
    values = y.unique()
    gaps = values.diff()
    gaps = gaps[gaps > 1e-9 * (values[-1] - values[0])] if len(gaps) else gaps
    if not len(gaps):
        return y.new_zeros(())
    least = gaps.min()
    if _on_grid(values - values[0], least):
        return least
    decade = 10.0 ** (least.log10() + 0.01).floor()  # a gap of 0.1 may come as 0.09999
    steps = (decade * 10.0**-k for k in range(9))
    return next((step for step in steps if _on_grid(values, step)), y.new_zeros(()))


def _on_grid(values: Tensor, step: Tensor) -> bool:
    places = values / step
    slack = max(1e-6, 4 * torch.finfo(values.dtype).eps * float(places.abs().max()))
    # With more digits than the number type holds, everything lies on the grid.
    return slack < 0.05 and bool(((places - places.round()).abs() <= slack).all())
