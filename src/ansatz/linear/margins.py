"""Confidence intervals of means, marginal means and contrasts of a linear model."""

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.linear.estimates import Estimates
from ansatz.linear.heads import CLASSES

if TYPE_CHECKING:
    import pandas as pd


class MeanInterval(NamedTuple):
    """Means with their confidence intervals, ``(N,)`` or ``(N, K)`` for K classes each."""

    mean: Tensor
    standard_error: Tensor
    lower: Tensor
    upper: Tensor


def mean_of(likelihood: Likelihood, raw: Tensor) -> Tensor:
    """The mean of y, or the probability of each class, at raw ``(N, P)``."""
    if likelihood.name in CLASSES:
        found: Tensor = likelihood.probs(raw)  # type: ignore[operator]
        return found
    if not likelihood.has_distribution or likelihood.event_ndim or likelihood.name == "ordinal":
        raise UsageError(f"{likelihood.name} has no confidence interval of a mean.")
    return likelihood.distribution(raw).mean


def _slopes(likelihood: Likelihood, raw: Tensor) -> tuple[Tensor, Tensor]:
    """Means ``(N, K)`` and their derivatives by raw, ``(K, N, P)``."""
    raw = raw.detach().double().requires_grad_()
    with torch.enable_grad():
        mean = mean_of(likelihood, raw)
        wide = mean.reshape(len(raw), -1)
        slopes = [
            torch.autograd.grad(column.sum(), raw, retain_graph=True)[0]
            for column in wide.unbind(1)
        ]
    return mean.detach(), torch.stack(slopes)


def mean_interval(
    estimates: Estimates, likelihood: Likelihood, x: Tensor, raw: Tensor, level: float = 0.95
) -> MeanInterval:
    r"""Computes confidence intervals of the mean of y given x.

    .. math:: g^{-1}\big(\eta \pm q\, \mathrm{se}(\eta)\big), \qquad
              \mathrm{se}(\eta)^2 = x^\top \Sigma x

    where the mean depends on the first raw number alone, through a link g: for the normal model and
    GLMs these are statsmodels' ``get_prediction``. Where several raw numbers make the mean
    (classes, zero-inflated counts) the interval is by the delta method. They hold the
    *mean* with the given probability, not an outcome, and take a constant dispersion as known.

    Args:
        estimates: of the linear model.
        likelihood: as fitted.
        x: ``(N, D)`` columns.
        raw: ``(N, P)`` raw numbers there, with the offset.
        level: of the intervals.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Poisson
        >>> from ansatz.linear import Estimates, fit_linear, mean_interval
        >>> x, y = torch.arange(4.0).unsqueeze(1), torch.tensor([1.0, 2.0, 4.0, 9.0])
        >>> fit = fit_linear(Poisson(), x, y)
        >>> found = mean_interval(Estimates.of(fit), fit.likelihood, x, fit.predict_raw(x))
        >>> [round(number, 3) for number in (found.lower[3].item(), found.upper[3].item())]
        [4.793, 16.42]
    """
    if not 0 < level < 1:
        raise UsageError(f"level must be in (0, 1), got {level}.")
    mean, slopes = _slopes(likelihood, raw)
    quantile = float(estimates.reference.ppf((1 + level) / 2))
    errors = torch.stack([_error(estimates, x, slope) for slope in slopes], -1).reshape(mean.shape)
    alone = slopes.shape[2] == 1 or bool((slopes[:, :, 1:] == 0).all())
    if not alone or mean.ndim > 1:
        half = quantile * errors
        return MeanInterval(mean, errors, mean - half, mean + half)
    unit = torch.zeros_like(raw, dtype=torch.float64)
    unit[:, 0] = 1
    half = quantile * _error(estimates, x, unit)
    with torch.no_grad():
        ends = [
            mean_of(likelihood, raw.double() + sign * half.unsqueeze(1) * unit) for sign in (-1, 1)
        ]
    return MeanInterval(mean, errors, torch.minimum(*ends), torch.maximum(*ends))


def _error(estimates: Estimates, x: Tensor, slope: Tensor) -> Tensor:
    gradient = estimates.gradient(x, slope)
    return ((gradient @ estimates.covariance) * gradient).sum(1).clamp(min=0).sqrt()


