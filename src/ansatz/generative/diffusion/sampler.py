"""Samplers of a diffusion: rules that walk a list of times from noise to data."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.generative.diffusion.process import Process, checked_times
from ansatz.registry import Registry

Denoiser = Callable[[Tensor, float], Tensor]  # (x, t) -> E[x_0 | x_t = x]
Memory = tuple[Tensor, ...]  # what a rule remembers of the step before


class Level(NamedTuple):
    """Signal and noise at one time, as numbers."""

    t: float
    alpha: float
    sigma: float
    half_log_snr: float


class Sampler(Protocol):
    """The contract of a sampler: one step from a time to the next entry of its list.

    Example:
        >>> import torch
        >>> from ansatz.generative.diffusion import Process, samplers
        >>> process = Process("cosine")
        >>> sampler = samplers.create("ddim", process, process.times(4))
        >>> x, memory = sampler.start((2, 3), torch.Generator().manual_seed(0)), ()
        >>> for k in range(len(sampler)):
        ...     x, memory = sampler.step(k, x, lambda x, t: torch.zeros_like(x), memory)
        >>> x
        tensor([[0., 0., 0.],
                [0., 0., 0.]])
    """

    evaluations: int

    def __len__(self) -> int:
        """Counts the steps."""
        ...

    def start(self, shape: Sequence[int], generator: torch.Generator | None = None) -> Tensor:
        """Draws x at the first time."""
        ...

    def step(
        self,
        k: int,
        x: Tensor,
        denoise: Denoiser,
        memory: Memory = (),
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Memory]:
        """Goes from the k-th time to the next; returns x there and what to remember."""
        ...


class _Walk:
    """A list of times with what each step needs of the process, as plain numbers."""

    per_step = 1  # evaluations of the network
    stochastic = False

    def __init__(self, process: Process, times: Sequence[float]) -> None:
        self.process, self.times = process, checked_times(process, times)
        every = torch.tensor(self.times, dtype=torch.float64)
        alpha, sigma = process.alpha(every), process.sigma(every)
        half = process.log_snr(every) / 2
        rows = zip(self.times, alpha.tolist(), sigma.tolist(), half.tolist(), strict=True)
        self.levels = [Level(*row) for row in rows]

    def __len__(self) -> int:
        return len(self.times) - 1

    @property
    def evaluations(self) -> int:
        """Evaluations of the network over all steps."""
        return len(self) * self.per_step

    def start(self, shape: Sequence[int], generator: torch.Generator | None = None) -> Tensor:
        """Draws noise of variance 1, which nearly is the distribution of x at the last time."""
        return torch.randn(tuple(shape), generator=generator)

    def noise(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        """Draws noise like x."""
        drawn = torch.randn(x.shape, generator=generator, dtype=x.dtype)
        return drawn.to(x.device)


class DDPM(_Walk):
    r"""Draws each step back from the posterior, with the start replaced by its estimate D.

    .. math:: x_s = \tilde\mu(x_t, D) + \tilde\beta^{\,1-v} \beta^{\,v} \text{ as variance}, \qquad
              D = E[x_0 \mid x_t]

    Both ends of the variance are right for a special distribution of the data: :math:`\tilde\beta`
    (``variance=0``) for a single point, :math:`\beta` (1) for N(0, I). The last step, to time 0,
    adds no noise.

    Args:
        process: the noising.
        times: falling times; each step goes to the next entry.
        variance: v, between 0 and 1.

    Example:
        >>> from ansatz.generative.diffusion import DDPM, Process
        >>> process = Process("linear", steps=1000)
        >>> len(DDPM(process, process.times(50)))
        50

    References:
        Ho, Jain and Abbeel (2020), Denoising diffusion probabilistic models, algorithm 2; Nichol
        and Dhariwal (2021), Improved DDPM, eq. 15. https://arxiv.org/abs/2102.09672
    """

    stochastic = True

    def __init__(self, process: Process, times: Sequence[float], *, variance: float = 0.0) -> None:
        super().__init__(process, times)
        if not 0 <= variance <= 1:
            raise UsageError(f"variance of ddpm must be between 0 and 1, got {variance}.")
        self._steps: list[tuple[float, float, float]] = []
        for now, later in pairwise(self.levels):
            total = float(process.step_variance(now.t, later.t))
            small = total * later.sigma**2 / now.sigma**2
            of_start = later.alpha * total / now.sigma**2
            of_x = (now.alpha / later.alpha) * later.sigma**2 / now.sigma**2
            wide = small ** (1 - variance) * total**variance if later.t else 0.0
            self._steps.append((of_x, of_start, math.sqrt(wide)))

    def step(
        self,
        k: int,
        x: Tensor,
        denoise: Denoiser,
        memory: Memory = (),
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Memory]:
        """One step: posterior mean, and noise."""
        of_x, of_start, deviation = self._steps[k]
        mean = (x * of_x).add_(denoise(x, self.times[k]), alpha=of_start)
        if deviation:
            mean.add_(self.noise(x, generator), alpha=deviation)
        return mean, ()


class DDIM(_Walk):
    r"""Goes on with the estimated start and noise: deterministic, or with some fresh noise.

    .. math:: x_s = \alpha_s D + \sqrt{\sigma_s^2 - \eta^2 \tilde\beta}\; \hat\varepsilon
              + \eta \sqrt{\tilde\beta}\, z, \qquad \hat\varepsilon = (x_t - \alpha_t D) / \sigma_t

    ``eta=0`` draws nothing; ``eta=1`` is DDPM with the variance :math:`\tilde\beta`. Each step goes
    to the next entry of the list of times, whatever its distance.

    Args:
        process: the noising.
        times: falling times.
        eta: share of fresh noise.

    Example:
        >>> from ansatz.generative.diffusion import DDIM, Process
        >>> len(DDIM(Process("cosine"), [1.0, 0.6, 0.3, 0.0]))
        3

    References:
        Song, Meng and Ermon (2021), Denoising diffusion implicit models, eq. 12.
        https://arxiv.org/abs/2010.02502
    """

    def __init__(self, process: Process, times: Sequence[float], *, eta: float = 0.0) -> None:
        super().__init__(process, times)
        if not 0 <= eta <= 1:
            raise UsageError(f"eta of ddim must be between 0 and 1, got {eta}.")
        self.stochastic = eta > 0
        self._steps: list[tuple[float, float, float]] = []
        for now, later in pairwise(self.levels):
            fresh = eta * math.sqrt(float(process.posterior_variance(now.t, later.t)))
            of_x = math.sqrt(max(later.sigma**2 - fresh**2, 0.0)) / now.sigma
            self._steps.append((of_x, later.alpha - of_x * now.alpha, fresh))

    def step(
        self,
        k: int,
        x: Tensor,
        denoise: Denoiser,
        memory: Memory = (),
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Memory]:
        """One step: the estimated start and noise, mixed anew."""
        of_x, of_start, fresh = self._steps[k]
        found = (x * of_x).add_(denoise(x, self.times[k]), alpha=of_start)
        if fresh:
            found.add_(self.noise(x, generator), alpha=fresh)
        return found, ()


class Euler(_Walk):
    r"""Follows the probability flow by Euler's method in the angle between data and noise.

    With :math:`\alpha = \cos\varphi`, :math:`\sigma = \sin\varphi`, the flow that has the marginal
    distributions of the process is

    .. math:: \frac{dx}{d\varphi} = v(x, \varphi) = \cos\varphi\, \hat\varepsilon - \sin\varphi\, D

    which has no singular end. DDIM is the rotation whose derivative this step takes.

    Args:
        process: the noising.
        times: falling times.

    Example:
        >>> from ansatz.generative.diffusion import Euler, Process
        >>> Euler(Process("cosine"), [1.0, 0.5, 0.0]).evaluations
        2

    References:
        Song et al. (2021), Score-based generative modeling through stochastic differential
        equations, eq. 13. https://arxiv.org/abs/2011.13456
    """

    def step(
        self,
        k: int,
        x: Tensor,
        denoise: Denoiser,
        memory: Memory = (),
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Memory]:
        """One step along the velocity."""
        turn = _angle(self.levels[k + 1]) - _angle(self.levels[k])
        return x + turn * self._velocity(k, x, denoise), ()

    def _velocity(self, k: int, x: Tensor, denoise: Denoiser) -> Tensor:
        _, alpha, sigma, _ = self.levels[k]
        # cos (x - cos D) / sin - sin D = (cos x - D) / sin
        return (x * (alpha / sigma)).sub_(denoise(x, self.times[k]), alpha=1 / sigma)


class Heun(Euler):
    r"""Follows the probability flow by Heun's method: the mean of the velocities at both ends.

    Second order, with two evaluations per step; the last step, to time 0, is one of Euler's.

    Args:
        process: the noising.
        times: falling times.

    Example:
        >>> from ansatz.generative.diffusion import Heun, Process
        >>> Heun(Process("cosine"), [1.0, 0.5, 0.0]).evaluations
        3

    References:
        Karras et al. (2022), Elucidating the design space of diffusion-based generative models,
        algorithm 1. https://arxiv.org/abs/2206.00364
    """

    @property
    def evaluations(self) -> int:
        """Evaluations of the network over all steps."""
        return 2 * len(self) - (self.times[-1] == 0)

    def step(
        self,
        k: int,
        x: Tensor,
        denoise: Denoiser,
        memory: Memory = (),
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Memory]:
        """One step along the mean velocity."""
        turn = _angle(self.levels[k + 1]) - _angle(self.levels[k])
        here = self._velocity(k, x, denoise)
        there = x + turn * here
        if self.times[k + 1] == 0:
            return there, ()
        return x + turn / 2 * (here + self._velocity(k + 1, there, denoise)), ()


class ReverseSDE(_Walk):
    r"""Solves the reverse stochastic differential equation by Euler and Maruyama's method.

    .. math:: dx = \bigl(-\tfrac12 \beta x - \beta \nabla \log q_t(x)\bigr) dt
              + \sqrt{\beta}\, d\bar w

    backwards in time. A step from t to s has
    :math:`B = \int_s^t \beta = \log \bar\alpha_s - \log \bar\alpha_t` and is
    :math:`x_s = x_t + B (\tfrac12 x_t + \nabla \log q) + \sqrt{B} z`, with no noise in a step to
    time 0. Its steps must be small: hundreds of evaluations.

    Args:
        process: the noising, without ``zero_terminal``.
        times: falling times.

    Example:
        >>> from ansatz.generative.diffusion import Process, ReverseSDE
        >>> process = Process("linear")
        >>> ReverseSDE(process, process.times(500)).stochastic
        True

    References:
        Song et al. (2021), Score-based generative modeling through stochastic differential
        equations, eq. 6. https://arxiv.org/abs/2011.13456
    """

    stochastic = True

    def __init__(self, process: Process, times: Sequence[float]) -> None:
        super().__init__(process, times)
        if self.levels[0].alpha == 0:
            raise UsageError("reverse_sde needs some signal at the first time: start it later.")

    def step(
        self,
        k: int,
        x: Tensor,
        denoise: Denoiser,
        memory: Memory = (),
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Memory]:
        """One step of drift and noise."""
        now, later = self.levels[k], self.levels[k + 1]
        total = 2 * (math.log(later.alpha) - math.log(now.alpha))
        pull = total / now.sigma**2  # the score is (alpha D - x) / sigma^2
        found = (x * (1 + total / 2 - pull)).add_(denoise(x, now.t), alpha=pull * now.alpha)
        if later.t:
            found.add_(self.noise(x, generator), alpha=math.sqrt(total))
        return found, ()


class DPM2M(_Walk):
    r"""The second-order multistep solver: one evaluation per step, extrapolated from the last two.

    With :math:`\lambda = \log(\alpha / \sigma)` and :math:`h = \lambda_s - \lambda_t`,

    .. math:: x_s = \frac{\sigma_s}{\sigma_t} x_t - \alpha_s (e^{-h} - 1) D', \qquad
              D' = D + \frac{h}{2 h_\text{before}} (D - D_\text{before})

    The first step, and the last one when it goes to time 0, use D itself.

    Args:
        process: the noising.
        times: falling times.

    Example:
        >>> from ansatz.generative.diffusion import DPM2M, Process
        >>> process = Process("cosine")
        >>> DPM2M(process, process.times(20, "snr")).evaluations
        20

    References:
        Lu et al. (2023), DPM-Solver++, algorithm 2. https://arxiv.org/abs/2211.01095
    """

    def step(
        self,
        k: int,
        x: Tensor,
        denoise: Denoiser,
        memory: Memory = (),
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Memory]:
        """One step with the extrapolated start."""
        now, later = self.levels[k], self.levels[k + 1]
        start = denoise(x, now.t)
        of_x = later.sigma / now.sigma
        of_start = later.alpha - of_x * now.alpha  # = -alpha_s (exp(-h) - 1)
        found = (x * of_x).add_(start, alpha=of_start)
        ratio = _step_ratio(self.levels, k)
        if memory and ratio:
            found.add_(start, alpha=of_start * ratio).sub_(memory[0], alpha=of_start * ratio)
        return found, (start,)


samplers = Registry(
    "sampler",
    {
        "ddim": DDIM,
        "ddpm": DDPM,
        "dpm2m": DPM2M,
        "euler": Euler,
        "heun": Heun,
        "normal_exact": "ansatz.generative.diffusion.normal_exact:NormalExact",
        "reverse_sde": ReverseSDE,
    },
)


@torch.no_grad()
def draw(
    sampler: Sampler,
    denoise: Denoiser,
    shape: Sequence[int],
    *,
    generator: torch.Generator | None = None,
    start: Tensor | None = None,
) -> Tensor:
    """Walks a sampler through all its times, from noise to data.

    Args:
        sampler: one of ``samplers``, made for a list of times.
        denoise: ``(x, t) -> E[x_0 | x_t = x]``.
        shape: of x.
        generator: where all noise is drawn from.
        start: x at the first time, in place of a draw.

    Example:
        >>> import torch
        >>> from ansatz.generative.diffusion import Process, draw, samplers
        >>> process = Process("cosine")
        >>> points = lambda x, t: x.sign()  # data at -1 and 1, nearly
        >>> sampler = samplers.create("ddim", process, process.times(5))
        >>> draw(sampler, points, (4,), generator=torch.Generator().manual_seed(0)).abs()
        tensor([1., 1., 1., 1.])
    """
    x = sampler.start(shape, generator) if start is None else start
    memory: Memory = ()
    for k in range(len(sampler)):
        x, memory = sampler.step(k, x, denoise, memory, generator)
    return x


def _angle(level: Level) -> float:
    return math.atan2(level.sigma, level.alpha)


def _step_ratio(levels: list[Level], k: int) -> float:
    """Half the ratio of this step's length in lambda to the last one's; 0 where unbounded."""
    if k == 0:
        return 0.0
    before, now, later = (level.half_log_snr for level in levels[k - 1 : k + 2])
    if math.isinf(later) or math.isinf(before):
        return 0.0
    return (later - now) / (2 * (now - before))
