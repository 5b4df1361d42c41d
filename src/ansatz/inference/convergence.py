"""Whether chains agree, and how many independent draws they are worth."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import fft, special, stats

Array = NDArray[np.float64]


def r_hat(draws: ArrayLike) -> Array:
    r"""The rank-normalised split R-hat: near 1 where chains have forgotten where they began.

    .. math:: \hat R = \sqrt{\frac{N - 1}{N} + \frac{B}{N W}}

    with B between and W within the halves of the chains, of the normal scores of the draws' ranks
    and of those of their distances from the median; the larger of both.

    Args:
        draws: ``(C, N)``, or ``(C, N, D)`` for each of D quantities.

    Returns:
        ``()`` or ``(D,)``.

    Example:
        >>> import numpy as np
        >>> from ansatz.inference import r_hat
        >>> bool(r_hat(np.random.default_rng(0).normal(size=(4, 500))) < 1.02)
        True

    References:
        Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021), Rank-normalization, folding, and
        localization. https://arxiv.org/abs/1903.08008
    """
    x = _split(draws)
    folded = np.abs(x - np.median(x, axis=(0, 1), keepdims=True))
    found = np.fmax(_plain_r_hat(_scores(x)), _plain_r_hat(_scores(folded)))
    return _shaped(found, draws)


def ess_bulk(draws: ArrayLike) -> Array:
    """The effective number of draws for the middle: of the ranks' normal scores.

    Args:
        draws: ``(C, N)``, or ``(C, N, D)`` for each of D quantities.

    Example:
        >>> import numpy as np
        >>> from ansatz.inference import ess_bulk
        >>> bool(ess_bulk(np.random.default_rng(0).normal(size=(4, 500))) > 1500)
        True

    References:
        Vehtari et al. (2021), section 4.1. https://arxiv.org/abs/1903.08008
    """
    return _shaped(_ess(_scores(_split(draws))), draws)


def ess_tail(draws: ArrayLike) -> Array:
    """The effective number of draws for the 5 % and the 95 % quantile, the smaller of both.

    Args:
        draws: ``(C, N)``, or ``(C, N, D)`` for each of D quantities.

    Example:
        >>> import numpy as np
        >>> from ansatz.inference import ess_tail
        >>> bool(ess_tail(np.random.default_rng(0).normal(size=(4, 500))) > 1000)
        True

    References:
        Vehtari et al. (2021), section 4.3. https://arxiv.org/abs/1903.08008
    """
    x = _three(draws)
    low, high = np.quantile(x, [0.05, 0.95], axis=(0, 1))
    both = [_ess(_split((x <= q).astype(float))) for q in (low, high)]
    return _shaped(np.fmin(*both), draws)


def ess_mean(draws: ArrayLike) -> Array:
    """The effective number of draws for the mean.

    Args:
        draws: ``(C, N)``, or ``(C, N, D)`` for each of D quantities.

    Example:
        >>> import numpy as np
        >>> from ansatz.inference import ess_mean
        >>> bool(ess_mean(np.random.default_rng(0).normal(size=(4, 500))) > 1500)
        True

    References:
        Geyer (1992), Practical Markov chain Monte Carlo.
    """
    return _shaped(_ess(_split(draws)), draws)


def mcse_mean(draws: ArrayLike) -> Array:
    """The Monte-Carlo standard error of the mean: the standard deviation over root ESS.

    Args:
        draws: ``(C, N)``, or ``(C, N, D)`` for each of D quantities.

    Example:
        >>> import numpy as np
        >>> from ansatz.inference import mcse_mean
        >>> bool(mcse_mean(np.random.default_rng(0).normal(size=(4, 500))) < 0.03)
        True
    """
    sd = _three(draws).std(axis=(0, 1), ddof=1)
    return _shaped(sd / np.sqrt(_ess(_split(draws))), draws)


def _three(draws: ArrayLike) -> Array:
    x = np.asarray(draws, dtype=np.float64)
    if x.ndim not in (2, 3) or x.shape[1] < 4:
        raise ValueError(
            f"draws must be (chains, draws) or (chains, draws, quantities) with 4 draws or more, "
            f"got {x.shape}."
        )
    return x if x.ndim == 3 else x[:, :, None]


def _split(draws: ArrayLike) -> Array:
    """Each chain as two halves, ``(2 C, N // 2, D)``."""
    x = _three(draws)
    half = x.shape[1] // 2
    return np.concatenate([x[:, :half], x[:, -half:]])


def _shaped(found: Array, draws: ArrayLike) -> Array:
    return found if np.ndim(draws) == 3 else found[0]


def _scores(x: Array) -> Array:
    """Normal scores of the ranks over all chains (Blom 1958)."""
    count = x.shape[0] * x.shape[1]
    ranks = stats.rankdata(x.reshape(count, -1), axis=0).reshape(x.shape)
    found: Array = special.ndtri((ranks - 0.375) / (count + 0.25))
    return found


def _plain_r_hat(x: Array) -> Array:
    count = x.shape[1]
    within = x.var(axis=1, ddof=1).mean(0)
    between = x.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Array = np.sqrt((count - 1) / count + between / within)
    return found


def _ess(x: Array) -> Array:
    """Effective draws of chains ``(C, N, D)`` by their autocovariances."""
    chains, count, size = x.shape
    centred = x - x.mean(axis=1, keepdims=True)
    length = fft.next_fast_len(2 * count)
    power = np.abs(fft.rfft(centred, n=length, axis=1)) ** 2
    covariances = fft.irfft(power, n=length, axis=1)[:, :count] / count  # (C, N, D)
    within = covariances[:, 0].mean(0) * count / (count - 1)
    total = within * (count - 1) / count
    if chains > 1:
        total = total + x.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        rho = 1 - (within - covariances.mean(0)) / total  # (N, D)
    rho[0] = 1
    found = [_from_correlations(rho[:, k], chains * count) for k in range(size)]
    # A constant has no error: as many draws as there are.
    enough = chains * count
    return np.array([n if t > 0 else enough for n, t in zip(found, total, strict=True)])


def _from_correlations(rho: Array, total: int) -> float:
    """Geyer's initial monotone sequence: sums of neighbours, while positive and not growing."""
    pairs = max(1, (len(rho) - 1) // 2)  # the last one only ends the sum
    sums = rho[: 2 * pairs].reshape(pairs, 2).sum(1)
    negative = np.flatnonzero(~(sums > 0))
    last = int(negative[0]) if len(negative) else pairs - 1
    tau = -1 + 2 * float(np.minimum.accumulate(sums[:last]).sum())
    if rho[2 * last] > 0 or not len(negative):
        tau += float(rho[2 * last])
    return total / max(tau, 1 / math.log10(total))
