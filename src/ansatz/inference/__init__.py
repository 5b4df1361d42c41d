"""The third axis: how sure do you need to be, and what calibrates the answer."""

from ansatz.fitting.intervals import conformal_interval as conformal_interval
from ansatz.fitting.intervals import conformal_quantile as conformal_quantile
from ansatz.fitting.intervals import conformal_scores as conformal_scores
from ansatz.fitting.recalibration import Recalibration as Recalibration
from ansatz.inference.combination import Combination as Combination
from ansatz.inference.convergence import ess_bulk as ess_bulk
from ansatz.inference.convergence import ess_mean as ess_mean
from ansatz.inference.convergence import ess_tail as ess_tail
from ansatz.inference.convergence import mcse_mean as mcse_mean
from ansatz.inference.convergence import r_hat as r_hat
from ansatz.inference.diagnosis import Diagnosis as Diagnosis
from ansatz.inference.priors import Prior as Prior
from ansatz.inference.registry import create as create
from ansatz.inference.registry import names as names
from ansatz.inference.registry import register as register
from ansatz.inference.registry import registry as registry
from ansatz.inference.chains import Chains as Chains
from ansatz.inference.sampling import sample as sample
from ansatz.inference.combination import probability_of_best as probability_of_best
from ansatz.inference.combination import stack_weights as stack_weights
