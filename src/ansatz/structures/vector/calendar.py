"""Dates as waves by whole-number arithmetic, for graphs that know no calendar."""

import math

import torch
from torch import Tensor

NO_DATE = -(2**63)  # what NumPy makes of a date that is missing
_DAY = 86_400_000_000  # microseconds


def date_waves(time: Tensor) -> Tensor:
    """What :func:`ansatz.data.dates.date_parts` computes, from microseconds since 1970, UTC.

    Args:
        time: ``(N,)`` int64; -2**63 where missing.

    Shapes:
        - returns: ``(N, 7)`` double: trend, then sine and cosine of year, week and day.
    """
    missing = time == NO_DATE
    time = torch.where(missing, 0, time)
    rest = torch.remainder(time, _DAY)
    day = _divide(time - rest, _DAY)
    in_day = rest.double() / _DAY
    days = day.double() + in_day
    in_week = torch.remainder(day, 7).double() + in_day
    phases = [(day_of_year(day).double() + in_day) / 365.25, in_week / 7.0, in_day]
    # A tensor: torch writes Python's own numbers to a graph in single precision.
    circle = torch.tensor(2 * math.pi, dtype=torch.float64)
    waves = [wave(circle * phase) for phase in phases for wave in (torch.sin, torch.cos)]
    return torch.where(missing.unsqueeze(1), torch.nan, torch.stack([days, *waves], 1))


def day_of_year(day: Tensor) -> Tensor:
    """Days since January 1st, from days since 1970-01-01, in the Gregorian calendar.

    Years are counted from March 1st, so that a leap day is the last of its year; 400 of them
    have 146,097 days.

    Args:
        day: int64.
    """
    day = day + 719_468  # days since March 1st of the year 0
    in_era = torch.remainder(day, 146_097)
    era = _divide(day - in_era, 146_097)
    shorter = _divide(in_era, 1460) - _divide(in_era, 36_524) + _divide(in_era, 146_096)
    year = _divide(in_era - shorter, 365)  # of the era, 0..399
    since_march = in_era - (365 * year + _divide(year, 4) - _divide(year, 100))
    year = year + 400 * era
    fourth, century = torch.remainder(year, 4) == 0, torch.remainder(year, 100) == 0
    leap = fourth & (~century | (torch.remainder(year, 400) == 0))
    from_january = since_march + 59 + torch.where(leap, 1, 0)
    return torch.where(since_march >= 306, since_march - 306, from_january)


def _divide(number: Tensor, by: int) -> Tensor:
    """The whole quotient of a number that is a multiple, or not negative.

    In doubles, which are exact up to 2^53: the division of whole numbers loses digits in a graph.
    """
    return torch.floor((number.double() + 0.5) / by).long()
