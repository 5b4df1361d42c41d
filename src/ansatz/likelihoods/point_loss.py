"""Losses of point predictions: squared, absolute, Huber's and Tukey's."""

import math
from typing import Literal

import torch
from torch import Tensor

from ansatz.likelihoods.dispersion import UnitScale
from ansatz.likelihoods.laplace import median_and_deviation
from ansatz.likelihoods.likelihood import (
    Likelihood,
    expand_weight,
    require_same_shape,
    weighted_mean,
    weighted_median,
    weighted_sd,
)
from ansatz.spec import TargetSpec

RobustScale = Literal["mad"] | float


def require_scale(name: str, scale: object) -> None:
    """Rejects a scale that is neither ``"mad"`` nor a positive number."""
    if scale == "mad":
        return
    if isinstance(scale, bool) or not isinstance(scale, (int, float)):
        raise ValueError(f"scale of {name} must be 'mad' or a number, got {scale!r}.")
    if not 0 < scale < math.inf:
        raise ValueError(f"scale of {name} must be positive and finite, got {scale}.")


class PointLoss(Likelihood):
    """A loss of one predicted number, raw[0]; it predicts no distribution."""

    support = "real"
    has_distribution = False

    def outputs(self, target: TargetSpec) -> int:
        """1: the prediction."""
        return 1

    def point(self, raw: Tensor) -> Tensor:
        """The prediction."""
        return raw[..., 0]


class MSE(PointLoss):
    r"""Squared error, whose minimiser is the conditional mean.

    .. math:: \ell = (y - f)^2

    as in ``torch.nn.MSELoss``; lecture notes that write :math:`\frac12\sum(f - y)^2` differ by a
    factor. It is the normal distribution's loss with a known variance, up to constants; it predicts
    no distribution. The training loss is in units of the variance of y, so that a learning rate
    means the same whether y is in metres or in kilometres.

    Shapes:
        - raw: ``(..., 1)``.
        - y: ``(...)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import MSE
        >>> MSE().loss(torch.zeros(1, 1), torch.tensor([3.0]))
        tensor([9.])

    References:
        Gauss (1809), Theoria motus, section 179.
    """

    name = "mse"

    def __init__(self) -> None:
        super().__init__()
        self.unit = UnitScale()

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """The unit of the training loss, sd(y)."""
        self.unit.observe(weighted_sd(y, weight))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and sd of y."""
        mean, sd = weighted_mean(y, weight), weighted_sd(y, weight)
        return mean.unsqueeze(-1), torch.where(sd > 0, sd, 1.0).unsqueeze(-1)

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """(y - f)^2."""
        require_same_shape(self.name, raw, y)
        return (y - raw[..., 0]) ** 2

    def training_loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The loss over the variance of y."""
        return self.loss(raw, y) / self.unit.value.to(raw.dtype) ** 2


class MAE(PointLoss):
    r"""Absolute error, whose minimiser is the conditional median.

    .. math:: \ell = |y - f|

    as in ``torch.nn.L1Loss``: the Laplace distribution's loss with a known scale, up to constants;
    it predicts no distribution. The training loss is in units of the mean absolute deviation of y
    from its median.

    Shapes:
        - raw: ``(..., 1)``.
        - y: ``(...)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import MAE
        >>> MAE().loss(torch.zeros(1, 1), torch.tensor([-3.0]))
        tensor([3.])

    References:
        Koenker and Bassett (1978), Regression quantiles. https://doi.org/10.2307/1913643
    """

    name = "mae"

    def __init__(self) -> None:
        super().__init__()
        self.unit = UnitScale()

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """The unit of the training loss, the mean absolute deviation."""
        self.unit.observe(median_and_deviation(y, weight)[1])

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The median of y and the mean absolute deviation from it."""
        median, deviation = median_and_deviation(y, weight)
        return median.unsqueeze(-1), torch.where(deviation > 0, deviation, 1.0).unsqueeze(-1)

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """|y - f|."""
        require_same_shape(self.name, raw, y)
        return (y - raw[..., 0]).abs()

    def training_loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The loss over the unit of y."""
        return self.loss(raw, y) / self.unit.value.to(raw.dtype)


