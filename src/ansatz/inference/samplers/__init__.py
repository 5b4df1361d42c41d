"""Samplers as pure steps: ``state, info = step(state, density, settings, generator)``."""

from ansatz.inference.samplers import hmc as hmc
from ansatz.inference.samplers import langevin as langevin
from ansatz.inference.samplers import mala as mala
from ansatz.inference.samplers import metropolis as metropolis
from ansatz.inference.samplers import nuts as nuts
from ansatz.inference.samplers import sghmc as sghmc
from ansatz.inference.samplers import sgld as sgld
from ansatz.inference.samplers.density import batched as batched
from ansatz.inference.samplers.density import with_gradient as with_gradient
from ansatz.inference.samplers.metric import Metric as Metric
