"""A hazard that is free in each interval of time, for one or several causes."""

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import softplus

from ansatz.errors import DataError, UsageError
from ansatz.likelihoods.curve_distribution import CurveDistribution
from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.likelihood import Likelihood, require_same_shape
from ansatz.likelihoods.survival_outcome import check_survival, observed_time
from ansatz.spec import TargetSpec


class DiscreteHazard(Likelihood):
    r"""Times until the first of several kinds of events, with a hazard per interval and cause.

    Time is cut into intervals :math:`(c_{j-1}, c_j]` at quantiles of the observed event times.
    Given survival to its start, an interval ends in cause k or in survival with probabilities
    softmax(raw_j1, ..., raw_jK, 0), so that

    .. math:: p_{jk} = e^{r_{jk} - \Lambda_j}, \qquad 1 - p_j = e^{-\Lambda_j}, \qquad
              \Lambda_j = \log\left(1 + \sum_k e^{r_{jk}}\right)

    What the loss measures:

    - ``measure="density"``: a constant hazard within each interval, of cause k
      :math:`\lambda_{jk} = \frac{\Lambda_j}{c_j - c_{j-1}} \frac{e^{r_{jk}}}{\sum_l e^{r_{jl}}}`,
      the last one continued for ever. The loss of an event is
      :math:`-\log \lambda_{jk} + H(t) - H(e)` with H the cumulative hazard and e the entry, that
      of a censored row :math:`H(t) - H(e)`: minus the logarithm of a density of time, comparable
      with that of any continuous distribution.
    - ``measure="interval"``: the probability of the interval and cause, with censored rows
      counted up to the last cut that they passed, and entries as if at the interval's beginning.
      It knows times up to their interval only, so that its loss is comparable with no other
      likelihood's. Without x it is the Kaplan-Meier curve at the cut points (Aalen-Johansen's for
      several causes) where these are all event times.

    Hazards may cross, and no cause is taken for another: ``incidence`` gives the probability that
    a cause has occurred by a time, where others compete.

    Args:
        intervals: the largest number of intervals; fewer where there are fewer distinct event times
            (then the last raw numbers are not used).
        causes: kinds of events, coded 1 to ``causes``.
        measure: ``"density"`` or ``"interval"``.

    Shapes:
        - raw: ``(B, intervals * causes)``, the causes of the first interval first.
        - y: ``(B, 3)``: time, event code (0 for censored), entry (-inf for none).

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import DiscreteHazard, survival_outcome
        >>> y = survival_outcome(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1, 1, 0]))
        >>> likelihood = DiscreteHazard(intervals=2, measure="interval")
        >>> likelihood.observe(y, torch.ones(3))
        >>> shift, scale = likelihood.start(y, torch.ones(3))
        >>> likelihood.distribution(shift).survival
        tensor([0.6667, 0.3333])

    References:
        Gensheimer and Narasimhan (2019), A scalable discrete-time survival model for neural
        networks. https://arxiv.org/abs/1805.00917
        Lee et al. (2018), DeepHit. AAAI.
    """

    name = "discrete_hazard"
    resized = ("cuts",)
    link_name = "logit"
    event_ndim = 1

    cuts: Tensor

    def __init__(
        self,
        *,
        intervals: int = 20,
        causes: int = 1,
        measure: Literal["density", "interval"] = "density",
    ) -> None:
        super().__init__()
        for name, value in (("intervals", intervals), ("causes", causes)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise UsageError(f"{name} of discrete_hazard must be a number >= 1, got {value!r}.")
        if measure not in ("density", "interval"):
            raise UsageError(f"measure must be 'density' or 'interval', got {measure!r}.")
        self.intervals, self.causes, self.measure = intervals, causes, measure
        self.register_buffer("cuts", torch.zeros(0))

    def outputs(self, target: TargetSpec) -> int:
        """One logit per interval and cause."""
        return self.intervals * self.causes

    def check(self, y: Tensor) -> None:
        """Rows (time, event code, entry) with entry < time."""
        check_survival(self.name, y, self.causes)

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """Cuts at quantiles of the event times, the last event time being the last."""
        mine = (y[..., 1] > 0) & (weight > 0) & (y[..., 0] > 0)
        if not bool(mine.any()):
            raise DataError(
                "discrete_hazard needs events after time 0 to place its intervals, but every row "
                "is censored."
            )
        times, place = y[..., 0][mine].unique(return_inverse=True)
        if len(times) > self.intervals:
            mass = torch.zeros_like(times).index_add(0, place, weight[mine].to(times)).cumsum(0)
            level = torch.arange(1, self.intervals + 1, device=times.device) / self.intervals
            level = level.to(mass) * mass[-1] * (1 - 1e-12)
            times = times[torch.searchsorted(mass, level).clamp(max=len(times) - 1)].unique()
        self.cuts = times.detach().clone()

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Events over those who got through, per interval and cause; scale 1.

        Where a cause has no event in an interval, or nobody gets through, half a row is put in.
        """
        y = torch.where((weight > 0).unsqueeze(-1), y, torch.zeros_like(y))
        through = weight.double() @ self._through(y).double()  # (J,)
        place, seen = self._interval(y)
        cell = place * self.causes + y[..., 1].long() - 1
        died = through.new_zeros(len(self.cuts) * self.causes)
        died = died.index_add(0, cell[seen], weight[seen].double()).reshape(-1, self.causes)
        ratio = torch.where(died > 0, died, 0.5) / torch.where(through > 0, through, 0.5)[:, None]
        if self.measure == "density":  # Lambda_jk; the odds of an event are e^Lambda - 1
            total = ratio.sum(1, keepdim=True)
            ratio = ratio / total * torch.expm1(total.clamp(max=50))
        shift = torch.zeros(self.intervals * self.causes, dtype=weight.dtype, device=weight.device)
        shift[: ratio.numel()] = ratio.log().flatten().to(shift)
        return shift, torch.ones_like(shift)

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """Minus the log density, or minus the log probability of the interval."""
        require_same_shape(self.name, raw, y, event=(3,))
        logits, together, hazard = self._hazards(raw)
        y = y.to(raw.dtype)
        total = (self._through(y) * hazard).sum(-1)
        place, seen = self._interval(y)
        at = place.unsqueeze(-1)
        cause = (y[..., 1].long() - 1).clamp(min=0)
        log_odds = logits.flatten(-2).gather(-1, at * self.causes + cause.unsqueeze(-1))
        if self.measure == "interval":
            event = log_odds - hazard.gather(-1, at)
        else:
            share = log_odds - together.gather(-1, at)
            event = _log_softplus(together).gather(-1, at) + share
            event = event - self._widths(raw)[place].log().unsqueeze(-1)
        return total - torch.where(seen, event.squeeze(-1), 0.0)

    def distribution(self, raw: Tensor) -> CurveDistribution:
        """The survival curve of all causes together."""
        hazard = self._hazards(raw)[2].cumsum(-1)
        interpolation: Literal["linear", "step"]
        interpolation = "linear" if self.measure == "density" else "step"
        return CurveDistribution.of_hazard(self.cuts, hazard, interpolation=interpolation)

    def given(self, raw: Tensor, y: Tensor) -> tuple[Distribution, Tensor]:
        """The curve of each row, and its time; nan where censored, as it is not known."""
        return self.distribution(raw), observed_time(y)

    def incidence(self, raw: Tensor, times: Tensor, cause: int = 1) -> Tensor:
        r"""The probability that ``cause`` has occurred by each time, where all causes compete.

        .. math:: F_k(t) = \sum_j \frac{e^{r_{jk}}}{\sum_l e^{r_{jl}}}
                  \left(S(t \wedge c_{j-1}) - S(t \wedge c_j)\right)

        Shapes:
            - raw: ``(..., P)``; times: ``(T,)``; returns ``(..., T)``.
        """
        if not 1 <= cause <= self.causes:
            raise UsageError(f"cause must be 1 to {self.causes}, got {cause}.")
        logits, together, hazard = self._hazards(raw)
        share = (logits[..., cause - 1] - together).exp()
        before = hazard.cumsum(-1) - hazard
        part = self._fraction(times.to(raw), event=torch.zeros_like(times)) if len(times) else None
        if part is None:
            return raw.new_zeros(*raw.shape[:-1], 0)
        here = -torch.expm1(-part * hazard.unsqueeze(-2))  # (..., T, J)
        return (here * (share * (-before).exp()).unsqueeze(-2)).sum(-1)

    def _hazards(self, raw: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits (..., J, K), their log-sum over causes (..., J), and Lambda (..., J)."""
        count = len(self.cuts)
        if not count:
            raise UsageError("discrete_hazard has no intervals yet: call observe(y, weight) first.")
        logits = raw[..., : count * self.causes].unflatten(-1, (count, self.causes))
        together = logits.logsumexp(-1)
        return logits, together, softplus(together, threshold=40.0)

    def _widths(self, like: Tensor) -> Tensor:
        return torch.cat([self.cuts[:1], self.cuts.diff()]).to(like)

    def _interval(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """The interval that each time lies in, and whether its event is seen there."""
        time, cuts = y[..., 0].contiguous(), self.cuts.to(y)
        place = torch.searchsorted(cuts, time)
        seen = y[..., 1] > 0
        if self.measure == "interval":  # beyond the last cut times cannot be distinguished
            seen = seen & (place < len(cuts))
        return place.clamp(max=len(cuts) - 1), seen

    def _through(self, y: Tensor) -> Tensor:
        """The part of each interval that each row was seen to get through, ``(..., J)``."""
        time, event, entry = y.unbind(-1)
        entered = self._fraction(entry.clamp(min=0), torch.zeros_like(event))
        return self._fraction(time, event) - entered

    def _fraction(self, t: Tensor, event: Tensor) -> Tensor:
        cuts, t = self.cuts.to(t), t.unsqueeze(-1)
        if self.measure == "interval":  # an event at a cut falls into the interval that it ends
            return torch.where(event.unsqueeze(-1) > 0, cuts < t, cuts <= t).to(t)
        width = self._widths(t)
        part = (t - (cuts - width)) / width
        last = torch.arange(len(cuts), device=t.device) == len(cuts) - 1
        return torch.where(last, part.clamp(min=0), part.clamp(0, 1))


def _log_softplus(x: Tensor) -> Tensor:
    """log log(1 + e^x), nearly x where e^x is small."""
    low = x < -15
    return torch.where(
        low,
        x - 0.5 * torch.where(low, x, 0.0).exp(),
        softplus(torch.where(low, 0.0, x), threshold=40.0).log(),
    )
