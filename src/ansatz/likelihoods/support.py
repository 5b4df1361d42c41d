"""Which laws could have produced these values."""

from torch import Tensor

from ansatz.likelihoods.likelihood import refuse_where


def laws_that_fit(y: Tensor) -> list[str]:
    """The registry names of the laws whose support holds every value of ``y``, narrowest first.

    The values decide, never the dtype; a support says what is possible, not what fits well.

    Example:
        >>> import torch
        >>> laws_that_fit(torch.tensor([0.5, 3.0]))
        ['gamma', 'normal', 'laplace', 'student_t']
    """
    if y.numel() == 0 or not bool(y.isfinite().all()):
        return []
    whole = bool(((y == y.round()) & (y >= 0)).all())
    laws = ["bernoulli"] if whole and bool((y <= 1).all()) else []
    laws += ["categorical", "poisson"] if whole else []
    laws += ["gamma"] if bool((y > 0).all()) else []
    return [*laws, "normal", "laplace", "student_t"]


def refuse_outside(bad: Tensor, y: Tensor, expected: str) -> None:
    """Raises a DataError naming the first value where ``bad`` holds and the laws that would fit.

    Example:
        >>> import torch
        >>> y = torch.tensor([1.0, -2.0])
        >>> refuse_outside(y < 0, y, "Counts must be >= 0")
        Traceback (most recent call last):
        ...
        ansatz.errors.DataError: Counts must be >= 0, got -2.0 at y[1]. Laws that fit all of y: ...
    """
    if not bool(bad.any()):
        return
    laws = laws_that_fit(y)
    if laws:
        advice = f"Laws that fit all of y: {', '.join(laws)}."
    else:
        advice = "No law produces it: drop the row or repair the value."
    refuse_where(bad, y, expected, advice)
