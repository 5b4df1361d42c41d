"""Outcomes that are known up to an interval: (lower, upper, entry)."""

import math
from typing import Any

import torch
from torch import Tensor

from ansatz.errors import DataError
from ansatz.likelihoods.likelihood import refuse_where


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
    """Refuses rows that are no (lower, upper, entry), naming the row and the value."""
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
