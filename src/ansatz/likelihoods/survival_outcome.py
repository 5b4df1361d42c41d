"""Outcomes of survival studies: a time, what happened then, and when observation began."""

import math

import torch
from torch import Tensor

from ansatz.errors import DataError
from ansatz.likelihoods.likelihood import refuse_where


def survival_outcome(time: Tensor, event: Tensor, entry: Tensor | None = None) -> Tensor:
    """The rows (time, event, entry) that :class:`Cox` and :class:`DiscreteHazard` take.

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


def check_survival(likelihood: str, y: Tensor, causes: int = 1) -> None:
    """Refuses rows that are no (time, event, entry), naming the row and the value."""
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
