"""A fitted linear model: coefficients, their uncertainty, and how well it fits."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import torch
from scipy import stats
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers import affine
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.linear.summary import Summary
from ansatz.training.objectives import Supervised


class Pooling(NamedTuple):
    """Rubin's quantities of each coefficient, ``(D + 1, P)`` each; nan where none was estimated."""

    imputations: int
    df: Tensor
    missing_information: Tensor


@dataclass(frozen=True)
class LinearFit:
    r"""The maximum-likelihood linear model raw = (1, x) B + offset.

    Args:
        likelihood: the likelihood with its units, floors and constant dispersion as fitted.
        names: D + 1 names, ``"(Intercept)"`` first.
        outputs: names of the P raw numbers (columns of the tables).
        coefficients: ``(D + 1, P)``; nan for aliased columns, as R's NA, and 0 where a raw number
            does not depend on x.
        covariance: ``(T, T)`` of the estimated coefficients, in the order of ``entries``.
        entries: T pairs (row, column) of ``coefficients``.
        covariance_kind: ``"model"``, ``"sandwich"``, ``"HC0"`` to ``"HC3"`` or ``"cluster"``.
        observations: n, the sum of the frequency weights.
        rank: number of coefficients of the location part (the first raw number, or all logits).
        locations: number of intercepts in it: 1, or K - 1 for K classes.
        parameters: k, everything that was estimated, a constant dispersion included.
        log_likelihood: at the maximum, the dispersion estimated by maximum likelihood too; for a
            loss without a density, minus the total loss.
        conventional: log-likelihoods at the dispersions that ``"R"`` and ``"statsmodels"`` use.
        null_log_likelihood: of the model with an intercept (and the offset) only.
        residual_deviance: sum of unit deviances (exponential families and classes; else None).
        null_deviance: the same for the intercept-only model.
        dispersion: phi = Pearson's X2 / (n - rank), what R and statsmodels print; 1 for Poisson
            and Bernoulli; None outside the exponential families.
        dispersion_ml: phi by maximum likelihood.
        scales: constant scales and shapes of the likelihood by name, as fitted.
        iterations: Newton steps.
        converged: whether the scaled gradient is below 1e-8.
        gradient: the largest scaled gradient where it stopped.
        dropped: names of aliased columns.
        link: what ties the first raw number to the mean.
        uses_t: whether statistics are t (the dispersion is estimated) or z.
        messages: in words, whatever makes the fit less than it seems.
        measures: further numbers by name (events and concordance of a Cox model).
        curvature: ``"exact"``, or ``"differences"`` where the likelihood has first derivatives only
            and the information matrix comes from differences of gradients, good to some 1e-6.
        df_statistics: degrees of freedom of t statistics, where not ``df_residual``: the number of
            groups less 1 for clustered standard errors.
        pooled: of fits to imputed tables, degrees of freedom and missing information.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Normal
        >>> from ansatz.linear import fit_linear
        >>> x = torch.tensor([[0.0], [1.0], [2.0], [3.0]])
        >>> fit = fit_linear(Normal(dispersion="constant"), x, torch.tensor([1.0, 3.0, 5.0, 8.0]))
        >>> [round(b, 6) for b in fit.coefficients[:, 0].tolist()]
        [0.8, 2.3]
    """

    likelihood: Likelihood
    names: tuple[str, ...]
    outputs: tuple[str, ...]
    coefficients: Tensor
    covariance: Tensor
    entries: tuple[tuple[int, int], ...]
    covariance_kind: str
    observations: float
    rank: int
    locations: int
    parameters: int
    log_likelihood: float
    conventional: dict[str, float]
    null_log_likelihood: float
    residual_deviance: float | None
    null_deviance: float | None
    dispersion: float | None
    dispersion_ml: float | None
    scales: dict[str, float]
    iterations: int
    converged: bool
    gradient: float
    dropped: tuple[str, ...]
    link: str
    uses_t: bool
    messages: tuple[str, ...] = field(default=())
    measures: dict[str, float] = field(default_factory=dict)
    curvature: str = "exact"
    df_statistics: float | None = None
    pooled: Pooling | None = None

    @property
    def df_residual(self) -> float:
        """n - rank."""
        return self.observations - self.rank

    @property
    def df_null(self) -> float:
        """n - 1 (for K classes: n - (K - 1))."""
        return self.observations - self.locations

    @property
    def aic(self) -> float | None:
        """-2 log L + 2 k at the maximum, a dispersion counted as a parameter.

        None for a loss without a density. See :meth:`aic_as` for other programs' definitions.
        """
        return self.aic_as("ml")

    def aic_as(self, definition: Literal["ml", "R", "statsmodels"]) -> float | None:
        """Computes AIC as this or that program defines it; they agree for Poisson and classes.

        ``"ml"``: the maximum over all parameters, each counted, so that likelihoods can be
        compared. ``"R"``: the same for normal; for gamma the dispersion is deviance / n.
        ``"statsmodels"``: no dispersion is counted; for gamma it is X2 / (n - p).
        """
        if not self.likelihood.has_distribution:
            return None
        if definition not in ("ml", "R", "statsmodels"):
            raise UsageError(f"AIC is known as ml, R or statsmodels, got {definition!r}.")
        value = self.conventional.get(definition, self.log_likelihood)
        counted = definition != "statsmodels" or not self.conventional
        return -2 * value + 2 * (self.parameters if counted else self.rank)

    @property
    def bic(self) -> float | None:
        """-2 log L + k log n."""
        if not self.likelihood.has_distribution:
            return None
        size = torch.tensor(self.observations, dtype=torch.float64).log()
        return -2 * self.log_likelihood + self.parameters * float(size)

    @property
    def likelihood_ratio(self) -> tuple[float, int, float]:
        """2 (log L - log L without x), the number of slopes, and the chi-square p-value."""
        statistic = 2 * (self.log_likelihood - self.null_log_likelihood)
        df = sum(1 for row, _ in self.entries if row > 0)
        return statistic, df, float(stats.chi2.sf(statistic, df)) if df else 1.0

    @cached_property
    def standard_errors(self) -> Tensor:
        """``(D + 1, P)``; nan where nothing was estimated."""
        errors = torch.full_like(self.coefficients, torch.nan)
        for value, (row, column) in zip(self.covariance.diagonal(), self.entries, strict=True):
            errors[row, column] = value.clamp(min=0).sqrt() if value == value else value
        return errors

    @cached_property
    def statistics(self) -> Tensor:
        """Estimate / standard error, ``(D + 1, P)``: t if the dispersion is estimated, else z."""
        return self.coefficients / self.standard_errors

    @property
    def _reference(self) -> Any:
        """The distribution of the statistics, Student's t or normal."""
        if self.pooled is not None:
            return stats.t(self.pooled.df.numpy())
        df = self.df_residual if self.df_statistics is None else self.df_statistics
        return stats.t(df) if self.uses_t and df > 0 else stats.norm()

    @cached_property
    def p_values(self) -> Tensor:
        """Two-sided, ``(D + 1, P)``."""
        size = self.statistics.abs().numpy()
        return torch.as_tensor(2 * self._reference.sf(size))

    def confint(self, level: float = 0.95) -> Tensor:
        """Computes Wald intervals, ``(D + 1, P, 2)``."""
        if not 0 < level < 1:
            raise UsageError(f"level of confint must be in (0, 1), got {level}.")
        half = torch.as_tensor(self._reference.ppf((1 + level) / 2)) * self.standard_errors
        return torch.stack([self.coefficients - half, self.coefficients + half], -1)

    def predict_raw(self, x: Tensor, offset: Tensor | None = None) -> Tensor:
        """Predicts raw ``(N, P)`` of the likelihood at x ``(N, D)``, in float64."""
        width = len(self.names) - 1
        if x.ndim != 2 or x.shape[1] != width:
            raise UsageError(f"predict_raw needs x of shape (N, {width}), got {tuple(x.shape)}.")
        table = torch.nan_to_num(self.coefficients, nan=0.0)
        raw = torch.addmm(table[0], x.double(), table[1:])
        if offset is not None:
            raw[:, 0] += offset.double()
        return raw

    def to_network(self) -> nn.Linear:
        """Gives the model as ``nn.Linear(D, P)`` in float64 whose output is raw."""
        table = torch.nan_to_num(self.coefficients, nan=0.0)
        # affine, since nn.Linear would draw from the user's generator.
        network = affine(table.shape[0] - 1, table.shape[1], init="zeros", bias=0.0).double()
        with torch.no_grad():
            network.weight.copy_(table[1:].T)
            network.bias.copy_(table[0])
        return network

    def summary(self, call: str = "", rows_dropped: int = 0) -> Summary:
        """Summarizes the fit as R's ``summary(glm)`` does; see :class:`ansatz.linear.Summary`."""
        return Summary(self, call=call, rows_dropped=rows_dropped)


