"""Beyond one weight vector: posteriors over networks and what they predict."""

from ansatz.inference.ensemble import Ensemble as Ensemble
from ansatz.inference.recalibration import Recalibration as Recalibration
from ansatz.inference.stacking import stack_weights as stack_weights
