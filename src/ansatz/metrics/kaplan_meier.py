"""Survival, hazard and incidence curves without covariates."""

from typing import NamedTuple

import torch
from torch import Tensor

from ansatz.arrays import takes_arrays
from ansatz.errors import DataError
from ansatz.metrics.weights import row_weight


class StepCurve(NamedTuple):
    """A right-continuous step function that starts at ``start`` and jumps at ``times``.

    Shapes:
        - times, values: ``(K,)``, the value from each time on.

    Example:
        >>> import torch
        >>> curve = StepCurve(torch.tensor([1.0, 3.0]), torch.tensor([0.5, 0.2]), 1.0)
        >>> curve.at(torch.tensor([0.0, 1.0, 9.0])), curve.before(torch.tensor([1.0]))
        (tensor([1.0000, 0.5000, 0.2000]), tensor([1.]))
    """

    times: Tensor
    values: Tensor
    start: float

    def at(self, t: Tensor) -> Tensor:
        """The value at each time, the jump there included."""
        return self._value(
            torch.searchsorted(self.times, t.to(self.times).contiguous(), right=True)
        )

    def before(self, t: Tensor) -> Tensor:
        """The value just before each time."""
        return self._value(torch.searchsorted(self.times, t.to(self.times).contiguous()))

    def _value(self, place: Tensor) -> Tensor:
        return torch.cat([self.values.new_full((1,), self.start), self.values])[place]


@takes_arrays
def kaplan_meier(
    time: Tensor, event: Tensor, weight: Tensor | None = None, entry: Tensor | None = None
) -> StepCurve:
    r"""Computes the product-limit estimate of the survival curve.

    .. math:: S(t) = \prod_{t_k \le t} \left(1 - \frac{d_k}{n_k}\right)

    with :math:`d_k` events at the distinct event time :math:`t_k` and :math:`n_k` rows at risk,
    entry < t_k <= time. With several kinds of events it is refused: 1 - S would count those who
    can no longer have the event as if they still could. See :func:`aalen_johansen`.

    Args:
        time: ``(N,)``, of the event or of the end of observation.
        event: ``(N,)``, 1, or 0 for censored.
        weight: ``(N,)`` frequency weights.
        entry: ``(N,)``, the time after which each row was under observation.

    Example:
        >>> import torch
        >>> from ansatz.metrics import kaplan_meier
        >>> kaplan_meier(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1, 0, 1])).values
        tensor([0.6667, 0.0000], dtype=torch.float64)

    References:
        Kaplan and Meier (1958), Nonparametric estimation from incomplete observations.
    """
    if bool((event > 1).any()):
        raise DataError(
            f"kaplan_meier takes one kind of event, got codes up to {int(event.max())}: where "
            "several causes compete, 1 - Kaplan-Meier is not a probability. Use aalen_johansen."
        )
    times, died, at_risk = _counts(time, event, weight, entry)
    return StepCurve(times, (1 - died / at_risk).cumprod(0), 1.0)


@takes_arrays
def nelson_aalen(
    time: Tensor, event: Tensor, weight: Tensor | None = None, entry: Tensor | None = None
) -> StepCurve:
    r"""Computes the hazard :math:`H(t) = \sum_{t_k \le t} d_k / n_k`; see :func:`kaplan_meier`.

    Any code but 0 is an event here: the hazard of all causes together.

    Example:
        >>> import torch
        >>> from ansatz.metrics import nelson_aalen
        >>> nelson_aalen(torch.tensor([1.0, 2.0]), torch.ones(2)).values
        tensor([0.5000, 1.5000], dtype=torch.float64)

    References:
        Aalen (1978), Nonparametric inference for a family of counting processes.
    """
    times, died, at_risk = _counts(time, event, weight, entry)
    return StepCurve(times, (died / at_risk).cumsum(0), 0.0)


@takes_arrays
def aalen_johansen(
    time: Tensor,
    event: Tensor,
    cause: int = 1,
    weight: Tensor | None = None,
    entry: Tensor | None = None,
) -> StepCurve:
    r"""Computes the cumulative incidence of one cause among several that compete.

    .. math:: F_c(t) = \sum_{t_k \le t} S(t_{k-1}) \frac{d_{ck}}{n_k}

    with S the Kaplan-Meier curve of all causes together: the probability that cause c has
    occurred by t. Over all causes the incidences add up to 1 - S.

    Args:
        time: ``(N,)``.
        event: ``(N,)``, 0 for censored, else the code of the cause.
        cause: the code c.
        weight: ``(N,)`` frequency weights.
        entry: ``(N,)``, the time after which each row was under observation.

    Example:
        >>> import torch
        >>> from ansatz.metrics import aalen_johansen
        >>> aalen_johansen(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1, 2, 1])).values
        tensor([0.3333, 0.3333, 0.6667], dtype=torch.float64)

    References:
        Aalen and Johansen (1978), An empirical transition matrix for non-homogeneous Markov
        chains based on censored observations.
    """
    times, died, at_risk = _counts(time, event, weight, entry)
    place = torch.searchsorted(times, time.double().contiguous())
    mine = (event == cause) & (row_weight(time, weight) > 0)
    of_cause = torch.zeros_like(died).index_add(0, place[mine], row_weight(time, weight)[mine])
    survival = (1 - died / at_risk).cumprod(0)
    before = torch.cat([torch.ones_like(survival[:1]), survival[:-1]])
    return StepCurve(times, (before * of_cause / at_risk).cumsum(0), 0.0)


def _counts(
    time: Tensor, event: Tensor, weight: Tensor | None, entry: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Distinct event times, the weight of events at each, and the weight at risk."""
    if time.shape != event.shape or time.ndim != 1:
        raise ValueError(
            f"time and event need one entry per row, got {tuple(time.shape)} and "
            f"{tuple(event.shape)}."
        )
    weight, time = row_weight(time, weight), time.double()
    seen = weight > 0
    time, event, weight = time[seen], event[seen], weight[seen]
    times, place = time[event > 0].unique(return_inverse=True)
    died = torch.zeros_like(times).index_add(0, place, weight[event > 0])
    at_risk = _weight_from(time, weight, times)
    if entry is not None:
        at_risk = at_risk - _weight_from(entry[seen].double(), weight, times)
    return times, died, at_risk


def _weight_from(values: Tensor, weight: Tensor, t: Tensor) -> Tensor:
    """The weight of the values >= t."""
    values, order = values.sort()
    total = torch.cat([weight.new_zeros(1), weight[order].cumsum(0)])
    return total[-1] - total[torch.searchsorted(values, t)]
