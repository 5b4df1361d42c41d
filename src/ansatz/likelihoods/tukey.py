"""Tukey's biweight: beyond a few spreads, a point has no say at all."""

import math
from typing import Literal

import torch
from torch import Tensor

from ansatz.likelihoods.huber import Huber
from ansatz.likelihoods.likelihood import Likelihood, expand_weight, require_same_shape
from ansatz.spec import TargetSpec


class Tukey(Likelihood):
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
        scale: s, ``"mad"`` or a known number.
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
    support = "real"
    has_distribution = False
    calls: Tensor

    def __init__(
        self,
        *,
        constant: float = 4.685,
        scale: Literal["mad"] | float = "mad",
        warm_up: int = 1000,
    ) -> None:
        super().__init__()
        if not 0 < constant < math.inf:
            raise ValueError(f"constant of Tukey must be positive and finite, got {constant}.")
        if isinstance(scale, str) and scale != "mad":
            raise ValueError(f"scale of Tukey must be 'mad' or a number, got {scale!r}.")
        if not isinstance(scale, str) and not 0 < scale < math.inf:
            raise ValueError(f"scale of Tukey must be positive and finite, got {scale}.")
        if warm_up < 0:
            raise ValueError(f"warm_up of Tukey must be a number of steps >= 0, got {warm_up}.")
        self.constant, self.known, self.warm_up = constant, not isinstance(scale, str), warm_up
        self.huber = Huber()
        if not isinstance(scale, str):
            self.huber.unit.observe(torch.tensor(float(scale)))
        # The warm-up is over until a network asks for it.
        self.register_buffer("calls", torch.tensor(float(warm_up)))

    def outputs(self, target: TargetSpec) -> int:
        """1: the prediction."""
        return 1

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """The scale s, unless known; the sd of y where more than half of its values are equal."""
        if not self.known:
            self.huber.observe(y, weight)

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Tukey's estimate of location, the minimum reached from Huber's, and the scale s."""
        shift, scale = self.huber.start(y, weight)
        c = self.constant * scale[..., 0]
        location = _location(y, expand_weight(weight, y), c, shift[..., 0])
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

    def point(self, raw: Tensor) -> Tensor:
        """The prediction."""
        return raw[..., 0]


def _location(y: Tensor, weight: Tensor, c: Tensor, start: Tensor) -> Tensor:
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
