"""The likelihoods by name."""

from ansatz.registry import Registry

registry = Registry(
    "likelihood",
    {
        "barron": "ansatz.likelihoods.barron:Barron",
        "bernoulli": "ansatz.likelihoods.bernoulli:Bernoulli",
        "beta": "ansatz.likelihoods.beta:Beta",
        "beta_binomial": "ansatz.likelihoods.beta_binomial:BetaBinomial",
        "binomial": "ansatz.likelihoods.binomial:Binomial",
        "categorical": "ansatz.likelihoods.categorical:Categorical",
        "censored": "ansatz.likelihoods.censored:Censored",
        "cox": "ansatz.likelihoods.cox:Cox",
        "cross_entropy": "ansatz.likelihoods.cross_entropy:CrossEntropy",
        "dice": "ansatz.likelihoods.dice:Dice",
        "dirichlet": "ansatz.likelihoods.dirichlet:Dirichlet",
        "discrete_hazard": "ansatz.likelihoods.discrete_hazard:DiscreteHazard",
        "exponential": "ansatz.likelihoods.exponential:Exponential",
        "focal": "ansatz.likelihoods.focal:Focal",
        "gamma": "ansatz.likelihoods.gamma:Gamma",
        "generalized_pareto": "ansatz.likelihoods.generalized_pareto:GeneralizedPareto",
        "huber": "ansatz.likelihoods.huber:Huber",
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
        "student_t": "ansatz.likelihoods.student_t:StudentT",
        "sum": "ansatz.likelihoods.sum:Sum",
        "truncated": "ansatz.likelihoods.truncated:Truncated",
        "tukey": "ansatz.likelihoods.tukey:Tukey",
        "tweedie": "ansatz.likelihoods.tweedie:Tweedie",
        "von_mises": "ansatz.likelihoods.von_mises:VonMises",
        "weibull": "ansatz.likelihoods.weibull:Weibull",
        "zero_inflated_negative_binomial": (
            "ansatz.likelihoods.zero_inflated:ZeroInflatedNegativeBinomial"
        ),
        "zero_inflated_poisson": "ansatz.likelihoods.zero_inflated:ZeroInflatedPoisson",
        "zero_one_inflated_beta": "ansatz.likelihoods.zero_one_inflated_beta:ZeroOneInflatedBeta",
    },
)
create = registry.create
names = registry.names
register = registry.register
