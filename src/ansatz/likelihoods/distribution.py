"""Distributions that likelihoods predict, of numbers and of vectors."""

import inspect
import math
from collections.abc import Callable, Iterator
from functools import wraps
from itertools import chain, pairwise
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from ansatz.arrays import takes_tensor, to_tensor
from ansatz.likelihoods.special.quadrature import gauss

F = TypeVar("F", bound=Callable[..., Any])
_METHODS = ("log_prob", "cdf", "log_cdf", "log_survival", "log_interval", "icdf", "crps")


def _takes_arrays(method: F) -> F:
    """Lets a method take arrays, lists and numbers where it expects tensors.

    They get the dtype and the device of the parameters: a distribution is made of tensors, and
    gives tensors back.
    """
    _, *parameters = inspect.signature(method).parameters.values()
    names = [p.name for p in parameters]
    known = method.__name__ in _METHODS  # a user's own may do without annotations
    converted = {
        p.name for p in parameters if takes_tensor(p) or (known and p.annotation is p.empty)
    }
    if not converted:
        return method

    @wraps(method)
    def wrapped(self: Any, *args: Any, **options: Any) -> Any:
        if all(isinstance(value, Tensor) for value in args) and not options:
            return method(self, *args)
        given = dict(zip(names, args, strict=False)) | options
        floats = (v for v in given.values() if isinstance(v, Tensor) and v.is_floating_point())
        like = next(chain(_tensors(self), floats), torch.empty(0))
        for name in converted & given.keys():
            if given[name] is not None:
                given[name] = to_tensor(given[name], like)
        return method(self, *args[len(names) :], **given)

    return wrapped  # type: ignore[return-value]


def _tensors(part: object) -> Iterator[Tensor]:
    """The floating-point tensors that a distribution is made of."""
    if isinstance(part, Tensor):
        if part.is_floating_point():
            yield part
    elif isinstance(part, Distribution | tuple | list):
        values = vars(part).values() if isinstance(part, Distribution) else part
        for value in values:
            yield from _tensors(value)


