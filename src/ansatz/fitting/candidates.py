"""Which likelihoods could have produced the values of y: candidates by their support."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

COARSE = 3.0  # steps per sd: below, the density of a continuous distribution is no picture of whole numbers
AMOUNT = 30.0  # whole numbers of this size beside many zeros may be amounts, such as claims
HUGE = 1e100  # of an outcome: its powers and exponentials have no place in a double
REALS = ("normal", "laplace", "student_t")
POSITIVE = ("gamma", "log_normal", "weibull")
TIMES = ("exponential", "weibull", "log_normal", "gamma")
INFLATED = ("zero_inflated_poisson", "hurdle_poisson", "zero_inflated_negative_binomial")


def candidates(y: Any, *, exposure: bool = False, censored: bool = False) -> list[str]:
    r"""The likelihoods whose support holds all of y, simplest first.

    The values decide, never their type: 3.0 is a count and "3" is not.

    ======================================  ======================================================
    values                                  likelihoods
    ======================================  ======================================================
    no numbers                              bernoulli (two levels) or categorical
    two values, each seen more than once    bernoulli, and so is 0/1 always
    whole numbers from 0                    poisson, negative_binomial; where zeros are in excess
                                            the zero-inflated and the hurdle likelihoods; normal;
                                            from 1, if sd(y) is at least 3, gamma and log_normal;
                                            beside zeros in excess, from a median of 30, tweedie
    inside (0, 1)                           beta, normal
    [0, 1] with an end                      zero_one_inflated_beta
    positive                                normal, gamma, log_normal, weibull, laplace, student_t
    from 0, with zeros                      tweedie, normal
    any other                               normal, laplace, student_t
    censored times                          exponential, weibull, log_normal, gamma
    ======================================  ======================================================

    Zeros are in excess when their share p exceeds :math:`e^{-\bar y}` by two standard errors. No
    Poisson distribution given x does without it: by Jensen's inequality
    :math:`p = E[e^{-\mu(x)}] \ge e^{-E[\mu(x)]}`, so that fewer zeros never speak for inflation,
    and whether more of them do is for the log score given x to say. The same holds for
    over-dispersion, which variation of x alone brings about; so nothing else is tested here.

    Args:
        y: ``(N,)`` outcomes without missing values, or ``(N, K)`` for K targets of one likelihood.
        exposure: whether the logarithm of an exposure is added to the linear predictor: then
            likelihoods with a log link, where there are any.
        censored: whether some of the times are known in part only.
    """
    if censored:
        return list(TIMES)
    values = np.asarray(y)
    if values.dtype.kind not in "iuf":
        return ["bernoulli" if len(np.unique(values.astype(str))) == 2 else "categorical"]
    levels, counts = np.unique(values, return_counts=True)
    if _is_binary(levels, counts):
        return ["bernoulli"]
    if len(levels) == 1:
        return ["normal"]  # nothing to tell likelihoods apart by
    values = values.astype(np.float64)
    if not (np.abs(values) < HUGE).all():
        return ["normal"]
    candidates = _whole(values) if (levels == np.round(levels)).all() else _real(values)
    link = [likelihood for likelihood in candidates if likelihood not in REALS]
    return link if exposure and link else candidates


def _is_binary(levels: NDArray[Any], counts: NDArray[np.intp]) -> bool:
    if len(levels) != 2:
        return False
    return (levels[0] == 0 and levels[1] == 1) or bool(counts.min() > 1)


def _whole(y: NDArray[np.float64]) -> list[str]:
    """Likelihoods of whole numbers; continuous ones are compared by the probability of a step."""
    if y.min() < 0:
        return list(REALS)
    candidates = ["poisson", "negative_binomial"]
    if _zeros_in_excess(y):
        candidates += INFLATED
    candidates.append("normal")
    if y.min() > 0:
        return [*candidates, "gamma", "log_normal"] if y.std() >= COARSE else candidates
    amounts = _zeros_in_excess(y) and np.median(y[y > 0]) >= AMOUNT
    return [*candidates, "tweedie"] if amounts else candidates


def _zeros_in_excess(y: NDArray[np.float64]) -> bool:
    share = float((y == 0).mean())
    error = (share * (1 - share) / y.size) ** 0.5
    return bool(share - 2 * error > np.exp(-y.mean()))


def _real(y: NDArray[np.float64]) -> list[str]:
    low, high = y.min(), y.max()
    if low >= 0 and high <= 1:
        return ["beta", "normal"] if low > 0 and high < 1 else ["zero_one_inflated_beta"]
    if low > 0:
        return ["normal", *POSITIVE, "laplace", "student_t"]
    return ["tweedie", "normal"] if low == 0 else list(REALS)