class Setting(NamedTuple):
    """Rows with a column set to one value: its name, their columns and raw numbers."""

    name: str
    x: Tensor
    raw: Tensor


def marginal_means(
    estimates: Estimates,
    likelihood: Likelihood,
    settings: Sequence[Setting],
    *,
    weight: Tensor | None = None,
    level: float = 0.95,
    class_names: Sequence[str] | None = None,
) -> "pd.DataFrame":
    r"""Computes the average predicted mean in each setting, and their differences.

    .. math:: m_s = \frac{\sum_i w_i\, \mu(x_i^{(s)})}{\sum_i w_i}, \qquad
              \mathrm{se}(m_s - m_t)^2 = (G_s - G_t)\, \Sigma\, (G_s - G_t)^\top

    with :math:`x_i^{(s)}` row i in setting s and :math:`G_s` the derivative of :math:`m_s` by the
    coefficients (the delta method). Rows are averaged over as they are, as Stata's ``margins`` and
    R's ``marginaleffects`` do; in a linear model with an identity link and no interaction a
    contrast is a coefficient. p-values are those of single contrasts, without a correction for
    their number.

    Args:
        estimates: of the linear model.
        likelihood: as fitted.
        settings: the rows in each setting.
        weight: ``(N,)`` of the rows.
        level: of the intervals.
        class_names: names of the classes, where the mean is a probability of each.

    Returns:
        One row per setting, then one per pair: ``of`` (``"mean"`` or ``"contrast"``), ``setting``,
        ``estimate``, ``standard_error``, ``lower``, ``upper``, ``p_value``; for classes ``output``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Normal
        >>> from ansatz.linear import Estimates, fit_linear
        >>> from ansatz.linear.margins import Setting, marginal_means
        >>> x, y = torch.tensor([[0.0], [0.0], [1.0], [1.0]]), torch.tensor([1.0, 3.0, 4.0, 8.0])
        >>> fit = fit_linear(Normal(dispersion="constant"), x, y, feature_names=["male"])
        >>> settings = [Setting(str(v), x * 0 + v, fit.predict_raw(x * 0 + v)) for v in (0, 1)]
        >>> found = marginal_means(Estimates.of(fit), fit.likelihood, settings)
        >>> found["estimate"].round(9).tolist()
        [2.0, 6.0, 4.0]
    """
    import pandas as pd

    count = len(settings[0].raw)
    weight = torch.ones(count, dtype=torch.float64) if weight is None else weight.double()
    share = weight / weight.sum()
    means, gradients = [], []  # (K,), (K, T) of each setting
    for setting in settings:
        mean, slopes = _slopes(likelihood, setting.raw)
        means.append(share @ mean.reshape(count, -1))
        gradients.append(torch.stack([share @ estimates.gradient(setting.x, s) for s in slopes]))
    quantile = float(estimates.reference.ppf((1 + level) / 2))
    rows = []

    def add(of: str, name: str, value: Tensor, gradient: Tensor) -> None:
        errors = ((gradient @ estimates.covariance) * gradient).sum(1).clamp(min=0).sqrt()
        for k, (estimate, error) in enumerate(zip(value.tolist(), errors.tolist(), strict=True)):
            p = float("nan")
            if of == "contrast" and error > 0:
                p = 2 * float(estimates.reference.sf(abs(estimate) / error))
            half = quantile * error
            output = {} if len(value) == 1 else {"output": _named(class_names, k)}
            row = {"of": of, "setting": name, **output, "estimate": estimate}
            row |= {"standard_error": error, "lower": estimate - half, "upper": estimate + half}
            rows.append({**row, "p_value": p})

    for setting, mean, gradient in zip(settings, means, gradients, strict=True):
        add("mean", setting.name, mean, gradient)
    for s, t in combinations(range(len(settings)), 2):
        name = f"{settings[t].name} - {settings[s].name}"
        add("contrast", name, means[t] - means[s], gradients[t] - gradients[s])
    return pd.DataFrame(rows)


def _named(names: Sequence[str] | None, k: int) -> str:
    return str(k) if names is None else str(names[k])