class Huber(PointLoss):
    r"""Squared error for small residuals, absolute error for large ones.

    .. math:: \ell = \begin{cases} \frac12 r^2 & |r| \le c \\ c|r| - \frac12 c^2 & |r| > c
              \end{cases}, \qquad r = y - f, \quad c = \delta s

    s is the median absolute deviation of y from its median times 1.4826 (which makes it the sd of
    normal data), measured by ``observe``; 1 before. With :math:`\delta` = 1.345 the estimate of a
    normal mean has 95 % of the efficiency of squared error. It predicts no distribution. The
    training loss is in units of s^2.

    Args:
        delta: where the loss turns linear, in units of s.
        scale: s, ``"mad"`` or a known number: with ``scale=1`` delta is in the unit of y.

    Shapes:
        - raw: ``(..., 1)``.
        - y: ``(...)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Huber
        >>> Huber(delta=1.0).loss(torch.zeros(2, 1), torch.tensor([0.5, 3.0]))
        tensor([0.1250, 2.5000])

    References:
        Huber (1964), Robust estimation of a location parameter.
        https://doi.org/10.1214/aoms/1177703732
    """

    name = "huber"

    def __init__(self, *, delta: float = 1.345, scale: RobustScale = "mad") -> None:
        super().__init__()
        if not 0 < delta < math.inf:
            raise ValueError(f"delta of Huber must be positive and finite, got {delta}.")
        require_scale("Huber", scale)
        self.delta, self.unit, self.known = delta, UnitScale(), not isinstance(scale, str)
        if not isinstance(scale, str):
            self.unit.observe(torch.tensor(float(scale), dtype=torch.float64))

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """The scale s, unless known; the sd of y where more than half of its values are equal."""
        if self.known:
            return
        mad = 1.4826 * weighted_median((y - weighted_median(y, weight)).abs(), weight)
        self.unit.observe(torch.where(mad > 0, mad, weighted_sd(y, weight)))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Huber's estimate of location, exact, and the scale s."""
        scale = self.unit.value.to(y.dtype).expand(y.shape[1:])
        location = _location(y, expand_weight(weight, y), self.delta * scale)
        return location.unsqueeze(-1), scale.unsqueeze(-1).clone()

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """r^2 / 2, or c |r| - c^2 / 2 beyond c."""
        require_same_shape(self.name, raw, y)
        size = (y - raw[..., 0]).abs()
        near = size.clamp(max=self.delta * self.unit.value.to(raw.dtype))
        return near * (size - near / 2)

    def training_loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The loss over s^2."""
        return self.loss(raw, y) / self.unit.value.to(raw.dtype) ** 2


def _location(y: Tensor, weight: Tensor, c: Tensor) -> Tensor:
    """The root of the sum of w clip(y - m, -c, c), which falls in m: bisection, then exactly."""
    observed = weight > 0
    low = torch.where(observed, y, torch.inf).amin(0)
    high = torch.where(observed, y, -torch.inf).amax(0)
    y = torch.where(observed, y, 0)
    for _ in range(60):
        middle = low + (high - low) / 2
        right = (weight * (y - middle).clamp(-c, c)).sum(0) > 0
        low, high = torch.where(right, middle, low), torch.where(right, high, middle)
    middle = low + (high - low) / 2
    # Between the kinks the sum is linear in m, so the last digits are solved for.
    inside = weight * ((y - middle).abs() < c)
    pull = torch.where((y - middle).abs() < c, 0, c * (y - middle).sign())
    mass = inside.sum(0)
    exact = middle + ((inside * (y - middle)).sum(0) + (weight * pull).sum(0)) / mass.clamp(
        min=1e-30
    )
    return torch.where(mass > 0, exact, middle)


class Tukey(PointLoss):
    r"""Squared error for small residuals that levels off: far points stop pulling.

    .. math:: \ell = \frac{c^2}{6} \begin{cases} 1 - (1 - r^2 / c^2)^3 & |r| \le c \\ 1 & |r| > c
              \end{cases}, \qquad r = y - f, \quad c = 4.685\, s

    s is the median absolute deviation of y from its median times 1.4826 (which makes it the sd of
    normal data), measured by ``observe``; 1 before. With 4.685 the estimate of a normal mean has
    95 % of the efficiency of squared error. s belongs to the residuals: where x explains most of y,
    y's own deviation is too large, and a known ``scale`` serves better.

    Because a residual beyond c has no gradient, the loss has many minima, and the start decides.
    Tukey starts from Huber, as M-estimation does: the constant model is the minimum that
    reweighting reaches from Huber's estimate, and a network is trained on

    .. math:: (1 - t)\, \ell_\text{Huber} + t\, \ell, \qquad t \text{ from 0 to 1 over the warm-up}

    with t counted in calls of ``training_loss`` after ``relax_shapes``; ``loss`` is the biweight
    always. The training loss is in units of s^2. It predicts no distribution.

    Args:
        constant: c in units of s.
        scale: s, ``"mad"`` or a known number: with ``scale=1`` c is in the unit of y.
        warm_up: training steps from Huber to Tukey; 0 begins with Tukey.

    Shapes:
        - raw: ``(..., 1)``.
        - y: ``(...)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Tukey
        >>> Tukey(constant=1.0).loss(torch.zeros(2, 1), torch.tensor([1.0, 100.0]))
        tensor([0.1667, 0.1667])

    References:
        Beaton and Tukey (1974), The fitting of power series, meaning polynomials, illustrated on
        band-spectroscopic data. https://doi.org/10.1080/00401706.1974.10489171
        Maronna, Martin and Yohai (2006), Robust Statistics, sections 2.2.4 and 2.7.
    """

    name = "tukey"
    calls: Tensor

    def __init__(
        self, *, constant: float = 4.685, scale: RobustScale = "mad", warm_up: int = 1000
    ) -> None:
        super().__init__()
        if not 0 < constant < math.inf:
            raise ValueError(f"constant of Tukey must be positive and finite, got {constant}.")
        if warm_up < 0:
            raise ValueError(f"warm_up of Tukey must be a number of steps >= 0, got {warm_up}.")
        require_scale("Tukey", scale)
        self.constant, self.warm_up, self.huber = constant, warm_up, Huber(scale=scale)
        # The warm-up is over until a network asks for it.
        self.register_buffer("calls", torch.tensor(float(warm_up)))

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """The scale s, unless known; the sd of y where more than half of its values are equal."""
        self.huber.observe(y, weight)

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Tukey's estimate of location, the minimum reached from Huber's, and the scale s."""
        shift, scale = self.huber.start(y, weight)
        c = self.constant * scale[..., 0]
        location = _biweight_location(y, expand_weight(weight, y), c, shift[..., 0])
        return location.unsqueeze(-1), scale

    def relax_shapes(self) -> None:
        """Begins the warm-up: what varies with x would look like outliers of the constant model."""
        self.calls = torch.zeros_like(self.calls)

    def _scale(self, raw: Tensor) -> Tensor:
        return self.huber.unit.value.to(raw.dtype)

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The biweight."""
        require_same_shape(self.name, raw, y)
        c = self.constant * self._scale(raw)
        square = (((y - raw[..., 0]) / c).clamp(-1, 1)) ** 2
        return c**2 / 6 * square * (3 - square * (3 - square))  # 1 - (1 - u)^3 without cancellation

    def training_loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The loss over s^2, after a passage from Huber's."""
        tukey = self.loss(raw, y)
        if self.warm_up:
            t = (self.calls / self.warm_up).clamp(max=1).to(raw.dtype)
            tukey = torch.lerp(self.huber.loss(raw, y), tukey, t)
            if self.training and torch.is_grad_enabled():
                self.calls += 1
        return tukey / self._scale(raw) ** 2


def _biweight_location(y: Tensor, weight: Tensor, c: Tensor, start: Tensor) -> Tensor:
    """Iteratively reweighted means, which never raise the loss; then Newton for the last digits."""
    observed = weight > 0
    y, weight = torch.where(observed, y, 0).double(), torch.where(observed, weight, 0).double()
    c, m = c.double(), start.double()
    for _ in range(200):
        share = weight * (1 - (((y - m) / c).clamp(-1, 1)) ** 2) ** 2
        mass = share.sum(0)
        new = m + (share * (y - m)).sum(0) / torch.where(mass > 0, mass, 1.0)
        if bool(((new - m).abs() <= 1e-13 * c).all()):
            break
        m = new
    for _ in range(3):
        u = (((y - m) / c).clamp(-1, 1)) ** 2
        pull = (weight * (y - m) * (1 - u) ** 2).sum(0)
        bend = (weight * (1 - u) * (1 - 5 * u)).sum(0)
        m = m + torch.where(bend > 0, pull / torch.where(bend > 0, bend, 1.0), 0.0)
    return m.to(start)
