"""Update rules and schedules that torch lacks, and names for those that it has."""

from ansatz.optim.registry import create as create
from ansatz.optim.registry import names as names
from ansatz.optim.registry import register as register
from ansatz.optim.registry import registry as registry

from ansatz.optim.averaging import WeightAverage as WeightAverage
from ansatz.optim.defaults import OptimizerDefaults as OptimizerDefaults
from ansatz.optim.defaults import default_settings as default_settings
from ansatz.optim.defaults import takes_option as takes_option
from ansatz.optim.entropy_sgd import EntropySGD as EntropySGD
from ansatz.optim.extragradient import Extragradient as Extragradient
from ansatz.optim.flat_adamw import FlatAdamW as FlatAdamW
from ansatz.optim.descent import HeavyBall as HeavyBall
from ansatz.optim.lr_finder import LearningRateCurve as LearningRateCurve
from ansatz.optim.lr_finder import find_learning_rate as find_learning_rate
from ansatz.optim.descent import momentum as momentum
from ansatz.optim.descent import nesterov as nesterov
from ansatz.optim.newton import Newton as Newton
from ansatz.optim.newton import gradient_and_hessian as gradient_and_hessian
from ansatz.optim.projected import ProjectedGradient as ProjectedGradient
from ansatz.optim.descent import ProximalSGD as ProximalSGD
from ansatz.optim.descent import soft_threshold as soft_threshold
from ansatz.optim.schedules import Schedule as Schedule
from ansatz.optim.schedules import create_schedule as create_schedule
from ansatz.optim.schedules import schedules as schedules
from ansatz.optim.descent import SignDescent as SignDescent