class Distribution:
    """Univariate distributions, one per element of ``batch_shape``.

    A distribution defines ``log_prob``, ``log_cdf`` (or ``cdf``), ``mean``, ``variance``, ``mode``;
    the rest follows from them, and is overridden where a closed form is faster or more accurate.
    ``log_cdf`` and ``log_survival`` are accurate in both tails.

    Outcomes and parameters may be tensors, NumPy arrays, lists or numbers; the results are tensors.

    Our own and not torch's: torch has no ``icdf`` or ``cdf`` for half of the distributions, no
    logarithmic tails, and its samplers take no generator.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import NormalDistribution
        >>> d = NormalDistribution(torch.zeros(2), torch.ones(2))
        >>> [round(bound[0].item(), 3) for bound in d.interval(0.95)]
        [-1.96, 1.96]
    """

    discrete = False
    symmetric = False  # True: the median is the mode
    lower, upper = -math.inf, math.inf  # the support's ends
    reparameterized = True  # False: probability that moves between values, rsample has no gradient
    members: "Callable[[], list[tuple[float, Distribution]]] | None" = None  # of an ensemble

    def __init_subclass__(cls, **options: Any) -> None:
        """Lets the methods of every distribution take arrays, which they define for tensors."""
        super().__init_subclass__(**options)
        for name, method in vars(cls).copy().items():
            if inspect.isfunction(method) and (name == "__init__" or not name.startswith("_")):
                setattr(cls, name, _takes_arrays(method))

    def __repr__(self) -> str:
        """Class, shape and the first values of each parameter."""
        held = [(n.lstrip("_"), v) for n, v in vars(self).items() if isinstance(v, Tensor)]
        inner = [(n, v) for n, v in vars(self).items() if isinstance(v, Distribution)]
        parts = [f"{name}={_few(value)}" for name, value in held]
        parts += [f"{name}={value!r}" for name, value in inner]
        if isinstance(members := vars(self).get("components"), list):
            parts += [f"{len(members)} components of {type(members[0]).__name__}"]
        shape = tuple(self.batch_shape)
        return f"{type(self).__name__}({', '.join([*parts, f'shape {shape}'])})"

    @property
    def batch_shape(self) -> torch.Size:
        """The shape of one sample."""
        return self.mean.shape

    @property
    def mean(self) -> Tensor:
        """E[Y]; nan or infinite where it does not exist."""
        raise TypeError(f"{type(self).__name__} defines no mean.")

    @property
    def variance(self) -> Tensor:
        """E[(Y - E Y)^2]; infinite where it does not exist."""
        raise TypeError(f"{type(self).__name__} defines no variance.")

    @property
    def between_variance(self) -> Tensor:
        r"""The variance of the members' means: how much an ensemble disagrees; 0 for one model.

        .. math:: \sum_s \pi_s (m_s - \bar m)^2

        Of classes and rankings, that of each probability, ``(..., K)``.
        """
        if self.members is None:
            return torch.zeros_like(self._scatter)
        return self._between(self.members())

    @property
    def within_variance(self) -> Tensor:
        """The rest of the variance, which more data would not remove."""
        return (self._scatter - self.between_variance).clamp(min=0)

    @property
    def _centre(self) -> Tensor:
        return self.mean

    @property
    def _scatter(self) -> Tensor:
        return self.variance

    def _between(self, members: "list[tuple[float, Distribution]]") -> Tensor:
        centres = torch.stack([member._centre for _, member in members])  # (S, ...)
        weights = torch.tensor([weight for weight, _ in members]).to(centres)
        weights = weights.reshape(-1, *(1,) * (centres.ndim - 1))
        mean = (weights * centres).sum(0)
        return (weights * (centres - mean) ** 2).sum(0)

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        raise TypeError(f"{type(self).__name__} defines no mode.")

    @property
    def entropy(self) -> Tensor:
        """E[-log p(Y)]: a closed form, or by quadrature over the quantiles or a sum over values."""
        return _entropy_by_sum(self) if self.discrete else _entropy_by_quadrature(self)

    @property
    def stddev(self) -> Tensor:
        """The square root of the variance."""
        return self.variance.sqrt()

    @property
    def median(self) -> Tensor:
        """The 0.5 quantile."""
        return self.mode if self.symmetric else self.icdf(torch.full_like(self.mean, 0.5))

    def log_prob(self, y: Tensor) -> Tensor:
        """Log density (continuous) or log probability (discrete) of ``y``."""
        raise TypeError(f"{type(self).__name__} defines no density.")

    def cdf(self, y: Tensor) -> Tensor:
        """P(Y <= y)."""
        if type(self).log_cdf is Distribution.log_cdf:
            raise TypeError(f"{type(self).__name__} defines no cdf.")
        return self.log_cdf(y).exp()

    def log_cdf(self, y: Tensor) -> Tensor:
        """log P(Y <= y)."""
        return self.cdf(y).log()

    def log_survival(self, y: Tensor) -> Tensor:
        """log P(Y > y)."""
        return torch.log1p(-self.cdf(y))

    def log_interval(self, lower: Tensor, upper: Tensor) -> Tensor:
        """log P(lower < Y <= upper), by the tail in which it lies; an end may be infinite."""
        below, above = lower == -math.inf, upper == math.inf
        # An infinite end becomes the other one, as the gradient at infinity would be nan.
        lower = torch.where(below, torch.where(above, 0.5, upper), lower)
        upper = torch.where(above, lower, upper)
        # Subtract in the smaller tail: where both ends are above the median, survivals differ.
        a, b = self.log_survival(lower), self.log_survival(upper)
        c, d = self.log_cdf(upper), self.log_cdf(lower)
        high, open_end = a < c, below | above
        larger, smaller = torch.where(high, a, c), torch.where(high, b, d)
        inside = _log_difference(
            torch.where(open_end, 0.0, larger), torch.where(open_end, -1.0, smaller)
        )
        inside = torch.where(below, c, torch.where(above, a, inside))
        return torch.where(below & above, torch.zeros_like(inside), inside)

    def icdf(self, q: Tensor) -> Tensor:
        """The smallest y with P(Y <= y) >= q, by bisection where there is no closed form.

        Differentiable in q and in the parameters where the distribution is continuous.
        """
        with torch.no_grad():
            if q.is_meta:
                y = q.new_empty(torch.broadcast_shapes(q.shape, self.batch_shape))
            else:
                y = self._solve(q)
        return y if self.discrete else self._implicit(y, q)

    def _solve(self, q: Tensor) -> Tensor:
        return bisect(self, q)

    def _implicit(self, y: Tensor, q: Tensor) -> Tensor:
        """y with the gradient of the y that solves cdf(y) = q: dy = (dq - dF) / f(y)."""
        if not (
            torch.is_grad_enabled()
            and (q.requires_grad or any(t.requires_grad for t in _tensors(self)))
        ):
            return y
        gap = q - self.cdf(y)
        return y + (gap - gap.detach()) * (-self.log_prob(y).detach()).exp()

    def crps(self, y: Tensor) -> Tensor:
        r"""The continuous ranked probability score, in the unit of y; smaller is better.

        .. math:: \int (F(x) - 1[x \ge y])^2 dx = E|Y - y| - \tfrac12 E|Y - Y'|

        Here by quadrature of the cdf; distributions with a closed form override it. Infinite where
        the mean does not exist.
        """
        return _crps_by_sum(self, y) if self.discrete else _crps_by_quadrature(self, y)

    def interval(self, level: float) -> tuple[Tensor, Tensor]:
        """The equal-tailed interval that holds ``level`` of the probability."""
        if not 0 < level < 1:
            raise ValueError(f"level must be in (0, 1), got {level}.")
        tail = torch.full_like(self.mean, (1 - level) / 2)
        return self.icdf(tail), self.icdf(1 - tail)

    def sample(
        self, shape: tuple[int, ...] = (), generator: torch.Generator | None = None
    ) -> Tensor:
        """Independent draws, ``(*shape, *batch_shape)``; no gradient."""
        with torch.no_grad():
            return self._draw((*shape, *self.batch_shape), generator)

    def rsample(
        self, shape: tuple[int, ...] = (), generator: torch.Generator | None = None
    ) -> Tensor:
        r"""The draws of ``sample``, differentiable in every parameter.

        .. math:: \frac{dy}{d\theta} = -\frac{\partial F(y; \theta) / \partial\theta}{p(y; \theta)}

        the derivative of the quantile at the draw's own level: for location and scale the usual
        ``mean + sd * noise``. First derivatives only. Refused where values have probabilities
        that the parameters move, as in counts: no draw moves with them.

        References:
            Figurnov, Mohamed and Mnih (2018), Implicit reparameterization gradients.
            https://arxiv.org/abs/1805.08498
        """
        if self.discrete or not self.reparameterized:
            raise TypeError(
                f"{type(self).__name__} has no reparameterisation: its draws do not move smoothly "
                "with its parameters. Use sample and the gradient of log_prob (the score)."
            )
        y = self.sample(shape, generator)
        if not (torch.is_grad_enabled() and any(t.requires_grad for t in _tensors(self))):
            return y
        below = self.cdf(y)
        return y - (below - below.detach()) * (-self.log_prob(y).detach()).exp()

    def _draw(self, size: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        like = self.mean
        u = torch.rand(size, generator=generator, dtype=like.dtype, device=like.device)
        return self.icdf(u)


for _name in _METHODS:
    setattr(Distribution, _name, _takes_arrays(getattr(Distribution, _name)))


class LogMeanDistribution(Distribution):
    """Distributions by the logarithm of their mean and a dispersion, of one shape."""

    def __init__(self, log_mean: Tensor, dispersion: Tensor) -> None:
        self.log_mean, self.dispersion = torch.broadcast_tensors(log_mean, dispersion)

    @property
    def mean(self) -> Tensor:
        """mu."""
        return self.log_mean.exp()


def bisect(distribution: Distribution, q: Tensor, iterations: int = 200) -> Tensor:
    """Solves cdf(y) = q for any distribution, in a bracket around its mean."""
    centre = torch.nan_to_num(distribution.mean, nan=0.0, posinf=0.0, neginf=0.0)
    sd = torch.nan_to_num(distribution.stddev, nan=1.0, posinf=1.0).clamp(min=1e-30)
    centre, sd, q = torch.broadcast_tensors(centre, sd, q)
    low, high = centre - sd, centre + sd
    for _ in range(1100):  # doubling reaches the largest double
        too_high = (distribution.cdf(low) >= q) & (low > distribution.lower)
        too_low = (distribution.cdf(high) < q) & (high < distribution.upper)
        if not (too_high.any() or too_low.any()):
            break
        sd = 2 * sd
        low = torch.where(too_high, (centre - sd).clamp(min=distribution.lower), low)
        high = torch.where(too_low, (centre + sd).clamp(max=distribution.upper), high)
    for _ in range(iterations):
        middle = low + (high - low) / 2
        above = distribution.cdf(middle) >= q
        new_low, new_high = torch.where(above, low, middle), torch.where(above, middle, high)
        if torch.equal(new_low, low) and torch.equal(new_high, high):
            break
        low, high = new_low, new_high
    y = high.ceil() if distribution.discrete else high
    if distribution.discrete:  # rounding may have stepped one value past the answer
        y = torch.where(distribution.cdf(y - 1) >= q, y - 1, y)
    y = torch.where(q <= 0, torch.full_like(y, distribution.lower), y)
    y = torch.where(q >= 1, torch.full_like(y, distribution.upper), y)
    return torch.where((q >= 0) & (q <= 1), y, torch.full_like(y, torch.nan))


_SUMMED = 2**20  # values that are in memory at once
_LEVELS = (1e-12, 1e-9, 1e-7, 1e-5, 1e-3, 0.02, 0.1, 0.3, 0.5)  # where panels of the integral meet


def crps_levels(dtype: torch.dtype) -> list[float]:
    """The levels between whose quantiles the CRPS is integrated."""
    resolved = [q for q in _LEVELS if q > torch.finfo(dtype).eps]  # 1 - q must differ from 1
    return [*resolved, *(1 - q for q in reversed(resolved[:-1]))]


def _crps_by_quadrature(distribution: Distribution, y: Tensor) -> Tensor:
    """Beyond 1e-12 the squared tail adds nothing."""
    with torch.no_grad():
        levels = crps_levels(y.dtype)
        edges = torch.stack([distribution.icdf(torch.full_like(y, q)) for q in levels])
    return crps_between(distribution, y, edges)


def crps_between(distribution: Distribution, y: Tensor, edges: Tensor) -> Tensor:
    """The CRPS by Gauss-Legendre on panels between ``edges`` ``(L, ...)`` and y."""
    nodes, weights = (v.reshape(-1, *(1,) * y.ndim) for v in gauss("legendre", 16, y))
    ends = torch.cat([edges, y.unsqueeze(0)]).sort(0).values  # (L + 1, ...)
    total = torch.zeros_like(y)
    for a, b in pairwise(ends):
        x = a + (b - a) * nodes  # (16, ...)
        below = distribution.cdf(x)
        value = torch.where(x < y, below, 1 - below)  # squared, what 1 - F loses is nothing
        total = total + (b - a) * (weights * value**2).sum(0)
    return total


def _crps_by_sum(distribution: Distribution, y: Tensor) -> Tensor:
    """The sum over whole numbers between the 1e-12 quantiles and y, each row's own, in blocks.

    Rows of more than 2^20 whole numbers: by quadrature, from which the sum differs by 1e-6.
    """
    low, span, narrow = _whole_span(distribution, y, y)
    total = torch.zeros_like(y)
    for x in _whole_numbers(low, span[narrow]):
        below = distribution.cdf(x)
        total = total + (torch.where(x < y, below, 1 - below) ** 2).sum(0)
    if bool(narrow.all()):
        return total
    return torch.where(narrow, total, _crps_by_quadrature(distribution, y))


def _entropy_by_quadrature(distribution: Distribution) -> Tensor:
    """-E[log p(F^{-1}(U))], with the mass at the lower end of the support by itself."""
    like = distribution.mean
    mass = torch.zeros_like(like)
    if distribution.lower > -math.inf:
        mass = distribution.cdf(torch.full_like(like, distribution.lower))
    nodes, weights = gauss("legendre", 64, like)
    # q = sin^2(pi u / 2): more nodes in the tails, where log p changes.
    level = torch.sin(0.5 * math.pi * nodes) ** 2
    slope = 0.5 * math.pi * torch.sin(math.pi * nodes)
    total = -torch.special.xlogy(mass, mass)
    for q, w in zip(level.tolist(), (weights * slope).tolist(), strict=True):
        y = distribution.icdf(mass + (1 - mass) * q)
        total = total - (1 - mass) * w * distribution.log_prob(y)
    return total


def _entropy_by_sum(distribution: Distribution) -> Tensor:
    """The sum over whole numbers between extreme quantiles, each row's own."""
    like = distribution.mean
    low, span, narrow = _whole_span(distribution, like)
    total = torch.zeros_like(like)
    for x in _whole_numbers(low, span[narrow]):
        log_p = distribution.log_prob(x)
        possible = log_p > -math.inf
        safe = torch.where(possible, log_p, 0.0)
        total = total - torch.where(possible, safe.exp() * safe, 0.0).sum(0)
    if bool(narrow.all()):
        return total
    return torch.where(narrow, total, _entropy_by_quadrature(distribution))


class _WholeSpan(NamedTuple):
    low: Tensor  # the smallest whole number that matters, a row's own
    span: Tensor  # how many follow
    narrow: Tensor  # where they are few enough to be added up


def _whole_span(distribution: Distribution, like: Tensor, y: Tensor | None = None) -> _WholeSpan:
    """The whole numbers between the 1e-12 quantiles, and y."""
    with torch.no_grad():
        tiny = max(1e-12, torch.finfo(like.dtype).eps)
        low = distribution.icdf(torch.full_like(like, tiny))
        high = distribution.icdf(torch.full_like(like, 1 - tiny))
        if y is not None:
            low, high = low.minimum(y.floor()), high.maximum(y.ceil())
    return _WholeSpan(low, high - low, high - low <= _SUMMED)


def _whole_numbers(low: Tensor, spans: Tensor) -> Iterator[Tensor]:
    """Blocks ``(block, ...)`` of the whole numbers from ``low`` on, as many as the longest span."""
    like, last = low, float(spans.max()) if spans.numel() else -1.0
    block = max(1, _SUMMED // max(like.numel(), 1))
    for start in torch.arange(0.0, last + 1, block).tolist():
        steps = torch.arange(start, min(start + block, last + 1), dtype=like.dtype)
        # past a row's own end there is next to nothing to add
        yield low + steps.to(like.device).reshape(-1, *(1,) * like.ndim)


def _few(value: Tensor) -> str:
    """The first three values of a tensor, to four digits."""
    flat = value.detach().reshape(-1)
    if value.is_meta:
        return f"meta{tuple(value.shape)}"
    shown = ", ".join(f"{v:.4g}" for v in flat[:3].tolist())
    return shown if not value.ndim else f"[{shown}{', ...' if len(flat) > 3 else ''}]"


def _log_difference(a: Tensor, b: Tensor) -> Tensor:
    """log(exp(a) - exp(b)) for a >= b, finite gradient where b is -inf."""
    gap = (a - b).clamp(min=0)
    gap = torch.where(b == -math.inf, torch.full_like(gap, math.inf), gap)
    # log(1 - exp(-gap)) loses digits for small gaps unless expm1 takes over (Maechler 2012).
    small = gap < math.log(2)
    inner = torch.where(small, torch.full_like(gap, 1.0), gap)
    outer = torch.where(small, gap, torch.ones_like(gap))
    return a + torch.where(small, (-torch.expm1(-outer)).log(), torch.log1p(-(-inner).exp()))


class VectorDistribution(Distribution):
    """Distributions of vectors of K numbers, one per element of ``batch_shape``.

    A distribution defines ``mean``, ``variance`` (of each number), ``log_prob``, ``sample`` and
    ``marginal``, the K univariate distributions of the single numbers. There is no order of
    vectors, hence no cdf and no quantile of the whole: ask the marginals.

    Shapes:
        - y: ``(..., K)``; ``log_prob(y)`` and ``energy_score(y)``: ``(...)``.
        - mean, variance, mode: ``(..., K)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import MultivariateNormal
        >>> d = MultivariateNormal(covariance="diagonal").distribution(torch.zeros(5, 4))
        >>> d.batch_shape, d.event_shape, d.marginal.batch_shape
        (torch.Size([5]), torch.Size([2]), torch.Size([5, 2]))
    """

    @property
    def batch_shape(self) -> torch.Size:
        """The shape of the batch; a sample has the event shape behind it."""
        return self.mean.shape[:-1]

    @property
    def event_shape(self) -> torch.Size:
        """(K,), the shape of one outcome."""
        return self.mean.shape[-1:]

    @property
    def marginal(self) -> Distribution:
        """The distribution of each of the K numbers by itself, with batch shape ``(..., K)``."""
        raise TypeError(f"{type(self).__name__} defines no marginals.")

    @property
    def entropy(self) -> Tensor:
        """E[-log p(Y)], where a closed form exists."""
        raise TypeError(f"{type(self).__name__} has no closed form of its entropy.")

    @property
    def median(self) -> Tensor:
        """The medians of the marginals, ``(..., K)``."""
        return self.mode if self.symmetric else self.marginal.median

    def cdf(self, y: Tensor) -> Tensor:
        """Undefined: vectors have no order."""
        raise TypeError(f"{type(self).__name__} is a distribution of vectors: use marginal.cdf.")

    def icdf(self, q: Tensor) -> Tensor:
        """Undefined: vectors have no order."""
        raise TypeError(f"{type(self).__name__} is a distribution of vectors: use marginal.icdf.")

    def crps(self, y: Tensor) -> Tensor:
        """Undefined for vectors, whose score is the energy score."""
        raise TypeError(
            f"{type(self).__name__} is a distribution of vectors: use energy_score, or "
            "marginal.crps for each number."
        )

    def rsample(
        self, shape: tuple[int, ...] = (), generator: torch.Generator | None = None
    ) -> Tensor:
        """The draws of ``sample``, differentiable in every parameter, where that is possible."""
        raise TypeError(f"{type(self).__name__} has no reparameterisation: use sample.")

    def interval(self, level: float) -> tuple[Tensor, Tensor]:
        """The equal-tailed interval of each number, ``(..., K)`` each.

        Every one holds ``level`` of the probability by itself; all K together hold less.
        """
        return self.marginal.interval(level)

    def energy_score(
        self, y: Tensor, draws: int = 1000, generator: torch.Generator | None = None
    ) -> Tensor:
        r"""The energy score of each outcome, by Monte Carlo: smaller is better.

        .. math:: E\|Y - y\| - \tfrac12 E\|Y - Y'\|

        with the Euclidean norm; for K = 1 it is the CRPS. Neighbouring draws stand for the
        independent pair Y, Y', which needs no double sum and has no bias. The error falls with the
        root of ``draws``. Without a generator a fixed one is used, so that the same distribution
        and outcome have the same score.

        References:
            Gneiting and Raftery (2007), Strictly proper scoring rules, section 4.3.
            https://doi.org/10.1198/016214506000001437
        """
        if draws < 2:
            raise ValueError(f"energy_score needs at least 2 draws, got {draws}.")
        if generator is None:
            generator = torch.Generator(self.mean.device).manual_seed(0)
        block = max(1, 2**20 // max(1, self.mean.numel()))
        near, apart = torch.zeros_like(y[..., 0]), torch.zeros_like(y[..., 0])
        with torch.no_grad():
            first = last = None
            for done in range(0, draws, block):
                x = self.sample((min(block, draws - done),), generator)
                near = near + (x - y).norm(dim=-1).sum(0)
                chain = x if last is None else torch.cat([last, x])
                apart = apart + chain.diff(dim=0).norm(dim=-1).sum(0)
                first, last = x[:1] if first is None else first, x[-1:]
            if first is not None and last is not None:  # close the ring: every draw is used twice
                apart = apart + (last - first).squeeze(0).norm(dim=-1)
            return near / draws - 0.5 * apart / draws
