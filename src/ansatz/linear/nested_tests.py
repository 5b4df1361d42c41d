"""Tests of nested linear models: likelihood ratio, Wald and F."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from scipy import stats

from ansatz.errors import UsageError
from ansatz.linear.estimates import Estimates

if TYPE_CHECKING:
    from ansatz.linear.linear_fit import LinearFit


class NestedTest(NamedTuple):
    """A test of the hypothesis that the smaller of two models is right.

    Args:
        kind: ``"likelihood ratio"``, ``"Wald"`` or ``"F"``.
        statistic: chi-square, or F.
        df: degrees of freedom: the number of restrictions.
        df_residual: the denominator's, of F; None for a chi-square.
        p_value: of the statistic.

    Example:
        >>> from ansatz.linear import NestedTest
        >>> print(NestedTest("Wald", 3.84, 1, None, 0.05))
        Wald test: chi-square 3.84 on 1 degree of freedom, p = 0.05
    """

    kind: str
    statistic: float
    df: int
    df_residual: float | None
    p_value: float

    def __str__(self) -> str:
        p = "p < 2e-16" if self.p_value < 2e-16 else f"p = {self.p_value:.3g}"
        degrees = f"{self.df} degree{'s' if self.df != 1 else ''} of freedom"
        if self.df_residual is None:
            return f"{self.kind} test: chi-square {self.statistic:.4g} on {degrees}, {p}"
        both = f"{self.df} and {self.df_residual:g} degrees of freedom"
        return f"{self.kind} test: F {self.statistic:.4g} on {both}, {p}"


def likelihood_ratio_test(small: "LinearFit", large: "LinearFit") -> NestedTest:
    r"""Tests a linear model against a larger one that contains it, on the same rows.

    .. math:: 2 (\log L_1 - \log L_0) \sim \chi^2_{k_1 - k_0}

    Args:
        small: the model under the hypothesis.
        large: with further columns.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Poisson
        >>> from ansatz.linear import fit_linear, likelihood_ratio_test
        >>> x = torch.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
        >>> y = torch.tensor([1.0, 2.0, 4.0, 9.0])
        >>> fits = [fit_linear(Poisson(), x[:, :k], y) for k in (1, 2)]
        >>> likelihood_ratio_test(*fits).df
        1

    References:
        Wilks (1938), The large-sample distribution of the likelihood ratio.
    """
    df = _nested(small, large)
    statistic = max(2 * (large.log_likelihood - small.log_likelihood), 0.0)
    p = float(stats.chi2.sf(statistic, df))
    return NestedTest("likelihood ratio", statistic, df, None, p)


def f_test(small: "LinearFit", large: "LinearFit") -> NestedTest:
    r"""Tests nested GLMs whose dispersion is estimated, as R's ``anova(test = "F")``.

    .. math:: F = \frac{(D_0 - D_1) / (p_1 - p_0)}{\hat\phi_1}

    with D the deviances and phi Pearson's dispersion of the larger model. Exact for the normal
    linear model with constant variance.

    Args:
        small: the model under the hypothesis.
        large: with further columns.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Normal
        >>> from ansatz.linear import f_test, fit_linear
        >>> x, y = torch.tensor([[0.0], [1.0], [2.0], [3.0]]), torch.tensor([1.0, 2.0, 2.5, 4.5])
        >>> fits = [fit_linear(Normal(dispersion="constant"), x[:, :k], y) for k in (0, 1)]
        >>> round(f_test(*fits).statistic, 3)  # the square of t
        26.889
    """
    _nested(small, large)
    if not large.uses_t or large.residual_deviance is None or small.residual_deviance is None:
        raise UsageError(
            f"an F test needs an estimated dispersion and deviances, which {large.likelihood.name} "
            "does not have here: take the likelihood ratio."
        )
    df = large.rank - small.rank
    assert large.dispersion is not None
    statistic = (small.residual_deviance - large.residual_deviance) / df / large.dispersion
    p = float(stats.f.sf(statistic, df, large.df_residual))
    return NestedTest("F", statistic, df, large.df_residual, p)


def wald_test(fit: "LinearFit | Estimates", names: Sequence[str]) -> NestedTest:
    r"""Tests that the coefficients of some columns are all 0, with the fit's standard errors.

    .. math:: W = \hat\beta_S^\top \hat\Sigma_{SS}^{-1} \hat\beta_S

    is chi-square with |S| degrees of freedom; where statistics are t, W / |S| is F. Robust and
    clustered standard errors keep their validity, which a likelihood ratio does not.

    Args:
        fit: a linear fit, or its estimates.
        names: of the columns; a coefficient in every raw number belongs to them.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Poisson
        >>> from ansatz.linear import fit_linear, wald_test
        >>> x, y = torch.arange(4.0).unsqueeze(1), torch.tensor([1.0, 2.0, 4.0, 9.0])
        >>> fit = fit_linear(Poisson(), x, y)
        >>> round(wald_test(fit, ["x1"]).statistic, 3), round(float(fit.statistics[1, 0]) ** 2, 3)
        (7.303, 7.303)

    References:
        Wald (1943), Tests of statistical hypotheses concerning several parameters.
    """
    estimates = fit if isinstance(fit, Estimates) else Estimates.of(fit)
    places = estimates.places(names)
    if not places:
        raise UsageError(f"no coefficient of {', '.join(names)} was estimated.")
    values, covariance = estimates.values[places], estimates.covariance[places][:, places]
    statistic = float(values @ torch.linalg.solve(covariance, values))
    df = len(places)
    if estimates.df is None:
        return NestedTest("Wald", statistic, df, None, float(stats.chi2.sf(statistic, df)))
    ratio = statistic / df
    return NestedTest("Wald", ratio, df, estimates.df, float(stats.f.sf(ratio, df, estimates.df)))


def _nested(small: "LinearFit", large: "LinearFit") -> int:
    if small.likelihood.name != large.likelihood.name:
        raise UsageError(
            f"nested models have one likelihood, got {small.likelihood.name} and "
            f"{large.likelihood.name}."
        )
    if abs(small.observations - large.observations) > 1e-9:
        raise UsageError(
            f"nested models have the same rows, got {small.observations:g} and "
            f"{large.observations:g}."
        )
    df = large.parameters - small.parameters
    if df <= 0:
        raise UsageError(
            f"the larger model comes second and has more parameters: {small.parameters} and "
            f"{large.parameters}."
        )
    if small.log_likelihood > large.log_likelihood + 1e-6 * (1 + abs(large.log_likelihood)):
        raise UsageError("the models are not nested: the one with fewer columns fits better.")
    return df
