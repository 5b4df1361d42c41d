"""Metrics of survival curves: Brier scores and calibration with censored times."""

from typing import Any, NamedTuple

import torch
from scipy import stats
from torch import Tensor

from ansatz.arrays import takes_arrays
from ansatz.errors import DataError
from ansatz.metrics.kaplan_meier import kaplan_meier
from ansatz.metrics.weights import row_mean, row_weight


@takes_arrays
def brier_survival(
    survival: Tensor,
    times: Tensor,
    time: Tensor,
    event: Tensor,
    train_time: Tensor,
    train_event: Tensor,
    *,
    weight: Tensor | None = None,
    train_weight: Tensor | None = None,
) -> Tensor:
    r"""Computes the Brier score of survival curves at each time, as if nobody had been censored.

    .. math:: BS(t) = \frac{1}{n} \sum_i \left( \frac{S_i(t)^2\, 1[t_i \le t, d_i = 1]}{G(t_i^-)}
              + \frac{(1 - S_i(t))^2\, 1[t_i > t]}{G(t)} \right)

    with G the Kaplan-Meier curve of the *censoring* in the training rows. Each row whose state at
    t is known stands for those like it that were censored before. Censoring must be independent
    of x. A curve that is 1/2 everywhere scores 1/4.

    Args:
        survival: ``(N, T)``, S_i(t).
        times: ``(T,)``, the t.
        time: ``(N,)``, of the event or of the end of observation.
        event: ``(N,)``, 1 (any code but 0), or 0 for censored.
        train_time: ``(M,)`` of the training rows, for G.
        train_event: ``(M,)``.
        weight: ``(N,)`` frequency weights.
        train_weight: ``(M,)``.

    Shapes:
        - returns: ``(T,)``.

    Example:
        >>> import torch
        >>> from ansatz.metrics import brier_survival
        >>> time, event = torch.tensor([1.0, 2.0, 3.0]), torch.ones(3)
        >>> half = torch.full((3, 1), 0.5)
        >>> brier_survival(half, torch.tensor([1.5]), time, event, time, event)
        tensor([0.2500], dtype=torch.float64)

    References:
        Graf et al. (1999), Assessment and comparison of prognostic classification schemes for
        survival data. Statistics in Medicine 18.
    """
    return row_mean(
        brier_rows(
            *(survival, times, time, event, train_time, train_event),
            weight=weight,
            train_weight=train_weight,
        ),
        weight,
    )


def brier_rows(
    survival: Tensor,
    times: Tensor,
    time: Tensor,
    event: Tensor,
    train_time: Tensor,
    train_event: Tensor,
    *,
    weight: Tensor | None = None,
    train_weight: Tensor | None = None,
) -> Tensor:
    """Each row's term of :func:`brier_survival` at each time, ``(N, T)``."""
    if survival.shape != (len(time), len(times)):
        raise ValueError(
            f"brier_survival needs curves ({len(time)}, {len(times)}), got {tuple(survival.shape)}."
        )
    survival, times, time = survival.double(), times.double(), time.double()
    censoring = kaplan_meier(train_time, (train_event == 0).long(), train_weight)
    alive = time.unsqueeze(1) > times  # (N, T)
    dead = ~alive & (event > 0).unsqueeze(1)
    # A censored row at an event's time leaves after it: the chance to see the event is G(t-).
    then, now = censoring.before(time).unsqueeze(1), censoring.at(times)
    lost = (dead & (then <= 0)) | (alive & (now <= 0))
    lost = lost & (row_weight(time, weight) > 0).unsqueeze(1)
    if bool(lost.any()):
        first = float(times[lost.any(0)][0])
        raise DataError(
            f"all training rows are censored or gone by time {first}: the Brier score cannot be "
            "weighted there. Evaluate at earlier times."
        )
    terms = torch.where(dead, survival**2 / then.clamp(min=1e-300), 0.0)
    return torch.where(alive, (1 - survival) ** 2 / now.clamp(min=1e-300), terms)


@takes_arrays
def integrated_brier(
    survival: Tensor,
    times: Tensor,
    time: Tensor,
    event: Tensor,
    train_time: Tensor,
    train_event: Tensor,
    *,
    weight: Tensor | None = None,
    train_weight: Tensor | None = None,
) -> Tensor:
    r"""Averages :func:`brier_survival` over the span of ``times``, by the trapezoid rule.

    .. math:: IBS = \frac{1}{t_T - t_1} \int_{t_1}^{t_T} BS(t)\, dt

    The arguments are those of :func:`brier_survival`, with at least two increasing times.

    Example:
        >>> import torch
        >>> from ansatz.metrics import integrated_brier
        >>> time, event = torch.tensor([1.0, 2.0, 3.0]), torch.ones(3)
        >>> half, times = torch.full((3, 2), 0.5), torch.tensor([1.0, 2.0])
        >>> integrated_brier(half, times, time, event, time, event).item()
        0.25
    """
    if len(times) < 2 or bool((times.diff() <= 0).any()):
        raise ValueError(f"integrated_brier needs at least two increasing times, got {times}.")
    arguments = survival, times, time, event, train_time, train_event
    score = brier_survival(*arguments, weight=weight, train_weight=train_weight)
    return torch.trapezoid(score, times.double()) / (times[-1] - times[0]).double()


