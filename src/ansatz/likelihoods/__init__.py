"""Likelihoods p(y | f(x)) for each kind of outcome y, and losses."""

from ansatz.likelihoods.registry import create as create
from ansatz.likelihoods.registry import names as names
from ansatz.likelihoods.registry import register as register
from ansatz.likelihoods.registry import registry as registry

from ansatz.likelihoods.distribution import Distribution as Distribution
from ansatz.likelihoods.likelihood import Likelihood as Likelihood
from ansatz.likelihoods.support import matching_likelihoods as matching_likelihoods

from ansatz.likelihoods.barron import Barron as Barron
from ansatz.likelihoods.barron import BarronDistribution as BarronDistribution
from ansatz.likelihoods.bernoulli import Bernoulli as Bernoulli
from ansatz.likelihoods.bernoulli import BernoulliDistribution as BernoulliDistribution
from ansatz.likelihoods.beta import Beta as Beta
from ansatz.likelihoods.beta import BetaDistribution as BetaDistribution
from ansatz.likelihoods.beta_binomial import BetaBinomial as BetaBinomial
from ansatz.likelihoods.beta_binomial import BetaBinomialDistribution as BetaBinomialDistribution
from ansatz.likelihoods.binomial import Binomial as Binomial
from ansatz.likelihoods.binomial import BinomialDistribution as BinomialDistribution
from ansatz.likelihoods.categorical import Categorical as Categorical
from ansatz.likelihoods.categorical import CategoricalDistribution as CategoricalDistribution
from ansatz.likelihoods.robust_losses import Cauchy as Cauchy
from ansatz.likelihoods.robust_losses import Charbonnier as Charbonnier
from ansatz.likelihoods.robust_losses import GemanMcClure as GemanMcClure
from ansatz.likelihoods.robust_losses import Welsch as Welsch
from ansatz.likelihoods.censored import Censored as Censored
from ansatz.likelihoods.survival_outcome import interval_censored as interval_censored
from ansatz.likelihoods.survival_outcome import right_censored as right_censored
from ansatz.likelihoods.cox import Cox as Cox
from ansatz.likelihoods.cross_entropy import CrossEntropy as CrossEntropy
from ansatz.likelihoods.curve_distribution import CurveDistribution as CurveDistribution
from ansatz.likelihoods.dice import Dice as Dice
from ansatz.likelihoods.dirichlet import Dirichlet as Dirichlet
from ansatz.likelihoods.dirichlet import DirichletDistribution as DirichletDistribution
from ansatz.likelihoods.discrete_hazard import DiscreteHazard as DiscreteHazard
from ansatz.likelihoods.energy_forces import EnergyForces as EnergyForces
from ansatz.likelihoods.exponential import Exponential as Exponential
from ansatz.likelihoods.exponential import ExponentialDistribution as ExponentialDistribution
from ansatz.likelihoods.focal import Focal as Focal
from ansatz.likelihoods.gamma import Gamma as Gamma
from ansatz.likelihoods.gamma import GammaDistribution as GammaDistribution
from ansatz.likelihoods.generalized_pareto import GeneralizedPareto as GeneralizedPareto
from ansatz.likelihoods.generalized_pareto import (
    GeneralizedParetoDistribution as GeneralizedParetoDistribution,
)
from ansatz.likelihoods.point_loss import Huber as Huber
from ansatz.likelihoods.hurdle_negative_binomial import (
    HurdleNegativeBinomial as HurdleNegativeBinomial,
)
from ansatz.likelihoods.hurdle_negative_binomial import (
    HurdleNegativeBinomialDistribution as HurdleNegativeBinomialDistribution,
)
from ansatz.likelihoods.hurdle_poisson import HurdlePoisson as HurdlePoisson
from ansatz.likelihoods.hurdle_poisson import HurdlePoissonDistribution as HurdlePoissonDistribution
from ansatz.likelihoods.inverse_gaussian import InverseGaussian as InverseGaussian
from ansatz.likelihoods.inverse_gaussian import (
    InverseGaussianDistribution as InverseGaussianDistribution,
)
from ansatz.likelihoods.kl import KL as KL
from ansatz.likelihoods.laplace import Laplace as Laplace
from ansatz.likelihoods.laplace import LaplaceDistribution as LaplaceDistribution
from ansatz.likelihoods.log_normal import LogNormal as LogNormal
from ansatz.likelihoods.log_normal import LogNormalDistribution as LogNormalDistribution
from ansatz.likelihoods.point_loss import MAE as MAE
from ansatz.likelihoods.point_loss import MSE as MSE
from ansatz.likelihoods.multivariate_normal import MultivariateNormal as MultivariateNormal
from ansatz.likelihoods.multivariate_normal import (
    MultivariateNormalDistribution as MultivariateNormalDistribution,
)
from ansatz.likelihoods.negative_binomial import NegativeBinomial as NegativeBinomial
from ansatz.likelihoods.negative_binomial import (
    NegativeBinomialDistribution as NegativeBinomialDistribution,
)
from ansatz.likelihoods.normal import Normal as Normal
from ansatz.likelihoods.normal import NormalDistribution as NormalDistribution
from ansatz.likelihoods.normal_mixture import NormalMixture as NormalMixture
from ansatz.likelihoods.normal_mixture_distribution import (
    NormalMixtureDistribution as NormalMixtureDistribution,
)
from ansatz.likelihoods.ordinal import Ordinal as Ordinal
from ansatz.likelihoods.ordinal import OrdinalDistribution as OrdinalDistribution
from ansatz.likelihoods.partial_likelihood import partial_likelihood as partial_likelihood
from ansatz.likelihoods.plackett_luce import PlackettLuce as PlackettLuce
from ansatz.likelihoods.poisson import Poisson as Poisson
from ansatz.likelihoods.poisson import PoissonDistribution as PoissonDistribution
from ansatz.likelihoods.quantiles import Quantiles as Quantiles
from ansatz.likelihoods.plackett_luce import RankingDistribution as RankingDistribution
from ansatz.likelihoods.transformed import SqueezedDistribution as SqueezedDistribution
from ansatz.likelihoods.student_t import StudentT as StudentT
from ansatz.likelihoods.sum import Sum as Sum
from ansatz.likelihoods.student_t import StudentTDistribution as StudentTDistribution
from ansatz.likelihoods.survival_outcome import survival_outcome as survival_outcome
from ansatz.likelihoods.truncated import Truncated as Truncated
from ansatz.likelihoods.truncated import TruncatedDistribution as TruncatedDistribution
from ansatz.likelihoods.point_loss import Tukey as Tukey
from ansatz.likelihoods.tweedie import Tweedie as Tweedie
from ansatz.likelihoods.tweedie_distribution import TweedieDistribution as TweedieDistribution
from ansatz.likelihoods.distribution import VectorDistribution as VectorDistribution
from ansatz.likelihoods.von_mises import VonMises as VonMises
from ansatz.likelihoods.von_mises import VonMisesDistribution as VonMisesDistribution
from ansatz.likelihoods.weibull import Weibull as Weibull
from ansatz.likelihoods.weibull import WeibullDistribution as WeibullDistribution
from ansatz.likelihoods.zero_inflated import (
    ZeroInflatedNegativeBinomial as ZeroInflatedNegativeBinomial,
)
from ansatz.likelihoods.zero_inflated import ZeroInflatedPoisson as ZeroInflatedPoisson
from ansatz.likelihoods.zero_inflated import ZeroInflatedDistribution as ZeroInflatedDistribution
from ansatz.likelihoods.zero_one_inflated_beta import ZeroOneInflatedBeta as ZeroOneInflatedBeta
from ansatz.likelihoods.zero_one_inflated_beta import (
    ZeroOneInflatedBetaDistribution as ZeroOneInflatedBetaDistribution,
)
from ansatz.likelihoods.autoregressive import Autoregressive as Autoregressive
from ansatz.likelihoods.span import Span as Span
