"""What kind of quantity is y: laws p(y | f(x)) and losses."""

from ansatz.likelihoods.distribution import Distribution as Distribution
from ansatz.likelihoods.likelihood import Likelihood as Likelihood
from ansatz.likelihoods.normal import Normal as Normal
from ansatz.likelihoods.normal import NormalDistribution as NormalDistribution
from ansatz.likelihoods.poisson import Poisson as Poisson
from ansatz.likelihoods.poisson import PoissonDistribution as PoissonDistribution
