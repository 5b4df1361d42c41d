"""The verdict on draws: converged, doubtful or failed, and why."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ansatz.inference.convergence import ess_bulk, ess_tail, r_hat

Array = NDArray[np.float64]

R_HAT = (1.01, 1.05)  # above the first draws are doubtful, above the second they have failed
ESS = (400.0, 100.0)  # effective draws, below
DIVERGENCES = 0.01  # share of paths, above which draws have failed
E_BFMI = 0.3


class Drawn(Protocol):
    """What a verdict is about: the fields of :class:`~ansatz.inference.Chains`."""

    @property
    def draws(self) -> Tensor: ...
    @property
    def acceptance(self) -> Tensor: ...
    @property
    def diverging(self) -> Tensor: ...
    @property
    def depth(self) -> Tensor: ...
    @property
    def energy(self) -> Tensor: ...
    @property
    def max_depth(self) -> int: ...


class Diagnosis(NamedTuple):
    """A verdict on draws, and the numbers that it follows from.

    ``converged``: R-hat below 1.01, 400 effective draws for the middle and the tails, no
    divergence, E-BFMI of 0.3 or more. ``doubtful``: R-hat up to 1.05, 100 effective draws,
    divergences up to 1 % of the paths. ``failed`` otherwise. One chain is doubtful at best.

    Args:
        status: ``"converged"``, ``"doubtful"`` or ``"failed"``.
        reasons: sentences, each with a remedy; none where draws have converged.
        r_hat: the largest.
        ess_bulk: the smallest.
        ess_tail: the smallest.
        divergences: paths that left the region where their energy is kept.
        e_bfmi: the smallest of a chain; None for samplers without momentum.
        acceptance: the mean.
        saturated: paths that reached the largest depth.
        draws: of all chains.

    Example:
        >>> import torch
        >>> from ansatz.inference import sample
        >>> found = sample(lambda x: -(x**2).sum(1) / 2, torch.zeros(1), warmup=200, draws=500)
        >>> found.diagnose().status
        'converged'

    References:
        Vehtari et al. (2021), Rank-normalization, folding, and localization.
        https://arxiv.org/abs/1903.08008
    """

    status: str
    reasons: tuple[str, ...]
    r_hat: float
    ess_bulk: float
    ess_tail: float
    divergences: int
    e_bfmi: float | None
    acceptance: float
    saturated: int
    draws: int

    def __str__(self) -> str:
        numbers = (
            f"{self.draws:,} draws, R-hat at most {self.r_hat:.3f}, effective draws at least "
            f"{self.ess_bulk:,.0f} (bulk) and {self.ess_tail:,.0f} (tail), "
            f"{self.divergences} divergences"
        )
        return " ".join([f"{self.status}: {numbers}.", *self.reasons])

    def to_dict(self) -> dict[str, Any]:
        """The verdict as JSON."""
        return {**self._asdict(), "reasons": list(self.reasons)}


def diagnose(chains: Drawn, names: Sequence[str] | None = None) -> Diagnosis:
    """The verdict on draws of several chains.

    Args:
        chains: the draws.
        names: of the parameters, for the sentences.
    """
    x = chains.draws.numpy()
    hats, bulk, tail = (np.atleast_1d(f(x)) for f in (r_hat, ess_bulk, ess_tail))
    least = np.fmin(bulk, tail)
    moving = x.std(axis=(0, 1)) > 0  # a correlation with itself says nothing
    if moving.any():
        hats, least = np.where(moving, hats, 1.0), np.where(moving, least, np.inf)
    worst, fewest = int(np.argmax(np.nan_to_num(hats, nan=np.inf))), int(np.argmin(least))
    known = list(names) if names is not None else [f"x{k}" for k in range(x.shape[2])]
    diverged = int(chains.diverging.sum())
    share = diverged / max(1, chains.diverging.numel())
    fraction = energy_fraction(chains.energy.numpy())
    e_bfmi = None if np.isnan(fraction).all() else float(np.nanmin(fraction))
    saturated = int((chains.depth >= chains.max_depth).sum())
    reasons, failed, serious = [], False, False
    if not hats[worst] < R_HAT[0]:
        failed |= not hats[worst] <= R_HAT[1]
        reasons.append(
            f"the chains disagree: R-hat {hats[worst]:.3f} of {known[worst]}, not below "
            f"{R_HAT[0]}: take more warm-up and draws, or narrower priors."
        )
    if not least[fewest] >= ESS[0]:
        failed |= not least[fewest] >= ESS[1]
        reasons.append(
            f"{least[fewest]:.0f} effective draws of {known[fewest]}; {ESS[0]:.0f} are needed: "
            "take more draws."
        )
    if diverged:
        failed |= share > DIVERGENCES
        reasons.append(
            f"{diverged} paths diverged: the step size is too large for a part of the posterior "
            "(target_accept=0.95, or another parameterisation)."
        )
    if e_bfmi is not None and e_bfmi < E_BFMI:
        serious = True
        reasons.append(
            f"the energy hardly moves: E-BFMI {e_bfmi:.2f}, below {E_BFMI}: narrower priors or "
            "another parameterisation help."
        )
    if saturated > 0.05 * chains.depth.numel():
        reasons.append(
            f"{saturated} paths reached the largest depth, {chains.max_depth}: a larger max_depth "
            "takes longer, but moves on."
        )
    if len(x) == 1:
        reasons.append("one chain cannot show that it has forgotten its start: take four.")
    status = "failed" if failed else "doubtful" if reasons or serious else "converged"
    return Diagnosis(
        status,
        tuple(reasons),
        float(hats[worst]),
        float(np.where(moving, bulk, np.inf).min()) if moving.any() else float(bulk.min()),
        float(np.where(moving, tail, np.inf).min()) if moving.any() else float(tail.min()),
        diverged,
        e_bfmi,
        float(chains.acceptance.mean()),
        saturated,
        x.shape[0] * x.shape[1],
    )


def energy_fraction(energy: Array) -> Array:
    r"""E-BFMI: how far one momentum moves the energy, beside how far it ranges, ``(C,)``.

    .. math:: \frac{\sum_n (E_n - E_{n-1})^2}{\sum_n (E_n - \bar E)^2}

    References:
        Betancourt (2016), Diagnosing suboptimal cotangent disintegrations.
        https://arxiv.org/abs/1604.00695
    """
    steps = (np.diff(energy, axis=1) ** 2).sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Array = steps / ((energy - energy.mean(1, keepdims=True)) ** 2).sum(1)
    return found
