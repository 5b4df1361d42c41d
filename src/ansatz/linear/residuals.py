"""Residuals and leverages of the rows of a model."""

from typing import Literal

import torch
from scipy import special
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.linear.family import fisher_weight, has_deviance
from ansatz.linear.heads import CLASSES
from ansatz.linear.linear_fit import LinearFit

VECTORS = ("plackett_luce", "dirichlet", "multivariate_normal")
KINDS = ("response", "pearson", "deviance", "quantile")


def residuals(
    likelihood: Likelihood,
    raw: Tensor,
    y: Tensor,
    kind: Literal["response", "pearson", "deviance", "quantile"] = "response",
    *,
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""Residuals of any model that predicts raw, a network's as well as a linear one's.

    - ``"response"``: :math:`y - \mu`.
    - ``"pearson"``: :math:`(y - \mu) / \sqrt{V(\mu)}`, free of the dispersion, as in R;
      for likelihoods without a variance function :math:`(y - \mu)` / sd.
    - ``"deviance"``: :math:`\mathrm{sign}(y - \mu) \sqrt{d(y, \mu)}`, whose squares add up to the
      deviance (exponential families).
    - ``"quantile"``: :math:`\Phi^{-1}(F(y))`, standard normal if the likelihood is right; for
      discrete likelihoods uniformly between :math:`F(y-)` and :math:`F(y)`, drawn from
      ``generator``.

    Args:
        likelihood: the likelihood, as fitted.
        raw: ``(N, P)``.
        y: ``(N,)``.
        kind: which of the four.
        generator: needed for quantile residuals of discrete distributions.

    Returns:
        ``(N,)``. For K classes, response and pearson are ``(N, K)``, one per indicator; there are
        no quantile residuals, as classes have no order.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Poisson
        >>> from ansatz.linear import residuals
        >>> residuals(Poisson(), torch.zeros(2, 1), torch.tensor([0.0, 3.0]), "pearson")
        tensor([-1.,  2.])

    References:
        Dunn and Smyth (1996), Randomized quantile residuals.
        https://doi.org/10.2307/1390802
    """
    if kind not in KINDS:
        raise UsageError(f"residuals are {', '.join(KINDS)}, got {kind!r}.")
    with torch.no_grad():
        if likelihood.name in CLASSES:
            return _of_classes(likelihood, raw, y, kind)
        _refuse_vectors(likelihood)
        if kind == "quantile":
            return _quantile(likelihood, raw, y, generator)
        if not likelihood.has_distribution:
            if kind != "response":
                raise UsageError(f"{likelihood.name} is a loss, not a likelihood. Use response.")
            return y - likelihood.point(raw)
        base, value = likelihood.given(raw, y)
        difference = value - base.mean
        if kind == "response":
            return difference
        if kind == "pearson":
            if type(likelihood).variance_function is not Likelihood.variance_function:
                return likelihood.pearson(raw, y)
            return difference / base.stddev
        if not has_deviance(likelihood):
            raise UsageError(
                f"{likelihood.name} is not an exponential family: it has no deviance residuals. "
                "Use quantile."
            )
        return difference.sign() * likelihood.unit_deviance(raw, y).clamp(min=0).sqrt()


def _refuse_vectors(likelihood: Likelihood) -> None:
    """Whole vectors, rankings and coupled rows have no single number to be off by."""
    if likelihood.additive and likelihood.name not in VECTORS:
        return
    reason = "its outcomes are not single numbers" if likelihood.additive else "it couples rows"
    raise UsageError(
        f"{likelihood.name} has no residuals: {reason}. Compare log scores row by row instead."
    )


def _of_classes(likelihood: Likelihood, raw: Tensor, y: Tensor, kind: str) -> Tensor:
    if kind == "quantile":
        raise UsageError("classes have no order and no quantile residuals. Use deviance.")
    if kind == "deviance":
        return (2 * likelihood.loss(raw, y)).clamp(min=0).sqrt()
    probs: Tensor = likelihood.probs(raw)  # type: ignore[operator]
    difference = torch.nn.functional.one_hot(y.long(), probs.shape[-1]) - probs
    return difference if kind == "response" else difference / (probs * (1 - probs)).sqrt()


def _quantile(
    likelihood: Likelihood, raw: Tensor, y: Tensor, generator: torch.Generator | None
) -> Tensor:
    if not likelihood.has_distribution:
        raise UsageError(
            f"{likelihood.name} is a loss without a density: it has no quantile residuals. "
            "Use response."
        )
    base, y = likelihood.given(raw, y)
    low, high = base.log_cdf(y), base.log_survival(y)
    # A likelihood with probability on single values: all of a discrete one, the 0 of a Tweedie
    # likelihood.
    previous = y - 1 if base.discrete else torch.nextafter(y, torch.full_like(y, -torch.inf))
    below = base.log_cdf(previous)
    jump = (low > below) & (base.discrete | (y == base.lower) | (y == base.upper))
    if base.discrete or bool(jump.any()):
        if generator is None:
            raise UsageError(
                f"quantile residuals of {likelihood.name} are random: give a torch.Generator."
            )
        share = torch.rand(y.shape, generator=generator, dtype=raw.dtype).to(raw.device)
        # F(y-) + u p from below, 1 - F(y) + (1 - u) p from above: the smaller has the digits.
        mass = torch.where(jump | base.discrete, base.log_prob(y), -torch.inf)
        low = torch.where(jump, torch.logaddexp(below, mass + share.log()), low)
        high = torch.where(jump, torch.logaddexp(high, mass + torch.log1p(-share)), high)
    return torch.where(low < high, _normal_quantile(low), -_normal_quantile(high))


def _normal_quantile(log_p: Tensor) -> Tensor:
    """The z with log Phi(z) = log_p, for p as small as one likes."""
    found = special.ndtri_exp(log_p.double().cpu().numpy())
    return torch.as_tensor(found).to(log_p)


def leverage(
    fit: LinearFit,
    x: Tensor,
    *,
    weight: Tensor | None = None,
    precision: Tensor | None = None,
    offset: Tensor | None = None,
) -> Tensor:
    r"""Computes the pull of each row on its fitted value, ``(N,)``: the hat matrix's diagonal.

    .. math:: h_i = w_i\, \omega_i\, x_i^\top (X^\top W X)^{-1} x_i

    They add up to the number of coefficients; exponential families with a single location only.

    Args:
        fit: a linear model with model covariance.
        x: ``(N, D)`` the rows it was fitted to.
        weight: as in the fit.
        precision: as in the fit; for a binomial distribution times the number of trials.
        offset: as in the fit.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Normal
        >>> from ansatz.linear import fit_linear, leverage
        >>> x = torch.tensor([[0.0], [1.0], [2.0]])
        >>> fit = fit_linear(Normal(dispersion="constant"), x, torch.tensor([1.0, 2.0, 4.0]))
        >>> leverage(fit, x)
        tensor([0.8333, 0.3333, 0.8333], dtype=torch.float64)
    """
    if fit.dispersion is None or fit.covariance_kind != "model":
        raise UsageError(
            "leverage needs an exponential family with constant dispersion and covariance='model'."
        )
    ones = torch.ones(len(x), dtype=torch.float64)
    precision = ones if precision is None else precision.double()
    weight = ones if weight is None else weight.double()
    chosen = [i for i, (_, column) in enumerate(fit.entries) if column == 0]
    rows = [fit.entries[i][0] for i in chosen]
    full = torch.cat([ones.unsqueeze(1), x.double()], 1)[:, rows]
    inverse = fit.covariance[chosen][:, chosen] / fit.dispersion
    omega = fisher_weight(fit.likelihood, fit.predict_raw(x, offset), precision)
    return weight * omega * ((full @ inverse) * full).sum(1)
