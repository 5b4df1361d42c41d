"""Training: objectives, steps, the trainer and its callbacks."""

from ansatz.training.fast.step import AnalyticStep as AnalyticStep
from ansatz.training.run import Callback as Callback
from ansatz.training.machine import choose_device as choose_device
from ansatz.training.machine import alone as alone
from ansatz.training.machine import current_processes as current_processes
from ansatz.training.distillation import Distillation as Distillation
from ansatz.training.other_steps import ExtragradientStep as ExtragradientStep
from ansatz.training.torch_losses import FunctionObjective as FunctionObjective
from ansatz.training.game_step import GameStep as GameStep
from ansatz.training.game_step import Player as Player
from ansatz.training.gradient_step import GradientStep as GradientStep
from ansatz.training.run import History as History
from ansatz.errors import Interrupted as Interrupted
from ansatz.training.torch_data import LoaderSource as LoaderSource
from ansatz.training.objectives import Loss as Loss
from ansatz.training.objectives import Supervised as Supervised
from ansatz.training.penalties import Penalty as Penalty
from ansatz.training.penalties import penalties as penalties
from ansatz.training.other_steps import NewtonStep as NewtonStep
from ansatz.training.margins import PairMargin as PairMargin
from ansatz.training.margins import TripletMargin as TripletMargin
from ansatz.training.objectives import Step as Step
from ansatz.training.torch_losses import TorchLoss as TorchLoss
from ansatz.training.trainer import Trainer as Trainer
from ansatz.training.callbacks import Unfreezing as Unfreezing
