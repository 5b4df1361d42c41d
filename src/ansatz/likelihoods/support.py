"""Finds the likelihoods that could have produced given values."""

import math
from typing import Literal

from torch import Tensor

from ansatz.errors import DataError

_CLASSES = ("categorical", "ordinal")
_COUNTS = (
    "poisson",
    "negative_binomial",
    "zero_inflated_poisson",
    "zero_inflated_negative_binomial",
    "hurdle_poisson",
    "hurdle_negative_binomial",
)
_POSITIVE = ("gamma", "log_normal", "weibull", "inverse_gaussian")
_FROM_ZERO = ("exponential", "generalized_pareto", "tweedie")
_REAL = ("normal", "laplace", "student_t", "normal_mixture", "quantiles")
_SHOWN = 6  # names in an error message

Support = Literal["any", "real", "positive", "nonnegative", "counts"]


def check_support(support: Support, y: Tensor, likelihood: str) -> None:
    """Rejects outcomes of a likelihood that are not in its support."""
    match support:
        case "real":
            bad, expected = ~y.isfinite(), "outcomes must be finite numbers"
        case "positive":
            bad, expected = ~(y.isfinite() & (y > 0)), "outcomes must be numbers > 0"
        case "nonnegative":
            bad, expected = ~(y.isfinite() & (y >= 0)), "outcomes must be numbers >= 0"
        case "counts":
            bad = ~(y.isfinite() & (y >= 0) & (y == y.round()))
            expected = "counts must be whole numbers >= 0"
        case _:
            return
    refuse_outside(bad, y, f"{likelihood} {expected}")


def check_codes(y: Tensor, classes: int) -> None:
    """Rejects what is not a class code: whole numbers from 0, below K where K is known."""
    bad = ~(y.isfinite() & (y >= 0) & (y == y.round()))
    refuse_outside(bad, y, "Class codes must be whole numbers >= 0")
    if classes:
        expected = f"Class codes must be below the number of classes, {classes}"
        refuse_outside(y >= classes, y, expected)


def matching_likelihoods(y: Tensor) -> list[str]:
    """Names the likelihoods whose support holds every value of ``y``, narrowest first.

    All likelihoods of a single number: 0 and 1, class codes, counts, proportions, positive numbers,
    numbers from 0 (``tweedie`` first if some are exactly 0), real numbers, and last, where all
    values could be radians, angles. The values decide, never the dtype; a support shows what is
    possible, not what fits well.

    Example:
        >>> import torch
        >>> matching_likelihoods(torch.tensor([0.5, 30.0]))[:4]
        ['gamma', 'log_normal', 'weibull', 'inverse_gaussian']
        >>> matching_likelihoods(torch.tensor([0.0, 30.5]))[:4]
        ['tweedie', 'exponential', 'generalized_pareto', 'normal']
    """
    if y.numel() == 0 or not bool(y.isfinite().all()):
        return []
    least, most = float(y.min()), float(y.max())
    candidates: list[str] = []
    if least >= 0 and bool((y == y.round()).all()):
        candidates += ["bernoulli"] if most <= 1 else []
        candidates += [*_CLASSES, *_COUNTS]
    if least > 0:
        candidates += ["beta"] if most < 1 else []
        candidates += ["zero_one_inflated_beta"] if most <= 1 else []
        candidates += [*_POSITIVE, *_FROM_ZERO]
    elif least == 0:
        candidates += ["zero_one_inflated_beta"] if most <= 1 else []
        candidates += [
            "tweedie",
            *(likelihood for likelihood in _FROM_ZERO if likelihood != "tweedie"),
        ]
    candidates += _REAL
    # A float32 may have rounded pi upwards.
    if least >= -math.pi - 1e-6 and most <= 2 * math.pi + 1e-6:
        candidates.append("von_mises")
    return candidates


def refuse_outside(bad: Tensor, y: Tensor, expected: str) -> None:
    """Raises a DataError with the first value where ``bad`` holds and likelihoods that fit.

    Named are the narrowest, and ``normal``, six at most.
    """
    if not bool(bad.any()):
        return
    candidates = matching_likelihoods(y)
    if not candidates:
        advice = "No likelihood produces it: drop the row or repair the value."
    else:
        shown = candidates[:_SHOWN]
        if "normal" not in shown:
            shown[-1] = "normal"
        more = f" and {len(candidates) - len(shown)} more" if len(candidates) > len(shown) else ""
        advice = f"Likelihoods that fit all of y: {', '.join(shown)}{more}."
    refuse_where(bad, y, expected, advice)


def refuse_where(bad: Tensor, y: Tensor, expected: str, advice: str) -> None:
    """Raises a DataError that names the first value of ``y`` where ``bad`` holds."""
    if bool(bad.any()):
        where = tuple(int(i) for i in bad.nonzero()[0])
        count = int(bad.sum())
        more = f" (and {count - 1} more)" if count > 1 else ""
        place = ", ".join(map(str, where))
        raise DataError(f"{expected}, got {y[where].item()} at y[{place}]{more}. {advice}")
