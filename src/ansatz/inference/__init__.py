"""The third axis: beyond one weight vector, posteriors over networks and what they predict."""

from ansatz.inference.conformal import conformal_interval as conformal_interval
from ansatz.inference.conformal import conformal_quantile as conformal_quantile
from ansatz.inference.conformal import conformal_scores as conformal_scores
from ansatz.inference.ensemble import Ensemble as Ensemble
from ansatz.inference.posterior import Point as Point
from ansatz.inference.posterior import Posterior as Posterior
from ansatz.inference.recalibration import Recalibration as Recalibration
from ansatz.inference.registry import create as create
from ansatz.inference.registry import names as names
from ansatz.inference.registry import registry as registry
from ansatz.inference.stacking import chance_of_best as chance_of_best
from ansatz.inference.stacking import stack_weights as stack_weights
from ansatz.inference.tiles import Tile as Tile
from ansatz.inference.tiles import predict_tiles as predict_tiles
from ansatz.inference.tiles import tiles as tiles
