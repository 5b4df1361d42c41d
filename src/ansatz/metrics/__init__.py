"""Numbers that judge predictions."""

from ansatz.metrics.registry import names as names
from ansatz.metrics.registry import registry as registry

from ansatz.metrics.classification import accuracy as accuracy
from ansatz.metrics.classification import auc as auc
from ansatz.metrics.classification import brier as brier
from ansatz.metrics.classification import ece as ece
from ansatz.metrics.crps import crps as crps
from ansatz.metrics.crps import sample_crps as sample_crps
from ansatz.metrics.errors import mae as mae
from ansatz.metrics.errors import r2 as r2
from ansatz.metrics.errors import rmse as rmse
from ansatz.metrics.judge import judge as judge
from ansatz.metrics.log_score import log_score as log_score
from ansatz.metrics.ranking import kendall_tau as kendall_tau
from ansatz.metrics.ranking import top_one_accuracy as top_one_accuracy
from ansatz.metrics.weights import row_mean as row_mean
from ansatz.metrics.weights import standard_error as standard_error
