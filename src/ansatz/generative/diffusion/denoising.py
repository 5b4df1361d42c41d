"""Denoising: the objective that trains a diffusion, and the network as an estimate of the start."""

import math
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from ansatz.data.batch import Batch
from ansatz.errors import UsageError
from ansatz.generative.diffusion.process import Process, Weight, broadcast
from ansatz.seeds import generator as seeded
from ansatz.training.objectives import Loss, weighted

Predict = Literal["noise", "start", "velocity", "score"]


def clock(process: Process, t: Tensor) -> Tensor:
    """Gives times as networks take them: from 0 to 1,000, as in checkpoints."""
    return t * (1000 / process.end) if process.steps != 1000 else t


def start_coefficients(
    process: Process, t: float | Tensor, predict: Predict
) -> tuple[Tensor, Tensor]:
    """The two numbers a, b of x_0 = a x + b output, for what the network predicts."""
    alpha, sigma = process.alpha(t), process.sigma(t)
    if predict == "noise":
        return 1 / alpha, -sigma / alpha
    if predict == "score":
        return 1 / alpha, sigma**2 / alpha
    if predict == "velocity":
        return alpha, -sigma
    return torch.zeros_like(alpha), torch.ones_like(alpha)


class Denoising(nn.Module):
    r"""The weighted squared error of a network that sees data through noise.

    .. math:: E_{t, \varepsilon}\, w_t \|\varepsilon - \hat\varepsilon(\alpha_t x_0
              + \sigma_t \varepsilon, t)\|^2

    The noise error follows from what is predicted: the noise itself, the start
    (:math:`\varepsilon - \hat\varepsilon = (\alpha/\sigma)(\hat x_0 - x_0)`), the velocity
    :math:`v = \alpha \varepsilon - \sigma x_0` (factor :math:`\alpha`) or the score
    :math:`-\varepsilon / \sigma`. With ``weight="simple"`` the error of what is predicted counts by
    itself (of the score, times :math:`\sigma`). The optimum is the expectation given x_t, whatever
    the weight. ``"snr"`` and ``"evidence"`` are those of :meth:`Process.weight`.

    In training times and noise come from torch's global generator, times stratified over the
    batch. In evaluation they are a function of the seed and the row's number.

    The network is called with ``(x, t)``, or ``(x, t, given)``; t runs from 0 to 1,000. In training
    a share ``drop`` of the conditions is replaced by zeros, which guidance needs. A condition must
    therefore differ from zeros: one-hot levels, or an indicator beside numbers.

    Args:
        process: the noising.
        predict: ``"noise"``, ``"start"``, ``"velocity"`` or ``"score"``.
        weight: ``"simple"``, ``"evidence"`` or ``"snr"``.
        drop: share of conditions that are hidden in training.
        seed: of evaluation.

    Shapes:
        - batch.inputs: x ``(B, ...)``, and the condition ``(B, G)`` if there is one.
        - returns: the sum over rows of the mean over coordinates.

    Example:
        >>> import torch
        >>> from ansatz.data import Batch
        >>> from ansatz.generative.diffusion import Denoising, Process
        >>> network = lambda x, t: torch.zeros_like(x)
        >>> x = torch.randn(2_000, 5)
        >>> loss = Denoising(Process("cosine")).eval()(network, Batch.of(x, x))
        >>> round((loss.total / loss.count).item(), 1)  # the mean square of noise
        1.0

    References:
        Ho, Jain and Abbeel (2020), Denoising diffusion probabilistic models, eq. 14; Salimans and
        Ho (2022), Progressive distillation, appendix D. https://arxiv.org/abs/2202.00512;
        Hang et al. (2023), Efficient diffusion training via min-SNR weighting, eq. 8.
        https://arxiv.org/abs/2303.09556
    """

    def __init__(
        self,
        process: Process,
        predict: Predict = "velocity",
        weight: Weight = "simple",
        *,
        drop: float = 0.1,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if predict not in get_args(Predict):
            known = ", ".join(get_args(Predict))
            raise UsageError(f"predict of Denoising must be one of {known}, got {predict!r}.")
        if weight not in get_args(Weight):
            known = ", ".join(get_args(Weight))
            raise UsageError(f"weight of Denoising must be one of {known}, got {weight!r}.")
        if process.terminal_snr == 0 and predict in ("noise", "score"):
            raise UsageError(
                f"without signal at the last time, {predict} does not determine the start; "
                "predict velocity or start."
            )
        if not 0 <= drop < 1:
            raise UsageError(f"drop of Denoising must be in [0, 1), got {drop}.")
        self.process, self.predict, self.weight = process, predict, weight
        self.drop, self.seed = drop, seed

    def forward(self, network: nn.Module, batch: Batch) -> Loss:
        """Computes the loss at one random time per row."""
        x, *given = batch.inputs
        if self.training:
            t, noise = self._times(torch.rand(()), len(x), x), torch.randn_like(x)
            if given and self.drop:
                hidden = torch.rand(len(x), 1, device=x.device) < self.drop
                given = [torch.where(hidden, torch.zeros_like(given[0]), given[0])]
        else:
            t, noise = self._fixed(batch.index, x)
        return weighted(self.errors(network, x, noise, t, *given), batch.weight)

    def errors(
        self,
        network: nn.Module,
        x: Tensor,
        noise: Tensor,
        t: Tensor,
        *given: Tensor | None,
        counted: Tensor | None = None,
    ) -> Tensor:
        """Computes the weighted mean square of each row, at given times and noise.

        ``counted`` marks the numbers whose errors count; all of them by default.
        """
        process = self.process
        seen = process.add_noise(x, noise, t)
        output = network(seen, clock(process, t).to(x.dtype), *given)
        if self.predict == "noise":
            error, factor = output - noise, torch.ones_like(t)
        elif self.predict == "start":
            error, factor = output - x, process.snr(t)
        elif self.predict == "velocity":
            error, factor = output - process.velocity(x, noise, t), process.alpha(t) ** 2
        else:
            error = broadcast(process.sigma(t), x) * output + noise
            factor = torch.ones_like(t)
        if counted is None:
            square: Tensor = error.flatten(1).square().mean(1)
        else:
            count = counted.flatten(1).sum(1).clamp(min=1)
            square = torch.where(counted, error, 0).flatten(1).square().sum(1) / count
        if self.weight == "simple":
            return square
        return square * (factor * self._weight(t)).to(square)

    def _weight(self, t: Tensor) -> Tensor:
        if self.weight != "evidence" or self.process.steps is None:
            return self.process.weight(t, self.weight)
        # The step to time 0 has no finite weight; its reconstruction error counts like the next.
        return self.process.weight(t.clamp(min=2), self.weight)

    def _times(self, first: Tensor, rows: int, x: Tensor) -> Tensor:
        """One time per row, stratified: u, u + 1/B, ... modulo 1."""
        share = (first.double() + torch.arange(rows, dtype=torch.float64) / rows) % 1
        if self.process.steps is not None:
            share = (share * self.process.steps).floor() + 1
        return share.clamp(min=1e-5).to(x.device)

    def _fixed(self, index: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        times, noise = [], []
        for row in index.tolist():
            draws = seeded(self.seed, "denoising", row)
            times.append(self._times(torch.rand((), generator=draws), 1, x))
            noise.append(torch.randn(x.shape[1:], generator=draws))
        return torch.cat(times), torch.stack(noise).to(x)


class NetworkDenoiser:
    r"""A trained network as E[x_0 | x_t], with classifier-free guidance.

    .. math:: f = f(x, t, \varnothing) + w\, \bigl(f(x, t, c) - f(x, t, \varnothing)\bigr)

    of what the network predicts. w = 0 ignores the condition, w = 1 follows it, more exaggerates
    it. Both evaluations are one batch.

    Args:
        network: called with ``(x, t)`` or ``(x, t, given)``.
        process: the noising that it was trained with.
        predict: what it predicts.
        given: conditions ``(B, G)``.
        guidance: w.
        bounds: lowest and highest value of the start; None for no bounds.

    Example:
        >>> import torch
        >>> from ansatz.generative.diffusion import NetworkDenoiser, Process
        >>> denoise = NetworkDenoiser(lambda x, t: x, Process("cosine"), "start")
        >>> denoise(torch.ones(2, 3), 0.5)
        tensor([[1., 1., 1.],
                [1., 1., 1.]])

    References:
        Ho and Salimans (2022), Classifier-free diffusion guidance, eq. 6; their weight is w - 1.
        https://arxiv.org/abs/2207.12598
    """

    def __init__(
        self,
        network: nn.Module,
        process: Process,
        predict: Predict = "velocity",
        *,
        given: Tensor | None = None,
        guidance: float = 1.0,
        bounds: tuple[float, float] | None = None,
    ) -> None:
        if given is None and guidance != 1.0:
            raise UsageError(
                f"guidance={guidance:g} needs a condition: a model with 'given', and its values."
            )
        if not math.isfinite(guidance):
            raise UsageError(f"guidance must be a finite number, got {guidance}.")
        self.network, self.process, self.predict = network, process, predict
        self.given, self.guidance, self.bounds = given, guidance, bounds
        self._known: dict[float, tuple[float, float]] = {}

    def __call__(self, x: Tensor, t: float) -> Tensor:
        """Estimates the start of every row."""
        if t not in self._known:
            a, b = start_coefficients(self.process, t, self.predict)
            self._known[t] = float(a), float(b)
        of_x, of_output = self._known[t]
        output = self.output(x, t)
        start = (x * of_x).add_(output, alpha=of_output) if of_x else output * of_output
        return start if self.bounds is None else start.clamp_(*self.bounds)

    def output(self, x: Tensor, t: float) -> Tensor:
        """Computes what the network predicts, guided."""
        time = float(clock(self.process, torch.tensor(t, dtype=torch.float64)))
        times = torch.full((len(x),), time, dtype=x.dtype, device=x.device)
        if self.given is None:
            return self.network(x, times)  # type: ignore[no-any-return]
        if self.guidance == 1:
            return self.network(x, times, self.given)  # type: ignore[no-any-return]
        none = torch.zeros_like(self.given)
        if self.guidance == 0:
            return self.network(x, times, none)  # type: ignore[no-any-return]
        both = self.network(
            x.repeat(2, *[1] * (x.ndim - 1)), times.repeat(2), torch.cat([none, self.given])
        )
        plain, told = both.chunk(2)
        return torch.lerp(plain, told, self.guidance)


class ScoreMatching(nn.Module):
    r"""Trains a network as the score of the data, without their density and without noise.

    .. math:: E_x\, \tfrac12 \|s(x)\|^2 + \operatorname{div} s(x)

    which is the Fisher divergence :math:`\tfrac12 E \|s - \nabla \log p\|^2` minus a number that
    does not depend on s. The divergence is exact, or the mean over ``draws`` random directions
    :math:`z^\top (\partial s / \partial x) z`.

    Args:
        draws: random directions; None for the exact divergence, D derivatives per row.
        seed: of the directions in evaluation.

    Example:
        >>> import torch
        >>> from ansatz.data import Batch
        >>> from ansatz.generative.diffusion import ScoreMatching
        >>> x = torch.randn(50_000, 1)
        >>> loss = ScoreMatching()(torch.nn.Linear(1, 1), Batch.of(x, x))
        >>> loss.count.item()
        50000.0

    References:
        Hyvärinen (2005), Estimation of non-normalized statistical models by score matching,
        theorem 1; Song et al. (2019), Sliced score matching. https://arxiv.org/abs/1905.07088
    """

    def __init__(self, draws: int | None = None, *, seed: int = 0) -> None:
        super().__init__()
        if draws is not None and draws < 1:
            raise UsageError(f"draws of ScoreMatching must be at least 1, got {draws}.")
        self.draws, self.seed = draws, seed

    def forward(self, network: nn.Module, batch: Batch) -> Loss:
        """Computes the sum over rows."""
        (x,) = batch.inputs
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            score = network(x)
            total = score.flatten(1).square().sum(1) / 2
            for direction, scale in self._directions(x):
                (slope,) = torch.autograd.grad(
                    (score * direction).sum(), x, create_graph=self.training, retain_graph=True
                )
                total = total + scale * (slope * direction).flatten(1).sum(1)
        return weighted(total, batch.weight)

    def _directions(self, x: Tensor) -> list[tuple[Tensor, float]]:
        if self.draws is None:
            units = torch.eye(x[0].numel(), dtype=x.dtype, device=x.device)
            return [(unit.reshape(x.shape[1:]).expand_as(x), 1.0) for unit in units]
        draws = None if self.training else seeded(self.seed, "directions")
        signs = torch.randint(0, 2, (self.draws, *x.shape), generator=draws).to(x) * 2 - 1
        return [(sign, 1 / self.draws) for sign in signs]