@takes_arrays
def brier_skill(
    survival: Tensor,
    times: Tensor,
    time: Tensor,
    event: Tensor,
    train_time: Tensor,
    train_event: Tensor,
    *,
    weight: Tensor | None = None,
    train_weight: Tensor | None = None,
) -> Tensor:
    r"""Computes 1 - IBS / IBS of the training rows' Kaplan-Meier curve; 1 is perfect.

    The arguments are those of :func:`integrated_brier`.

    Example:
        >>> import torch
        >>> from ansatz.metrics import brier_skill
        >>> time, event = torch.tensor([1.0, 2.0, 3.0]), torch.ones(3)
        >>> times = torch.tensor([1.0, 2.0])
        >>> brier_skill((time.unsqueeze(1) > times).float(), times, time, event, time, event).item()
        1.0
    """
    known = train_time, (train_event > 0).long()
    curve = kaplan_meier(*known, train_weight).at(times.double())
    arguments = times, time, event, train_time, train_event
    options: dict[str, Any] = {"weight": weight, "train_weight": train_weight}
    reference = integrated_brier(curve.expand(len(time), -1), *arguments, **options)
    return 1 - integrated_brier(survival, *arguments, **options) / reference


class DCalibration(NamedTuple):
    """Shares of rows by their own survival probability at their time, and the test of equality."""

    shares: Tensor  # (bins,), from S near 0 to S near 1; each should be 1 / bins
    statistic: float
    p_value: float


@takes_arrays
def d_calibration(
    survival: Tensor, event: Tensor, weight: Tensor | None = None, bins: int = 10
) -> DCalibration:
    r"""Tests whether the predicted probabilities of living beyond one's own time are uniform.

    If the curves are right, :math:`S_i(T_i)` is uniform on [0, 1]. A row censored at c with
    :math:`s = S_i(c)` is known to lie in [0, s] and is distributed evenly over it. Pearson's
    chi-square of the shares with bins - 1 degrees of freedom (an approximation, conservative with
    censored rows); the shares are the effect, the p-value comes second.

    Args:
        survival: ``(N,)``, S_i at the time of each row.
        event: ``(N,)``, 1 (any code but 0), or 0 for censored.
        weight: ``(N,)`` frequency weights.
        bins: how many equal bins of [0, 1].

    Example:
        >>> import torch
        >>> from ansatz.metrics import d_calibration
        >>> d_calibration(torch.tensor([0.1, 0.6]), torch.tensor([1, 0]), bins=2).shares
        tensor([0.9167, 0.0833], dtype=torch.float64)

    References:
        Haider et al. (2020), Effective ways to build and evaluate individual survival
        distributions. JMLR 21. https://jmlr.org/papers/v21/18-772.html
    """
    if not (survival.shape == event.shape and survival.ndim == 1):
        raise ValueError(
            f"d_calibration needs one probability and one event per row, got "
            f"{tuple(survival.shape)} and {tuple(event.shape)}."
        )
    weight, s = row_weight(survival, weight), survival.double()
    bad = ~((s >= 0) & (s <= 1)) & (weight > 0)
    if bool(bad.any()):
        row = int(bad.nonzero()[0])
        raise ValueError(f"survival must be probabilities, got {s[row].item()} in row {row}.")
    edges = torch.linspace(0, 1, bins + 1, dtype=torch.float64, device=s.device)
    place = (s * bins).long().clamp(max=bins - 1).unsqueeze(1)
    exact = torch.zeros(len(s), bins, dtype=torch.float64, device=s.device).scatter(1, place, 1.0)
    covered = (s.unsqueeze(1) - edges[:-1]).clamp(0, 1 / bins)
    even = covered / s.clamp(min=1e-300).unsqueeze(1)
    rows = torch.where(((event > 0) | (s <= 0)).unsqueeze(1), exact, even)
    shares = row_mean(rows, weight)
    total = weight.sum()
    statistic = float(total * bins * ((shares - 1 / bins) ** 2).sum())
    return DCalibration(shares, statistic, float(stats.chi2.sf(statistic, bins - 1)))
