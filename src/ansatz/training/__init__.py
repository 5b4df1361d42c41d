"""The loop: objectives, steps, trainer, checkpoints."""

from ansatz.training.analytic import AnalyticStep as AnalyticStep
from ansatz.training.callbacks import Callback as Callback
from ansatz.training.device import choose_device as choose_device
from ansatz.training.distillation import Distillation as Distillation
from ansatz.training.extragradient import ExtragradientStep as ExtragradientStep
from ansatz.training.gradient_step import GradientStep as GradientStep
from ansatz.training.progress import History as History
from ansatz.training.interrupt import Interrupted as Interrupted
from ansatz.training.objectives import Loss as Loss
from ansatz.training.objectives import Supervised as Supervised
from ansatz.training.penalties import penalties as penalties
from ansatz.training.second_order import NewtonStep as NewtonStep
from ansatz.training.step import Step as Step
from ansatz.training.trainer import Trainer as Trainer
from ansatz.training.callbacks import Unfreezing as Unfreezing
