"""Maximum likelihood for a linear model under any likelihood whose loss is a sum over rows."""

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.likelihoods.censored import Censored
from ansatz.likelihoods.cox import Cox
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.linear.covariance import in_original_units, model_covariance, sandwich_covariance
from ansatz.linear.cox import fit_cox
from ansatz.linear.design import INTERCEPT, Design, DesignRows
from ansatz.linear.family import dispersion_at, has_deviance, pearson_statistic
from ansatz.linear.linear_fit import LinearFit
from ansatz.linear.linear_likelihood import LinearLikelihood, Maximum
from ansatz.linear.messages import explain
from ansatz.linear.naming import direction_of, output_names, scales_of
from ansatz.linear.overdispersion import explain_overdispersion
from ansatz.linear.robust import ROBUST, df_statistics, explain_groups, robust_covariance
from ansatz.linear.row_loss import Constants

# Adding a number to every outcome adds it to the intercept, and changes nothing else.
SHIFTED = (
    *("normal", "laplace", "student_t", "mse", "mae", "huber", "tukey"),
    *("charbonnier", "cauchy", "geman_mcclure", "welsch"),
)


def fit_linear(
    likelihood: Likelihood,
    design: Tensor,
    y: Tensor,
    *,
    weight: Tensor | None = None,
    precision: Tensor | None = None,
    offset: Tensor | None = None,
    feature_names: Sequence[str] | None = None,
    dispersion: Literal["constant", "predicted"] = "constant",
    covariance: Literal["model", "sandwich", "HC0", "HC1", "HC2", "HC3", "cluster"] | None = None,
    groups: Tensor | None = None,
    class_names: Sequence[str] | None = None,
    null: bool = True,
) -> LinearFit:
    r"""Fits the maximum-likelihood linear model: a GLM, or with predicted dispersion a gamlss.

    .. math:: \hat B = \arg\max_B \sum_i w_i \log p(y_i \mid \text{raw}_i), \qquad
              \text{raw}_i = (1, x_i) B + \text{offset}_i

    Newton's method in float64 to a scaled gradient below 1e-8, without penalty. For exponential
    families with constant dispersion this is iteratively reweighted least squares: the
    coefficients do not depend on the dispersion, which is then estimated by itself. Columns that
    others determine are dropped and named; separation, counts without events and anything else
    that leaves no maximum are reported in ``messages``.

    Args:
        likelihood: any likelihood or loss that is a sum over rows; it is copied, not changed.
        design: ``(N, D)`` numbers, without an intercept.
        y: ``(N,)`` outcomes; class codes for classes; ``(N, L)`` where an outcome is a vector.
        weight: ``(N,)`` frequency weights: weight 2 is the same as repeating the row.
        precision: ``(N,)`` R's prior weights: the variance is phi V(mu) / precision.
        offset: ``(N,)`` added to the linear predictor (log exposure for counts).
        feature_names: D names; default x1, x2, ...
        dispersion: ``"constant"``: only the location depends on x; ``"predicted"``: all raw do.
        covariance: ``"model"``: the inverse information, for exponential families times
            X2 / (n - p), as statsmodels and R; ``"sandwich"``: HC0, right for sampling weights;
            ``"HC0"`` to ``"HC3"`` (frequency weights) and ``"cluster"``, which sums scores within
            groups: see :func:`ansatz.linear.robust.robust_covariance`. Default: ``"cluster"``
            with groups, else ``"model"``.
        groups: ``(N,)`` codes; rows alike in it may depend on each other.
        class_names: K names for class codes 0..K-1.
        null: whether the model without x is fitted too, for the summary; False saves its time.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Poisson
        >>> from ansatz.linear import fit_linear
        >>> x = torch.tensor([[0.0], [0.0], [1.0], [1.0]])
        >>> fit = fit_linear(Poisson(), x, torch.tensor([1.0, 3.0, 3.0, 5.0]), feature_names=["a"])
        >>> fit.names, round(fit.coefficients[1, 0].item(), 6)  # log(4 / 2)
        (('(Intercept)', 'a'), 0.693147)

    References:
        McCullagh and Nelder (1989), Generalized Linear Models, chapter 2.
        Rigby and Stasinopoulos (2005), Generalized additive models for location, scale and shape.
    """
    _one_of("dispersion", dispersion, ("constant", "predicted"))
    if covariance is None:
        covariance = "model" if groups is None else "cluster"
    _one_of("covariance", covariance, ("model", "sandwich", *ROBUST))
    if covariance == "cluster" and groups is None:
        raise UsageError("clustered standard errors need groups: --group COL, or groups= in fit.")
    if feature_names is None:
        feature_names = [f"x{j + 1}" for j in range(design.shape[-1])]
    rows = DesignRows.of(
        *(design, y, weight, precision, offset, feature_names, likelihood.event_ndim, groups)
    )
    dtype = design.dtype if design.is_floating_point() else torch.float64
    columns = Design.of(rows.x, rows.weight, feature_names, dtype)
    if isinstance(likelihood, Cox):
        return fit_cox(likelihood, rows, columns, covariance)
    rows, centre = _centred(likelihood, rows)
    model = LinearLikelihood.of(likelihood, rows.y, rows.weight, dispersion, len(class_names or ()))
    fit = LinearFitting(model, rows, columns, covariance, class_names).result(null)
    return replace(fit, coefficients=_raised(fit.coefficients, centre))


