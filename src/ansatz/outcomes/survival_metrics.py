"""Metrics of survival times, some of which are known only in part."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ansatz import metrics
from ansatz.errors import ModelError
from ansatz.likelihoods import Cox, CurveDistribution, DiscreteHazard, Distribution, Likelihood
from ansatz.likelihoods.marginal import at_estimate
from ansatz.likelihoods.special.quadrature import gauss
from ansatz.outcomes.survival_times import times_and_causes

Metrics = dict[str, float | None]
BLOCK = 2**20  # numbers that are held at once
LEVELS = (
    1e-4,
    1e-3,
    0.01,
    0.05,
    0.2,
    0.5,
    0.8,
    0.95,
    0.99,
    0.999,
    0.9999,
    0.999999,
)  # between panels


class Followed(NamedTuple):
    """The follow-up times of the rows of the fit.

    Scores of censored rows weight by the chance of being followed so far, which comes from the
    training rows; beyond the last event nothing was observed. Rows that entered late, as intervals
    (start, stop] do, give no such chance: the end of one is not the end of observation.

    Args:
        horizon: the last event.
        time: ``(M,)``, of the training rows; empty where they are intervals or entered late.
        event: ``(M,)``, 0 where censored.
        weight: ``(M,)``.
    """

    horizon: float
    time: Tensor
    event: Tensor
    weight: Tensor

    @classmethod
    def of(cls, likelihood: Likelihood, y: Tensor, weight: Tensor) -> "Followed":
        """Estimates it from the outcomes of the training rows."""
        known = times_and_causes(likelihood, y.numpy())
        if known is None:
            ends = y[:, :2]
            last = float(torch.where(ends.isfinite(), ends, -torch.inf).max())
            return cls(last, *(torch.zeros(0, dtype=torch.float64) for _ in range(3)))
        time, event = (torch.from_numpy(part).clone() for part in known)
        seen = time[event > 0] if bool((event > 0).any()) else time
        keep = slice(0, 0) if _late(y) is not None else slice(None)
        return cls(float(seen.max()), time[keep], event[keep], weight.double()[keep].clone())

    def tensors(self) -> dict[str, Tensor]:
        """The state as named tensors, for a file."""
        horizon = torch.tensor(self.horizon, dtype=torch.float64)
        return {**self._asdict(), "horizon": horizon}

    @classmethod
    def of_tensors(cls, tensors: dict[str, Tensor]) -> "Followed":
        """The inverse of :meth:`tensors`; anything else is a ModelError."""
        shapes = {name: tensor.ndim for name, tensor in tensors.items()}
        lengths = {len(tensor) for tensor in tensors.values() if tensor.ndim}
        if shapes != {"horizon": 0, "time": 1, "event": 1, "weight": 1} or len(lengths) > 1:
            raise ModelError("expected the tensors horizon, time, event and weight.")
        return cls(float(tensors["horizon"]), *(tensors[name] for name in cls._fields[1:]))


def evaluate_survival(
    likelihood: Likelihood, raw: Tensor, y: Tensor, weight: Tensor | None, followed: Followed
) -> Metrics:
    """Log score, concordance and integrated Brier score; None where undefined.

    ``nll`` is the mean negative log-likelihood; a partial likelihood (Cox) is not comparable with
    it and is left out. Intervals have no order, so they have neither concordance nor Brier score.
    Where rows entered late, Uno's C and the Brier score are left out, which take every row as
    followed from the beginning; Harrell's C compares rows that were at risk together.

    Args:
        likelihood: gives distributions.
        raw: ``(N, P)``.
        y: ``(N, 3)`` in the likelihood's form.
        weight: ``(N,)`` frequency weights.
        followed: how long the training rows were followed.
    """
    weight = torch.ones(len(raw), dtype=torch.float64) if weight is None else weight
    found: Metrics = {}
    with torch.no_grad():
        if not isinstance(likelihood, Cox):
            found["nll"] = float((weight * likelihood.loss(raw, y)).sum() / weight.sum())
        known = times_and_causes(likelihood, y.numpy())
        if known is None:
            return found
        time, cause = (torch.from_numpy(part) for part in known)
        causes = getattr(likelihood, "causes", 1)
        if causes > 1:
            return {
                **found,
                **_concordance_of_causes(likelihood, raw, time, cause, weight, followed, _late(y)),
            }
        event = (cause > 0).double()
        risk, late = risk_of(likelihood, raw, followed.horizon), _late(y)
        found["c_index"] = _number(metrics.harrell_c(time, event, risk, weight, late))
        if late is None and len(followed.time):
            found["uno_c"] = _number(
                metrics.uno_c(
                    *(time, event, risk, followed.time, followed.event),
                    tau=followed.horizon,
                    weight=weight,
                    train_weight=followed.weight,
                )
            )
            found["integrated_brier"] = _integrated_brier(
                likelihood, raw, time, event, weight, followed
            )
    return found


def _late(y: Tensor) -> Tensor | None:
    """The entries, if any row came under observation after the time began."""
    entry = y[:, 2]
    times = y[:, 0][y[:, 0].isfinite()]
    origin = min(0.0, float(times.min())) if len(times) else 0.0
    return entry if bool((entry > origin).any()) else None


def risk_of(likelihood: Likelihood, raw: Tensor, horizon: float) -> Tensor:
    """A number per row, higher for earlier events.

    Log-risks of different strata do not compare: then it is that of the curves.
    """
    if isinstance(likelihood, Cox) and raw.shape[-1] == 1:
        return raw[:, 0]
    likelihood, raw = at_estimate(likelihood, raw)
    with torch.no_grad():
        mean = restricted_mean(likelihood.distribution(raw), horizon)
    unit = horizon * 2.0**-40  # rows alike tie, whatever the last digit of an integral
    return -(mean / unit).round() * unit if unit > 0 else -mean


def restricted_mean(distribution: Distribution, horizon: float) -> Tensor:
    """The integral of the survival function from 0 to the horizon.

    By Gauss-Legendre panels between quantiles of each row's likelihood, so that a curve that falls
    steeply anywhere is met there.
    """
    if isinstance(distribution, CurveDistribution):
        return distribution.restricted_mean(horizon)
    like = distribution.mean
    nodes, weights = (part.unsqueeze(1) for part in gauss("legendre", 16, like))
    before, total = torch.zeros_like(like), torch.zeros_like(like)
    for level in (*LEVELS, 1.0):
        edge = torch.full_like(like, horizon)
        if level < 1:
            edge = torch.minimum(distribution.icdf(torch.full_like(like, level)), edge).clamp(min=0)
        width = edge - before
        heights = distribution.log_survival(before + width * nodes).exp()  # (nodes, N)
        total = total + width * (weights * heights).sum(0)
        before = edge
    return total


def log_survival_at(distribution: Distribution, times: Sequence[float]) -> Tensor:
    """log P(T > t), ``(N, len(times))``, of each row at each time."""
    like = distribution.mean
    at = torch.tensor(times, dtype=like.dtype).unsqueeze(1)  # (T, 1)
    block = max(1, BLOCK // max(1, len(like)))
    parts = [distribution.log_survival(part.expand(-1, len(like))) for part in at.split(block)]
    return torch.cat(parts).T


def _concordance_of_causes(
    likelihood: Likelihood,
    raw: Tensor,
    time: Tensor,
    cause: Tensor,
    weight: Tensor,
    followed: Followed,
    late: Tensor | None,
) -> Metrics:
    """For each cause, how the chance of it by the horizon orders rows.

    A row that had another event first will never have this one: it stays a partner for ever
    (Wolbers et al., 2009).
    """
    assert isinstance(likelihood, DiscreteHazard)
    end = torch.tensor([followed.horizon], dtype=raw.dtype)
    found: Metrics = {}
    for k in range(1, likelihood.causes + 1):
        risk = likelihood.incidence(raw, end, k)[:, 0]
        until = torch.where((cause > 0) & (cause != k), torch.inf, time)
        event = (cause == k).double()
        found[f"c_index_{k}"] = _number(metrics.harrell_c(until, event, risk, weight, late))
    return found


def _integrated_brier(
    likelihood: Likelihood,
    raw: Tensor,
    time: Tensor,
    event: Tensor,
    weight: Tensor,
    followed: Followed,
) -> float | None:
    seen = time[event > 0]
    if len(seen) < 2 or not len(followed.time):
        return None
    first, last = float(seen.min()), min(float(seen.max()), followed.horizon)
    if not first < last:
        return None
    grid = torch.linspace(first, last, 101, dtype=torch.float64)[:-1]
    survival = log_survival_at(likelihood.distribution(raw), grid.tolist()).exp()
    score = metrics.integrated_brier(
        *(survival, grid, time, event, followed.time, followed.event),
        weight=weight,
        train_weight=followed.weight,
    )
    return _number(score)


def _number(value: Tensor | float) -> float | None:
    number = float(value)
    return number if number == number else None


def hazard(distribution: Distribution, times: Tensor) -> Tensor:
    """f(t) / S(t) of each row, ``(N, len(times))``.

    For a curve of steps, the slope of the cumulative hazard around t.
    """
    if isinstance(distribution, CurveDistribution) and distribution.interpolation == "step":
        knots = torch.cat([distribution.times.new_zeros(1), distribution.times])
        place = torch.searchsorted(knots, times.to(knots)).clamp(1, len(knots) - 1)
        before, after = knots[place - 1], knots[place]
        rise = log_survival_at(distribution, before.tolist()) - log_survival_at(
            distribution, after.tolist()
        )
        return rise / (after - before)
    at = times.unsqueeze(1).expand(-1, len(distribution.mean))
    return (distribution.log_prob(at) - distribution.log_survival(at)).exp().T