def join_targets(fits: Sequence[LinearFit]) -> tuple[nn.Linear, Supervised]:
    """Joins linear models of K targets, of the same columns, in one network with its objective.

    Targets do not share coefficients, so K outcomes at once are K fits; this puts them side by
    side, where a network for K targets would be.

    Args:
        fits: one per target, in their order.

    Returns:
        ``nn.Linear(D, K * P)`` in float64 and the objective that turns its output into raw
        ``(N, K, P)`` and evaluates y ``(N, K)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Normal
        >>> from ansatz.linear import fit_linear, join_targets
        >>> x, y = torch.randn(9, 2), torch.randn(9, 3)
        >>> fits = [fit_linear(Normal(dispersion="constant"), x, y[:, k]) for k in range(3)]
        >>> network, objective = join_targets(fits)
        >>> objective.raw(network, (x.double(),)).shape
        torch.Size([9, 3, 1])
    """
    if not fits:
        raise UsageError("join_targets needs at least one fit.")
    first = fits[0]
    if any(f.names != first.names or f.likelihood.name != first.likelihood.name for f in fits):
        raise UsageError("join_targets needs fits of one likelihood on the same columns.")
    parts = [fit.to_network() for fit in fits]
    outputs = len(first.outputs)
    network = affine(len(first.names) - 1, len(fits) * outputs, init="zeros", bias=0.0).double()
    with torch.no_grad():
        network.weight.copy_(torch.cat([part.weight for part in parts]))
        network.bias.copy_(torch.cat([part.bias for part in parts]))
    likelihood = copy.deepcopy(first.likelihood)
    states = [fit.likelihood.state_dict() for fit in fits]
    # What was measured or learned per target gets an axis for them; a known value stays one number.
    learned = {name for name, _ in likelihood.named_parameters()}
    joined = {
        name: value
        if (value.ndim and name not in learned) or name.endswith("known")
        else torch.stack([state[name] for state in states])
        for name, value in states[0].items()
    }
    likelihood.load_state_dict(joined)
    zeros = torch.zeros(len(fits), outputs, dtype=torch.float64)
    return network, Supervised(likelihood, zeros, zeros + 1)
