"""The likelihoods by name, and the same with another dispersion."""

import inspect
from typing import TYPE_CHECKING, Literal

from ansatz.registry import Registry

if TYPE_CHECKING:
    from ansatz.likelihoods.likelihood import Likelihood

Dispersion = Literal["constant", "predicted"]

registry = Registry(
    "likelihood",
    {
        "autoregressive": "ansatz.likelihoods.autoregressive:Autoregressive",
        "barron": "ansatz.likelihoods.barron:Barron",
        "bernoulli": "ansatz.likelihoods.bernoulli:Bernoulli",
        "beta": "ansatz.likelihoods.beta:Beta",
        "beta_binomial": "ansatz.likelihoods.beta_binomial:BetaBinomial",
        "binomial": "ansatz.likelihoods.binomial:Binomial",
        "categorical": "ansatz.likelihoods.categorical:Categorical",
        "cauchy": "ansatz.likelihoods.robust_losses:Cauchy",
        "censored": "ansatz.likelihoods.censored:Censored",
        "charbonnier": "ansatz.likelihoods.robust_losses:Charbonnier",
        "cox": "ansatz.likelihoods.cox:Cox",
        "cross_entropy": "ansatz.likelihoods.cross_entropy:CrossEntropy",
        "dice": "ansatz.likelihoods.dice:Dice",
        "dirichlet": "ansatz.likelihoods.dirichlet:Dirichlet",
        "discrete_hazard": "ansatz.likelihoods.discrete_hazard:DiscreteHazard",
        "energy_forces": "ansatz.likelihoods.energy_forces:EnergyForces",
        "exponential": "ansatz.likelihoods.exponential:Exponential",
        "focal": "ansatz.likelihoods.focal:Focal",
        "gamma": "ansatz.likelihoods.gamma:Gamma",
        "geman_mcclure": "ansatz.likelihoods.robust_losses:GemanMcClure",
        "generalized_pareto": "ansatz.likelihoods.generalized_pareto:GeneralizedPareto",
        "huber": "ansatz.likelihoods.point_loss:Huber",
        "hurdle_negative_binomial": (
            "ansatz.likelihoods.hurdle_negative_binomial:HurdleNegativeBinomial"
        ),
        "hurdle_poisson": "ansatz.likelihoods.hurdle_poisson:HurdlePoisson",
        "inverse_gaussian": "ansatz.likelihoods.inverse_gaussian:InverseGaussian",
        "kl": "ansatz.likelihoods.kl:KL",
        "laplace": "ansatz.likelihoods.laplace:Laplace",
        "log_normal": "ansatz.likelihoods.log_normal:LogNormal",
        "mae": "ansatz.likelihoods.point_loss:MAE",
        "mse": "ansatz.likelihoods.point_loss:MSE",
        "multivariate_normal": "ansatz.likelihoods.multivariate_normal:MultivariateNormal",
        "negative_binomial": "ansatz.likelihoods.negative_binomial:NegativeBinomial",
        "normal": "ansatz.likelihoods.normal:Normal",
        "normal_mixture": "ansatz.likelihoods.normal_mixture:NormalMixture",
        "ordinal": "ansatz.likelihoods.ordinal:Ordinal",
        "plackett_luce": "ansatz.likelihoods.plackett_luce:PlackettLuce",
        "poisson": "ansatz.likelihoods.poisson:Poisson",
        "quantiles": "ansatz.likelihoods.quantiles:Quantiles",
        "span": "ansatz.likelihoods.span:Span",
        "student_t": "ansatz.likelihoods.student_t:StudentT",
        "sum": "ansatz.likelihoods.sum:Sum",
        "truncated": "ansatz.likelihoods.truncated:Truncated",
        "tukey": "ansatz.likelihoods.point_loss:Tukey",
        "tweedie": "ansatz.likelihoods.tweedie:Tweedie",
        "von_mises": "ansatz.likelihoods.von_mises:VonMises",
        "weibull": "ansatz.likelihoods.weibull:Weibull",
        "welsch": "ansatz.likelihoods.robust_losses:Welsch",
        "zero_inflated_negative_binomial": (
            "ansatz.likelihoods.zero_inflated:ZeroInflatedNegativeBinomial"
        ),
        "zero_inflated_poisson": "ansatz.likelihoods.zero_inflated:ZeroInflatedPoisson",
        "zero_one_inflated_beta": "ansatz.likelihoods.zero_one_inflated_beta:ZeroOneInflatedBeta",
    },
    # log-probabilities are logits: their log-softmax is themselves
    aliases=dict(binary_cross_entropy="bernoulli", nll="categorical", pseudo_huber="charbonnier"),
)
create = registry.create
names = registry.names
register = registry.register


def with_dispersion(likelihood: "Likelihood", dispersion: Dispersion) -> "Likelihood":
    """Remakes a likelihood with its dispersion constant or predicted; a given one stays."""
    if not varies(likelihood):
        return likelihood
    options, inner = dict(likelihood.options), getattr(likelihood, "likelihood", None)
    if inner is None:
        options["dispersion"] = dispersion
    else:  # censored or truncated
        options.pop("options", None)
        options["likelihood"] = with_dispersion(inner, dispersion)
    changed: Likelihood = registry.create(likelihood.name, **options)
    return changed


def current_dispersion(likelihood: "Likelihood") -> str | float | None:
    """``"predicted"``, ``"constant"``, the given value, or None for a likelihood without one."""
    likelihood = getattr(likelihood, "likelihood", likelihood)  # what is censored or truncated
    parameter = inspect.signature(type(likelihood).__init__).parameters.get("dispersion")
    if parameter is None:
        return None
    found: str | float = likelihood.options.get("dispersion", parameter.default)
    return found


def varies(likelihood: "Likelihood") -> bool:
    """Tests whether the likelihood learns a dispersion, once or from x."""
    return current_dispersion(likelihood) in ("constant", "predicted")
