"""Numbers that judge predictions."""

from ansatz.metrics.registry import names as names
from ansatz.metrics.registry import registry as registry

from ansatz.metrics.circular import angular_distance as angular_distance
from ansatz.metrics.circular import mean_angular_error as mean_angular_error
from ansatz.metrics.circular import sample_circular_crps as sample_circular_crps
from ansatz.metrics.classification import accuracy as accuracy
from ansatz.metrics.classification import auc as auc
from ansatz.metrics.classification import brier as brier
from ansatz.metrics.classification import ece as ece
from ansatz.metrics.concordance import antolini_c as antolini_c
from ansatz.metrics.concordance import harrell_c as harrell_c
from ansatz.metrics.concordance import uno_c as uno_c
from ansatz.metrics.crps import crps as crps
from ansatz.metrics.crps import sample_crps as sample_crps
from ansatz.metrics.energy import energy_score as energy_score
from ansatz.metrics.energy import sample_energy_score as sample_energy_score
from ansatz.metrics.errors import mae as mae
from ansatz.metrics.errors import r2 as r2
from ansatz.metrics.errors import rmse as rmse
from ansatz.metrics.judge import judge as judge
from ansatz.metrics.kaplan_meier import aalen_johansen as aalen_johansen
from ansatz.metrics.kaplan_meier import kaplan_meier as kaplan_meier
from ansatz.metrics.kaplan_meier import nelson_aalen as nelson_aalen
from ansatz.metrics.kaplan_meier import StepCurve as StepCurve
from ansatz.metrics.log_score import log_score as log_score
from ansatz.metrics.pinball import pinball as pinball
from ansatz.metrics.ranking import kendall_tau as kendall_tau
from ansatz.metrics.ranking import top_one_accuracy as top_one_accuracy
from ansatz.metrics.survival import brier_skill as brier_skill
from ansatz.metrics.survival import brier_survival as brier_survival
from ansatz.metrics.survival import d_calibration as d_calibration
from ansatz.metrics.survival import integrated_brier as integrated_brier
from ansatz.metrics.weights import row_mean as row_mean
from ansatz.metrics.weights import standard_error as standard_error
