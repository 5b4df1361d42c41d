"""Simple forecasts to stand beside a network: naive ones, a linear window, ETS and ARIMA."""

import copy
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz import inference
from ansatz.data.sequences.windows import Windows
from ansatz.fitting.contracts.inference import Posterior, Predictive
from ansatz.fitting.contracts.structure import Structure
from ansatz.fitting.job import Job, thinned
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.task import TrainingPlan
from ansatz.fitting.training import start_objective
from ansatz.inference.registry import DEFAULT
from ansatz.likelihoods import Likelihood, Normal
from ansatz.likelihoods.dispersion import softplus_inverse

MOST_SERIES = 200  # to which ETS and ARIMA are fitted
MOST_STEPS = 1_000  # of a series, the latest, from which their parameters are estimated
LONGEST_SEASON = 24  # of their seasonal states
ROWS = 8_192  # from which residual distributions are estimated
Array = NDArray[np.float64]


def fit_linear_window(
    structure: Structure, likelihood: Likelihood, job: Job, seed: int
) -> Posterior | None:
    """The linear map of the window, trained as the network is, with the same likelihood."""
    if not likelihood.additive:
        return None
    recipe = structure.settle(Recipe(), job, "linear_window", {})
    recipe = recipe.model_copy(update={"weight_decay": 1e-2})
    plan = TrainingPlan(structure, "linear_window", {}, recipe, seed, {}, {"progress": 0})
    job = job._replace(trainer_options={})
    found: Posterior = inference.create(DEFAULT).fit(plan, job, likelihood).posterior
    return found


def fit_baselines(likelihood: Likelihood, job: Job) -> tuple[Mapping[str, Posterior], list[str]]:
    """Naive forecasts with residual distributions; ETS and ARIMA of up to 200 series."""
    rows: Any = job.rows
    found: dict[str, Any] = {}
    notes: list[str] = []
    if likelihood.link_name in ("identity", "log"):
        found["last value"] = NaiveForecast(likelihood, job, 1)
        if rows.season > 1:
            found["seasonal naive"] = NaiveForecast(likelihood, job, rows.season)
    else:
        notes.append(f"naive forecasts are left out: {likelihood.name} has no level to add to.")
    if len(rows.panel) > MOST_SERIES:
        notes.append(
            f"ETS and ARIMA are left out: {len(rows.panel)} series, more than {MOST_SERIES}."
        )
        return found, notes
    try:
        import statsmodels.api  # noqa: F401
    except ImportError:
        notes.append("ETS and ARIMA are left out: pip install 'ansatz[forecast]'.")
        return found, notes
    for kind in ("ETS", "ARIMA"):
        found[kind] = StateSpaceForecast(kind, job)
    return found, notes


class _Simple:
    """What every simple forecast has of a posterior."""

    name: ClassVar[str] = "baseline"
    keeps_rows: ClassVar[bool] = False
    networks: ClassVar[tuple[Any, ...]] = ()
    parameters: ClassVar[int] = 0