def _centred(likelihood: Likelihood, rows: DesignRows) -> tuple[DesignRows, float]:
    """Outcomes far from 0 less their median: what they differ by has all its digits then."""
    if likelihood.name not in SHIFTED or likelihood.link_name != "identity":
        return rows, 0.0
    centre = rows.y.double().median()
    deviation = (rows.y - centre).abs().mean()
    if not float(centre.abs()) > 1e3 * float(deviation):
        return rows, 0.0
    return rows._replace(y=rows.y - centre), float(centre)


def _raised(coefficients: Tensor, centre: float) -> Tensor:
    coefficients = coefficients.clone()
    coefficients[0, 0] += centre
    return coefficients


def _one_of(option: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UsageError(f"{option} must be one of {', '.join(known)}, got {value!r}.")


class LinearFitting:
    """The fit, the null model beside it, and what follows from the two."""

    def __init__(
        self,
        model: LinearLikelihood,
        rows: DesignRows,
        design: Design,
        covariance: str,
        class_names: Sequence[str] | None,
        found: Maximum | None = None,
    ) -> None:
        self.model, self.rows, self.design, self.class_names = model, rows, design, class_names
        self.covariance = covariance
        if covariance == "model" and not model.likelihood.has_distribution:
            self.covariance = "sandwich"
        self.criterion = model.criterion(rows, design.matrix)
        self.found = model.maximise(rows, design.matrix) if found is None else found
        self.likelihood = model.fitted(self.criterion, self.found.theta)
        self.raw = self.criterion.z(self.found.theta)[:, : model.outputs]
        self.observations = float(rows.weight.sum())
        self.rank = int(model.location_mask(self.criterion).sum())

    def result(self, null: bool) -> LinearFit:
        null_likelihood, null_deviance = self._null() if null else (math.nan, None)
        phi, phi_ml, uses_t = self._dispersion()
        covariance, entries = self._covariance(phi)
        model, found = self.model, self.found
        stages = [found.location] + ([found.dispersion] if found.dispersion is not None else [])
        errors = covariance.diagonal()
        likelihood, coefficients = self._in_original_units()
        return LinearFit(
            likelihood=likelihood,
            names=(INTERCEPT, *self.design.names),
            outputs=output_names(
                model.likelihood, model.outputs, model.dispersions, model.target, self.class_names
            ),
            coefficients=coefficients,
            covariance=covariance,
            entries=entries,
            covariance_kind=self.covariance,
            observations=self.observations,
            rank=self.rank,
            locations=model.intercepts,
            parameters=self.criterion.size,
            log_likelihood=self._log_likelihood(self.likelihood, self.raw, found),
            conventional=self._conventional(phi, phi_ml),
            null_log_likelihood=null_likelihood,
            residual_deviance=self._deviance(self.likelihood, self.raw),
            null_deviance=null_deviance,
            dispersion=phi,
            dispersion_ml=phi_ml,
            scales=self._scales(likelihood),
            iterations=found.location.iterations,
            converged=all(stage.converged for stage in stages),
            gradient=max(stage.gradient for stage in stages),
            dropped=tuple(self.design.aliased),
            link=model.likelihood.link_name,
            uses_t=uses_t or self.covariance == "cluster",
            curvature="differences" if found.differenced else "exact",
            messages=(
                *explain(model, self.design, found, self.observations, errors),
                *explain_groups(self.covariance, self.rows.group),
                *(self._overdispersion() if null else ()),
            ),
            df_statistics=df_statistics(self.covariance, self.rows.group),
            measures=self._measures(),
        )

    def _measures(self) -> dict[str, float]:
        """The rows whose outcome has two finite ends, where some are censored."""
        if not isinstance(self.model.likelihood, Censored):
            return {}
        observed = self.rows.y[:, :2].isfinite().all(1)
        return {"observed": float(self.rows.weight @ observed.double())}

    def _overdispersion(self) -> list[str]:
        arguments = (self.likelihood, self.raw, self.rows, self.rank, self.covariance)
        return explain_overdispersion(*arguments) if self.found.location.converged else []

    def _scales(self, likelihood: Likelihood) -> dict[str, float]:
        raw = self.raw[:1]
        if likelihood.name == "von_mises" and not self.design.names:  # the same for all
            return direction_of(raw)
        return scales_of(likelihood, raw, self.model.predicted, self.class_names)

    def _in_original_units(self) -> tuple[Likelihood, Tensor]:
        """The likelihood and the coefficients of the columns as they came.

        Where an intercept is redundant (thresholds of ordered classes do the same) it is 0.
        """
        model, outputs = self.model, self.model.outputs
        table = self.criterion.table(self.found.theta)
        coefficients, constants = self.design.restore(table[:, :outputs]), table[0, outputs:]
        redundancy = zip(model.redundancy.columns, model.redundancy.directions, strict=True)
        for column, direction in redundancy:
            if column >= outputs:  # a constant that the rows do not identify
                continue
            excess = coefficients[0, column].clone()
            coefficients[0] -= excess * direction[:outputs]
            constants = constants - excess * direction[outputs:]
        likelihood = copy.deepcopy(self.likelihood)
        Constants.of(likelihood).store(likelihood, constants)
        return likelihood, coefficients

    def _null(self) -> tuple[float, float | None]:
        """Log-likelihood and deviance of the model with an intercept and the offset only."""
        ones = self.design.matrix[:, :1]
        criterion, null = self.criterion, self.found
        if self.design.matrix.shape[1] > 1:
            criterion = self.model.criterion(self.rows, ones)
            null = self.model.maximise(self.rows, ones)
        likelihood = self.model.fitted(criterion, null.theta)
        raw = criterion.z(null.theta)[:, : self.model.outputs]
        return self._log_likelihood(likelihood, raw, null), self._deviance(likelihood, raw)

    def _log_likelihood(self, likelihood: Likelihood, raw: Tensor, found: Maximum) -> float:
        if not getattr(likelihood, "prior", 0):
            return -float(found.derivatives.value)
        with torch.no_grad():  # of the rows alone, without the prior
            return -float(self.rows.weight @ likelihood.loss(raw, self.rows.y))

    def _deviance(self, likelihood: Likelihood, raw: Tensor) -> float | None:
        with torch.no_grad():
            if likelihood.name == "categorical":  # the saturated model has likelihood 1
                terms = 2 * likelihood.loss(raw, self.rows.y)
            elif self.model.family is not None and has_deviance(likelihood):
                terms = likelihood.unit_deviance(raw, self.rows.y)
            else:
                return None
        if self.rows.precision is not None:
            terms = self.rows.precision * terms
        total = float(self.rows.weight @ terms)
        return total if math.isfinite(total) else None  # an exponential outcome of 0 has none

    def _dispersion(self) -> tuple[float | None, float | None, bool]:
        """Pearson's phi, phi by maximum likelihood, and whether statistics are t."""
        family, rows = self.model.family, self.rows
        if family is None:
            return None, None, False
        if not family.dispersed:
            return 1.0, 1.0, False
        with torch.no_grad():
            by_likelihood = float(dispersion_at(self.likelihood, self.raw[:1])[0])
            if self.criterion.size == self.rank:  # a known dispersion: nothing was estimated
                return by_likelihood, by_likelihood, False
            precision = torch.ones_like(rows.weight) if rows.precision is None else rows.precision
            x2 = pearson_statistic(self.likelihood, self.raw, rows.y, rows.weight, precision)
        df = self.observations - self.rank
        pearson = float(x2) / df if df > 0 else float("nan")
        return pearson, by_likelihood, self.covariance != "sandwich"

    def _conventional(self, phi: float | None, phi_ml: float | None) -> dict[str, float]:
        """Log-likelihoods at the dispersions that R and statsmodels plug in."""
        family, rows, likelihood = self.model.family, self.rows, self.likelihood
        if family is None or family.log_density is None or phi is None or phi_ml is None:
            return {}
        precision = torch.ones_like(rows.weight) if rows.precision is None else rows.precision
        if likelihood.name == "normal":  # both profile the dispersion out
            r_phi = statsmodels_phi = phi_ml
        else:
            deviance = self._deviance(likelihood, self.raw) or 0.0
            r_phi, statsmodels_phi = deviance / float(rows.weight @ precision), phi

        def total(phi: float, inside: Tensor, outside: Tensor) -> float:
            with torch.no_grad():
                mean = likelihood.distribution(self.raw).mean
                assert family is not None and family.log_density is not None
                terms = family.log_density(rows.y, mean, phi / inside)
            return float((rows.weight * outside) @ terms)

        ones = torch.ones_like(precision)
        # R's gamma multiplies the log density by the prior weight instead of dividing phi by it.
        swap = likelihood.name == "gamma"
        return {
            "R": total(r_phi, ones, precision) if swap else total(r_phi, precision, ones),
            "statsmodels": total(statsmodels_phi, precision, ones),
        }

    def _covariance(self, phi: float | None) -> tuple[Tensor, tuple[tuple[int, int], ...]]:
        arguments = (self.model, self.rows, self.criterion, self.found)
        if self.covariance == "model":
            matrix = model_covariance(*arguments, 1.0 if phi is None else phi)
        elif self.covariance == "sandwich":
            matrix = sandwich_covariance(*arguments)
        else:
            matrix = robust_covariance(*arguments, self.covariance)  # type: ignore[arg-type]
        return in_original_units(matrix, self.model, self.criterion, self.design)
