"""Cox's proportional hazards: risks are compared, times only order them."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor, logsumexp

from ansatz.errors import DataError, UsageError
from ansatz.likelihoods.curve_distribution import CurveDistribution
from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.likelihood import Likelihood, require_same_shape
from ansatz.likelihoods.partial_likelihood import RiskSets, Ties, on_one_axis, tie_term
from ansatz.likelihoods.special.logarithms import soft_clamp
from ansatz.likelihoods.special.tensors import wide
from ansatz.likelihoods.survival_outcome import check_survival, observed_time
from ansatz.spec import TargetSpec


class Cox(Likelihood):
    r"""Times until an event whose hazards are proportional, with any common baseline.

    .. math:: \lambda(t \mid x) = \lambda_0(t)\, e^{\eta}, \qquad
              -\log L = \sum_k \Big( T_k - \sum_{i \in D_k} \eta_i \Big)

    with :math:`\eta` = raw[0], the log-risk, and one term :math:`T_k` per distinct event time, over
    all rows at risk then: :math:`e_j < t_k \le s_j` for entry e and time s. Ties are Efron's, or
    Breslow's. Rows are coupled: the loss belongs to all rows together, a batch of rows has another
    objective, and a constant added to every log-risk changes nothing.

    A partial likelihood is a probability of the order of events, not of their times: it is
    compared with no other likelihood's likelihood. For survival curves ``set_baseline`` estimates
    the cumulative baseline hazard by Breslow's formula,

    .. math:: H_0(t) = \sum_{t_k \le t} \frac{W_k}{\sum_{j \in R_k} w_j e^{\eta_j}}, \qquad
              S(t \mid x) = \exp(-H_0(t)\, e^\eta)

    (:math:`W_k` the weight of the events at :math:`t_k`), best from out-of-fold log-risks.

    Args:
        ties: ``"efron"``, or ``"breslow"``.

    Shapes:
        - raw: ``(B, 1)``.
        - y: ``(B, 3)``: time, event (1, or 0 for censored), entry (-inf for none); several rows
          of one subject that join (start-stop) let x change with time.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Cox, survival_outcome
        >>> y = survival_outcome(torch.tensor([1.0, 2.0, 3.0]), torch.ones(3))
        >>> Cox().loss(torch.zeros(3, 1), y).exp()  # 3, 2 and 1 at risk
        tensor([3., 2., 1.])

    References:
        Cox (1972), Regression models and life-tables. Efron (1977), The efficiency of Cox's
        likelihood function for censored data. Breslow (1972), discussion of Cox's paper.
    """

    name = "cox"
    resized = ("baseline_times", "baseline_hazard")
    link_name = "log"
    additive = False
    event_ndim = 1

    baseline_times: Tensor
    baseline_hazard: Tensor

    def __init__(self, *, ties: Ties = "efron") -> None:
        super().__init__()
        if ties not in ("efron", "breslow"):
            raise UsageError(f"ties must be 'efron' or 'breslow', got {ties!r}.")
        self.ties: Ties = ties
        self.register_buffer("baseline_times", torch.zeros(0))
        self.register_buffer("baseline_hazard", torch.zeros(0))
        self._last: tuple[Tensor, Tensor, RiskSets] | None = None

    def outputs(self, target: TargetSpec) -> int:
        """1: the log-risk."""
        return 1

    def check(self, y: Tensor) -> None:
        """Rows (time, event, entry) with entry < time and events 0 or 1."""
        check_survival(self.name, y, strata=True)

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """0 and 1: a constant log-risk has no effect."""
        if not bool(((y[..., 1] > 0) & (weight > 0)).any()):
            raise DataError(
                "cox compares those who have the event with those who do not, but no row has an "
                "event (all are censored). Say which value is the event: --event COLUMN=VALUE."
            )
        zero = torch.zeros(1, dtype=weight.dtype, device=weight.device)
        return zero, torch.ones_like(zero)

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """Each event's share of minus the log partial likelihood of these rows; 0 if censored."""
        return self.joint_loss(raw, y, torch.ones_like(raw[..., 0]))

    def joint_loss(self, raw: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        """The shares with frequency weights: a row of weight 2 is twice in every risk set."""
        require_same_shape(self.name, raw, y, event=(4 if y.shape[-1] == 4 else 3,))
        if raw.is_meta:
            return raw[..., 0] * weight
        eta, outcome, mass = wide(raw[..., 0], y, weight)
        mass = mass.detach()
        sets = self._risk_sets(outcome.detach(), mass)
        eta = torch.where(mass > 0, eta, 0.0)
        others, dead = sets.log_sums(eta + mass.log())
        # The term of an event time, shared by the rows that die there.
        term = dead + tie_term(sets.weight, others - dead, self.ties) / sets.weight
        share = mass[sets.events] * (term[sets.place] - eta[sets.events])
        return torch.zeros_like(eta).index_copy(0, sets.events, share).to(raw)

    def _risk_sets(self, outcome: Tensor, mass: Tensor) -> RiskSets:
        """Those of the last call where the rows are the same, as at every step on all rows."""
        last = self._last
        if last is None or not (torch.equal(last[0], outcome) and torch.equal(last[1], mass)):
            time, event, entry = on_one_axis(outcome).unbind(-1)
            sets = RiskSets.of(time, event, entry, mass)
            last = self._last = outcome.clone(), mass.clone(), sets
        return last[2]

    @torch.no_grad()
    def set_baseline(self, log_risk: Tensor, y: Tensor, weight: Tensor | None = None) -> None:
        """Breslow's cumulative baseline hazard at the event times of these rows.

        Args:
            log_risk: ``(B,)``, raw[0] of each row, best from a model that has not seen it.
            y: ``(B, 3)``.
            weight: ``(B,)`` frequency weights.
        """
        if log_risk.shape != y.shape[:-1]:
            raise ValueError(
                f"set_baseline needs one log-risk per row, {tuple(y.shape[:-1])}, "
                f"got {tuple(log_risk.shape)}."
            )
        weight = torch.ones_like(log_risk) if weight is None else weight
        eta, outcome, mass = wide(log_risk, y, weight)
        time, event, entry = on_one_axis(outcome).unbind(-1)
        sets = RiskSets.of(time, event, entry, mass)
        if not len(sets.times):
            raise DataError("a baseline hazard needs at least one event, but all are censored.")
        eta = torch.where(mass > 0, eta, 0.0)
        total = torch.logaddexp(*sets.log_sums(eta + mass.log()))
        jumps = (sets.weight.log() - total).exp()
        if outcome.shape[-1] == 3:
            self.baseline_times = sets.times.to(log_risk)
            self.baseline_hazard = jumps.cumsum(0).to(log_risk)
            return
        # One curve per stratum, on the event times of all.
        one = torch.zeros(len(sets.times), dtype=torch.long).index_copy(0, sets.place, sets.events)
        times, place = outcome[one, 0].unique(return_inverse=True)
        count = int(outcome[:, 3].max()) + 1
        hazard = jumps.new_zeros(count, len(times))
        hazard.index_put_((outcome[one, 3].long(), place), jumps, accumulate=True)
        self.baseline_times = times.to(log_risk)
        self.baseline_hazard = hazard.cumsum(1).to(log_risk)

    def distribution(self, raw: Tensor) -> CurveDistribution:
        """The survival curve exp(-H0 e^raw) on the event times of the baseline's rows.

        With strata, H0 is that of the stratum whose code is the last number of raw.
        """
        if not len(self.baseline_times):
            raise UsageError(
                "cox knows risks but no times yet: give it a baseline hazard first, with "
                "set_baseline(log_risk, y, weight) on training rows."
            )
        hazard = self.baseline_hazard.to(raw)
        if hazard.ndim == 2:
            if raw.shape[-1] != 2:
                raise UsageError("a stratified cox needs the stratum of each row for its curve.")
            hazard = hazard[raw[..., 1].round().long()]  # (..., T)
        log_hazard = hazard.log() + soft_clamp(raw[..., :1])  # (..., T)
        return CurveDistribution.of_hazard(self.baseline_times, log_hazard.exp())

    def given(self, raw: Tensor, y: Tensor) -> tuple[Distribution, Tensor]:
        """The curve of each row, and its time; nan where censored, as it is not known."""
        return self.distribution(raw), observed_time(y)


Fold = tuple[Tensor, Tensor, Tensor]  # rows of a model, rows it left out, its log-risks of all


def out_of_fold_log_risks(own: Tensor, others: Iterable[Fold]) -> Tensor:
    """Gives each row the log-risk of the model that left it out; its own where none did.

    A flexible model's log-risks of its training rows know too well who had the event: those left
    at risk look safer than they are, and the baseline that makes up for it is too high for new
    rows. Only differences of log-risks mean anything, so every fold is put on the level of the
    whole fit.
    """
    fair = own.clone()
    for inside, outside, other in others:
        fair[outside] = other[outside] + log_mean_risk(own[inside]) - log_mean_risk(other[inside])
    return fair


def log_mean_risk(log_risk: Tensor) -> Tensor:
    """The log of the mean risk."""
    return logsumexp(log_risk, 0) - math.log(len(log_risk))
