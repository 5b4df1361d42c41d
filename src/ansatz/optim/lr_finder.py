"""The learning rate finder: sweeps over rates on copies of a network."""

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ansatz.errors import NumericalError, UsageError
from ansatz.seeds import derive


@dataclass(frozen=True)
class LearningRateCurve:
    """The training loss as the rate grows, over several sweeps.

    Args:
        rates: ``(T,)``, geometric.
        losses: ``(S, T)``, smoothed; nan after a sweep has diverged.
        suggestions: one rate per sweep.

    Example:
        >>> import torch
        >>> from ansatz.optim import LearningRateCurve
        >>> losses = torch.tensor([[2.0, 1.0, 5.0], [2.0, 1.0, 5.0]])
        >>> curve = LearningRateCurve(torch.tensor([0.01, 0.1, 1.0]), losses, (0.03, 0.05))
        >>> round(curve.suggestion, 4), [round(end, 4) for end in curve.range]
        (0.0387, [0.03, 0.05])
    """

    rates: Tensor
    losses: Tensor
    suggestions: tuple[float, ...]

    @property
    def suggestion(self) -> float:
        """The suggested rate: the geometric mean over the sweeps."""
        logs = [math.log(rate) for rate in self.suggestions]
        return math.exp(sum(logs) / len(logs))

    @property
    def range(self) -> tuple[float, float]:
        """The smallest and the largest suggestion: how sure the sweeps are."""
        return min(self.suggestions), max(self.suggestions)

    def plot(self, target: Any = None) -> Any:
        """Draws the curve into a file (str or Path), onto given axes, or onto new ones."""
        from matplotlib.figure import Figure

        drawn = target is not None and not isinstance(target, (str, Path))
        figure = None if drawn else Figure(figsize=(6, 4), layout="constrained")
        axes = target if figure is None else figure.add_subplot()
        for sweep in self.losses:
            axes.plot(self.rates.numpy(), sweep.numpy(), color="tab:blue", alpha=0.35, lw=1)
        middle = self.losses.nanmedian(0).values
        axes.plot(self.rates.numpy(), middle.numpy(), color="tab:blue", lw=2, label="median loss")
        low, high = self.range
        axes.axvspan(low, high, color="tab:orange", alpha=0.25, lw=0)
        label = f"suggestion {self.suggestion:.2g} ({low:.2g} to {high:.2g})"
        axes.axvline(self.suggestion, color="tab:orange", label=label)
        # What comes after divergence would flatten all that matters.
        first, least = float(middle[0]), float(middle[~middle.isnan()].min())
        axes.set_ylim(least - 0.1 * (first - least), first + 0.5 * (first - least))
        axes.set(xscale="log", xlabel="learning rate", ylabel="training loss (smoothed)")
        axes.legend(loc="upper left", frameon=False)
        if figure is not None and target is not None:
            figure.savefig(target)
        return axes


def find_learning_rate(
    network: nn.Module,
    objective: nn.Module,
    source: Any,
    *,
    optimizer: Callable[..., torch.optim.Optimizer] | None = None,
    lowest: float = 1e-6,
    highest: float = 10.0,
    steps: int = 100,
    sweeps: int = 3,
    seed: int = 0,
) -> LearningRateCurve:
    r"""Trains copies at growing rates, and finds the rate at which the loss falls fastest.

    .. math:: \eta_t = \eta_0 (\eta_T / \eta_0)^{t/T}

    The suggestion of a sweep is the rate at the steepest fall of the smoothed loss per decade,
    before its minimum. Several sweeps over other batches say how much that is worth. The network,
    the objective and every random state are left as they were.

    Args:
        network: to be trained; only copies of it are.
        objective: ``objective(network, batch) -> Loss(total, count)``.
        source: gives the batches of epochs 0, 1, ...
        optimizer: ``optimizer(parameters, lr=...)``; AdamW when not given.
        lowest: the first rate.
        highest: the last one; a sweep ends before it where the loss has grown fourfold.
        steps: rates per sweep.
        sweeps: how often.
        seed: of dropout in the sweeps.

    Example:
        >>> import torch
        >>> from ansatz.data import Batch, TensorSource
        >>> from ansatz.likelihoods import Normal
        >>> from ansatz.optim import find_learning_rate
        >>> from ansatz.training import Supervised
        >>> x = torch.randn(64, 3)
        >>> source = TensorSource(Batch.of(x, x.sum(1)), 16)
        >>> likelihood = Supervised(Normal(dispersion=1.0))
        >>> curve = find_learning_rate(torch.nn.Linear(3, 1), likelihood, source)
        >>> 1e-4 < curve.suggestion < 10
        True

    References:
        Smith (2017), Cyclical learning rates for training neural networks, section 3.3.
        https://arxiv.org/abs/1506.01186
    """
    if not 0 < lowest < highest < math.inf:
        raise UsageError(f"rates must satisfy 0 < lowest < highest, got {lowest} and {highest}.")
    if steps < 20 or sweeps < 1:
        raise UsageError(f"needs steps >= 20 and sweeps >= 1, got {steps} and {sweeps}.")
    rates = torch.logspace(math.log10(lowest), math.log10(highest), steps, dtype=torch.float64)
    make = optimizer or torch.optim.AdamW
    losses = []
    for number in range(sweeps):
        with torch.random.fork_rng(devices=_devices(network)):
            torch.manual_seed(derive(seed, "learning rate", number))
            losses.append(_sweep(network, objective, _endless(source, number), make, rates))
    smooth = torch.stack([_smoothed(sweep) for sweep in losses])
    suggestions = tuple(_steepest(rates, sweep) for sweep in smooth)
    return LearningRateCurve(rates, smooth, suggestions)


