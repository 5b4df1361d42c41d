"""The loop: objectives, steps, trainer, checkpoints."""

from ansatz.training.objectives import Loss as Loss
from ansatz.training.objectives import Supervised as Supervised
from ansatz.training.step import Step as Step