class NaiveForecast(_Simple):
    r"""The value one season before (or the last one), with a residual distribution.

    .. math:: y_{t+h} \mid y_{\le t} \sim p(\cdot \mid \theta_h) \text{ moved to }
        \ell_h = y_{t + h - m \lceil h/m \rceil}

    Identity links add :math:`\ell_h` to the location, logarithmic links
    :math:`\log(\ell_h + 1)`; the parameters of each step are those of greatest likelihood.

    Args:
        likelihood: the likelihood.
        job: training rows.
        season: m, 1 for the last value.
    """

    def __init__(self, likelihood: Likelihood, job: Job, season: int) -> None:
        self.season = season
        job = thinned(job, ROWS)
        self.objective = start_objective(likelihood, job, torch.float64)
        self.log = likelihood.link_name == "log"
        assert self.objective.shift is not None
        level = self._level(job.rows)
        if not self.log:
            self.objective.shift, _ = self.objective.likelihood.start(job.y - level, job.weight)
            return
        free = self.objective.shift.clone().requires_grad_()
        own = copy.deepcopy(self.objective.likelihood)
        optimizer = torch.optim.LBFGS([free], max_iter=60, line_search_fn="strong_wolfe")

        def closure() -> Tensor:
            optimizer.zero_grad()
            terms = own.loss(self._raw(free, level), job.y)
            weight = job.weight.reshape(job.weight.shape + (1,) * (2 - job.weight.ndim))
            loss = (terms * weight).sum() / weight.expand_as(terms).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        if bool(free.isfinite().all()):
            self.objective.shift = free.detach()

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood."""
        likelihood: Likelihood = self.objective.likelihood
        return likelihood

    def _level(self, rows: Any) -> Tensor:
        steps = np.arange(rows.horizon)
        back = rows.values_back(max(2 * self.season, 2))
        back = _filled(back, rows)
        column = back.shape[1] - self.season + steps % self.season
        level = torch.from_numpy(back[:, column])
        return (level.clamp(min=0) + 1).log() if self.log else level

    def _raw(self, shift: Tensor, level: Tensor) -> Tensor:
        raw = shift.expand(len(level), *shift.shape)
        return torch.cat([raw[..., :1] + level.unsqueeze(-1), raw[..., 1:]], -1)

    def predictive(
        self, rows: Any, offset: Tensor | None = None, *, notes: list[str] | None = None
    ) -> Predictive:
        assert self.objective.shift is not None
        with torch.no_grad():
            return Predictive(self.likelihood, self._raw(self.objective.shift, self._level(rows)))


def _filled(back: Array, rows: Windows) -> Array:
    """Each missing value filled with the one before it, then with the one after it, then 0."""
    place = np.where(np.isfinite(back), np.arange(back.shape[1]), -1)
    last = np.maximum.accumulate(place, axis=1)
    found = np.take_along_axis(back, np.maximum(last, 0), 1)
    ahead = np.where(np.isfinite(back), np.arange(back.shape[1]), back.shape[1])
    after = np.minimum.accumulate(ahead[:, ::-1], axis=1)[:, ::-1]
    later = np.take_along_axis(back, np.minimum(after, back.shape[1] - 1), 1)
    return np.nan_to_num(np.where(last >= 0, found, later))


class StateSpaceForecast(_Simple):
    r"""ETS or ARIMA of each series, with parameters of its training steps.

    The Kalman filter passes each series once; the forecast from an origin t is normal,

    .. math:: y_{t+h} \sim N(d + Z T^h a_t,\; Z P_h Z' + H), \qquad P_h = T P_{h-1} T' + R Q R'

    ETS is exponential smoothing with a damped trend, and a season of up to 24 steps; ARIMA has
    orders (2, 1, 1).

    Args:
        kind: ``"ETS"`` or ``"ARIMA"``.
        job: training rows.

    References:
        Hyndman et al. (2008), Forecasting with exponential smoothing, chapter 5; Durbin and Koopman
        (2012), Time series analysis by state space methods, section 4.11.
    """

    def __init__(self, kind: str, job: Job) -> None:
        rows: Any = job.rows
        self.kind, self.season = kind, rows.season
        until = np.full(len(rows.panel), -1)
        np.maximum.at(until, rows.series, rows.origin + rows.horizon)
        self.found: dict[int, Any] = {}
        panel = rows.panel
        for k in np.unique(rows.series):
            first = max(panel.offsets[k], until[k] + 1 - MOST_STEPS)
            self.found[int(k)] = self._fit(panel.target[first : until[k] + 1])
        self.scale = float(np.nanstd(panel.target[: until.max() + 1])) or 1.0
        self.likelihood = Normal().double()
        unit = torch.tensor(self.scale, dtype=torch.float64)
        self.likelihood.dispersion.observe(unit, 1e-9 * unit)

    def _model(self, y: Array) -> Any:
        from statsmodels.tsa.statespace.exponential_smoothing import ExponentialSmoothing
        from statsmodels.tsa.statespace.sarimax import SARIMAX

        if self.kind == "ARIMA":
            return SARIMAX(y, order=(2, 1, 1))
        season = self.season if 1 < self.season <= LONGEST_SEASON else None
        season = season if season and len(y) > 3 * season else None
        return ExponentialSmoothing(y, trend=True, damped_trend=True, seasonal=season)

    def _fit(self, y: Array) -> Any:
        """Its parameters; None where the series is too short or does not vary."""
        seen = y[np.isfinite(y)]
        if len(seen) < 10 or np.ptp(seen) == 0:
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                fitted = self._model(y).fit(disp=0, maxiter=30)
                return np.asarray(fitted.params) if np.isfinite(fitted.params).all() else None
            except (ValueError, np.linalg.LinAlgError):
                return None

    def predictive(
        self, rows: Any, offset: Tensor | None = None, *, notes: list[str] | None = None
    ) -> Predictive:
        mean = np.zeros((len(rows), rows.horizon))
        sd = np.full(mean.shape, self.scale)
        for k in np.unique(rows.series):
            mine = np.flatnonzero(rows.series == k)
            mean[mine], sd[mine] = self._forecast(int(k), rows, rows.origin[mine])
        raw1 = softplus_inverse(torch.from_numpy(np.maximum(sd, 1e-6 * self.scale)) / self.scale)
        return Predictive(self.likelihood, torch.stack([torch.from_numpy(mean), raw1], -1))

    def _forecast(self, k: int, rows: Any, origin: NDArray[np.int64]) -> tuple[Array, Array]:
        panel, H = rows.panel, rows.horizon
        first = int(panel.offsets[k])
        begin = max(first, int(origin.min()) - MOST_STEPS)
        y = panel.target[begin : int(origin.max()) + 1]
        params = self.found.get(k)
        if params is None or np.isfinite(y).sum() < 3:
            back = _filled(rows.values_back(2)[rows.series == k], rows)[:, -1:]
            steps = np.sqrt(np.arange(1, H + 1))
            return np.repeat(back, H, 1), np.tile(self.scale * steps / steps[-1], (len(origin), 1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = self._model(y)
            done = model.filter(params).filter_results
        T, Z = done.transition[..., 0], done.design[..., 0]
        noise = done.selection[..., 0] @ done.state_cov[..., 0] @ done.selection[..., 0].T
        at = origin - begin
        a = done.predicted_state[:, at + 1].T  # (N, k): the state of t + 1 given y up to t
        P = done.predicted_state_cov[:, :, at + 1].transpose(2, 0, 1)
        mean, variance = np.zeros((len(at), H)), np.zeros((len(at), H))
        for h in range(H):
            mean[:, h] = (a @ Z.T)[:, 0] + done.obs_intercept[0, 0]
            variance[:, h] = np.einsum("k,nkl,l->n", Z[0], P, Z[0]) + done.obs_cov[0, 0, 0]
            a = a @ T.T + done.state_intercept[:, 0]
            P = T @ P @ T.T + noise
        return mean, np.sqrt(np.maximum(variance, 0))