def _sweep(
    network: nn.Module,
    objective: nn.Module,
    batches: Iterator[Any],
    make: Callable[..., torch.optim.Optimizer],
    rates: Tensor,
) -> Tensor:
    """The batch loss before each update; nan from where it stops being finite or has exploded."""
    network, objective = copy.deepcopy(network).train(), copy.deepcopy(objective).train()
    parameters = [p for m in (network, objective) for p in m.parameters() if p.requires_grad]
    rule = make(parameters, lr=float(rates[0]))
    losses = torch.full_like(rates, math.nan)
    first, least = math.nan, math.inf
    for number, rate in enumerate(rates.tolist()):
        for group in rule.param_groups:
            group["lr"] = rate
        total, count = objective(network, next(batches))
        loss = float((total / count).detach())
        first, least = (loss if number == 0 else first), min(least, loss)
        if not math.isfinite(loss) or loss - least > 3 * max(abs(first - least), abs(least), 1e-12):
            break
        losses[number] = loss
        rule.zero_grad()
        (total / count).backward()
        rule.step()
    return losses


def _smoothed(losses: Tensor) -> Tensor:
    """A centred moving average over a tenth of the sweep; nan where the sweep had ended."""
    known = losses[~losses.isnan()]
    half = max(1, len(losses) // 20)
    smooth = torch.full_like(losses, math.nan)
    for i in range(len(known)):
        smooth[i] = known[max(0, i - half) : i + half + 1].mean()
    return smooth


def _steepest(rates: Tensor, smooth: Tensor) -> float:
    known = smooth[~smooth.isnan()]
    if len(known) < 5:
        raise NumericalError(
            f"the loss diverged at once, at the rate {rates[len(known) - 1]:.2g}; "
            "lower `lowest`, or check the inputs' scale."
        )
    lowest = int(known.argmin())
    # The noise of one batch against the next, from the stretch where the rate is too small to act.
    calm = known[: max(3, len(known) // 4)]
    noise = float((calm[1:] - calm[:-1]).abs().mean())
    fall = float(known[: lowest + 1].max() - known[lowest]) if lowest else 0.0
    if lowest < 2 or fall <= 3 * noise:
        raise NumericalError(
            f"the loss never falls clearly between the rates {rates[0]:.2g} and {rates[-1]:.2g} "
            "(its fall is within the noise of the batches); no rate can be suggested. Check that "
            "the inputs are standardised and the outcome matches the likelihood, or use larger "
            "batches."
        )
    width = max(1, len(rates) // 20)
    start = torch.arange(lowest).clamp(min=width)
    slope = known[(start + width).clamp(max=lowest)] - known[start - width]
    return float(rates[start[int(slope.argmin())]])


def _endless(source: Any, first: int) -> Iterator[Any]:
    epoch = 1000 * first  # other batches in each sweep
    while True:
        before = epoch
        for batch in source.batches(epoch):
            yield batch
            before = epoch + 1
        if before == epoch:
            raise UsageError("the source has no batches.")
        epoch += 1


def _devices(network: nn.Module) -> list[int]:
    return sorted({p.device.index or 0 for p in network.parameters() if p.device.type == "cuda"})
