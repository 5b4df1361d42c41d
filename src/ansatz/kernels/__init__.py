"""Positive definite functions of two inputs, and Gaussian processes."""

from ansatz.kernels.kernel import ArcCosine as ArcCosine
from ansatz.kernels.kernel import Constant as Constant
from ansatz.kernels.kernel import Kernel as Kernel
from ansatz.kernels.kernel import Linear as Linear
from ansatz.kernels.kernel import Polynomial as Polynomial
from ansatz.kernels.kernel import Product as Product
from ansatz.kernels.kernel import Sum as Sum
from ansatz.kernels.kernel import White as White
from ansatz.kernels.latent import LatentProcess as LatentProcess
from ansatz.kernels.latent import approximate as approximate
from ansatz.kernels.latent import approximate_evidence as approximate_evidence
from ansatz.kernels.latent import (
    maximise_approximate_evidence as maximise_approximate_evidence,
)
from ansatz.kernels.regression import Process as Process
from ansatz.kernels.regression import condition as condition
from ansatz.kernels.regression import evidence as evidence
from ansatz.kernels.regression import maximise_evidence as maximise_evidence
from ansatz.kernels.registry import create as create
from ansatz.kernels.registry import names as names
from ansatz.kernels.registry import register as register
from ansatz.kernels.registry import registry as registry
from ansatz.kernels.stationary import RBF as RBF
from ansatz.kernels.stationary import Matern12 as Matern12
from ansatz.kernels.stationary import Matern32 as Matern32
from ansatz.kernels.stationary import Matern52 as Matern52
from ansatz.kernels.stationary import Periodic as Periodic
from ansatz.kernels.stationary import RationalQuadratic as RationalQuadratic
from ansatz.kernels.tangent import Linearized as Linearized
from ansatz.kernels.tangent import empirical_ntk as empirical_ntk
from ansatz.kernels.tangent import linearize as linearize
from ansatz.kernels.tangent import ntk_vector_product as ntk_vector_product
from ansatz.kernels.infinite_width import Twin as Twin
from ansatz.kernels.infinite_width import twin as twin
