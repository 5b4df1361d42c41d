"""Outcomes of survival studies: times that were observed, or known up to an interval."""

import math
from typing import Any

import torch
from torch import Tensor

from ansatz.errors import DataError
from ansatz.likelihoods.support import refuse_where


def survival_outcome(time: Tensor, event: Tensor, entry: Tensor | None = None) -> Tensor:
    """Makes the rows (time, event, entry) that :class:`Cox` and :class:`DiscreteHazard` take.

    Args:
        time: ``(B,)``, of the event or of the end of observation.
        event: ``(B,)``, 0 where the row is censored, else 1, or the code of the cause.
        entry: ``(B,)``, the time after which the row was under observation. Default: always.

    Example:
        >>> import torch
        >>> survival_outcome(torch.tensor([3.0, 5.0]), torch.tensor([1, 0]))
        tensor([[3., 1., -inf],
                [5., 0., -inf]])
    """
    time = torch.as_tensor(time)
    if not time.is_floating_point():
        time = time.to(torch.get_default_dtype())
    event = torch.as_tensor(event).to(time)
    entry = torch.full_like(time, -math.inf) if entry is None else torch.as_tensor(entry).to(time)
    if not time.shape == event.shape == entry.shape:
        raise ValueError(
            f"time, event and entry need one entry per row, got {tuple(time.shape)}, "
            f"{tuple(event.shape)} and {tuple(entry.shape)}."
        )
    return torch.stack([time, event, entry], -1)


def check_survival(likelihood: str, y: Tensor, causes: int = 1, *, strata: bool = False) -> None:
    """Rejects rows that are not (time, event, entry), naming the row and the value.

    With ``strata``, rows may have the code of a stratum behind them.
    """
    if strata and y.ndim >= 2 and y.shape[-1] == 4:
        y = y[..., :3]
    if y.ndim < 2 or y.shape[-1] != 3:
        raise DataError(
            f"{likelihood} needs outcomes (time, event, entry), shape (B, 3), got "
            f"{tuple(y.shape)}. Make them with survival_outcome(time, event, entry)."
        )
    time, event, entry = y.unbind(-1)
    bad = ~(time.isfinite() & (time >= 0))
    refuse_where(bad, time, f"{likelihood} needs times >= 0", "Drop the row or repair the time.")
    codes = "0 (censored) or 1" if causes == 1 else f"0 (censored) to {causes}"
    advice = "For several kinds of events use discrete_hazard with causes=K."
    bad = ~((event == event.round()) & (event >= 0) & (event <= causes))
    refuse_where(bad, event, f"{likelihood} needs event codes {codes}", advice)
    # Nothing can happen before the entry; at the entry itself the row is not yet at risk.
    bad = ~(entry < time)
    advice = "Such a row was never at risk: drop it or repair its times."
    refuse_where(bad, entry, f"{likelihood} needs entry < time", advice)


def observed_time(y: Tensor) -> Tensor:
    """The time of each row (time, event, entry), nan where it is censored and not known."""
    return torch.where(y[..., 1] > 0, y[..., 0], math.nan)


def right_censored(time: Any, event: Any, entry: Any = None) -> Tensor:
    """Rows of :class:`Censored` for times that were observed, or are only known to be exceeded.

    Args:
        time: ``(B,)``, of the event or of the end of observation.
        event: ``(B,)``, 1 where the outcome is the time itself, 0 where it lies beyond.
        entry: ``(B,)``: rows came under observation only because Y > entry. Default: none.

    Shapes:
        - returns: ``(B, 3)``, (lower, upper, entry).

    Example:
        >>> import torch
        >>> right_censored(torch.tensor([3.0, 5.0]), torch.tensor([1, 0]))
        tensor([[3., 3., -inf],
                [5., inf, -inf]])
    """
    time = _float(time)
    event = torch.as_tensor(event).to(time.device)
    if event.shape == time.shape:
        bad = (event != 0) & (event != 1)
        advice = "Several kinds of events: discrete_hazard with causes=K."
        refuse_where(bad, event, "event must be 1, or 0 for censored", advice)
    return _stack(time, torch.where(event.bool(), time, math.inf), entry)


def interval_censored(lower: Any, upper: Any, entry: Any = None) -> Tensor:
    """Rows of :class:`Censored` for outcomes with lower < Y <= upper.

    Equal ends are an exact outcome; lower -inf is left-censored, upper inf right-censored; a
    missing (nan) end is an infinite one.

    Args:
        lower: ``(B,)``.
        upper: ``(B,)``.
        entry: ``(B,)``: rows came under observation only because Y > entry. Default: none.

    Shapes:
        - returns: ``(B, 3)``, (lower, upper, entry).

    Example:
        >>> import torch
        >>> interval_censored(torch.tensor([1.0, torch.nan]), torch.tensor([2.0, 4.0]))
        tensor([[1., 2., -inf],
                [-inf, 4., -inf]])
    """
    lower, upper = _float(lower), _float(upper)
    lower = torch.where(lower.isnan(), -math.inf, lower)
    upper = torch.where(upper.isnan(), math.inf, upper)
    return _stack(lower, upper, entry)


def _float(value: Any) -> Tensor:
    tensor = torch.as_tensor(value)
    return tensor if tensor.is_floating_point() else tensor.to(torch.get_default_dtype())


def _stack(lower: Tensor, upper: Tensor, entry: Any) -> Tensor:
    entry = torch.full_like(lower, -math.inf) if entry is None else _float(entry).to(lower)
    entry = torch.where(entry.isnan(), -math.inf, entry)
    if not lower.shape == upper.shape == entry.shape:
        raise ValueError(
            "bounds and entry need one entry per row, got "
            f"{tuple(lower.shape)}, {tuple(upper.shape)} and {tuple(entry.shape)}."
        )
    y = torch.stack([lower, upper.to(lower), entry], -1)
    check_bounds(y)
    return y


def check_bounds(y: Tensor) -> None:
    """Rejects rows that are not (lower, upper, entry), naming the row and the value."""
    if y.ndim < 2 or y.shape[-1] != 3:
        raise DataError(
            f"censored outcomes are (lower, upper, entry), shape (B, 3), got {tuple(y.shape)}. "
            "Make them with right_censored(time, event) or interval_censored(lower, upper)."
        )
    lower, upper, entry = y.unbind(-1)
    repair = "Drop the row or repair it."
    refuse_where(lower.isnan() | (lower == math.inf), lower, "lower must be a number", repair)
    refuse_where(upper.isnan() | (upper == -math.inf), upper, "upper must be a number", repair)
    refuse_where(entry.isnan() | (entry == math.inf), entry, "entry must be a number", repair)
    crossed = lower > upper
    end = upper[crossed][0].item() if bool(crossed.any()) else None
    refuse_where(crossed, lower, "lower must be <= upper", f"Its upper end is {end}.")
    # What is known must be possible beyond the entry.
    bad = torch.where(lower == upper, entry >= lower, entry >= upper)
    advice = "An outcome at or before its entry is never recorded: drop the row or repair it."
    refuse_where(bad, entry, "entry must lie before the outcome", advice)
