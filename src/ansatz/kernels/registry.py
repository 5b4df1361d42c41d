"""Kernels by name."""

from ansatz.registry import Registry

registry = Registry(
    "kernel",
    {
        "arc_cosine": "ansatz.kernels.kernel:ArcCosine",
        "constant": "ansatz.kernels.kernel:Constant",
        "linear": "ansatz.kernels.kernel:Linear",
        "matern12": "ansatz.kernels.stationary:Matern12",
        "matern32": "ansatz.kernels.stationary:Matern32",
        "matern52": "ansatz.kernels.stationary:Matern52",
        "periodic": "ansatz.kernels.stationary:Periodic",
        "polynomial": "ansatz.kernels.kernel:Polynomial",
        "rational_quadratic": "ansatz.kernels.stationary:RationalQuadratic",
        "rbf": "ansatz.kernels.stationary:RBF",
        "white": "ansatz.kernels.kernel:White",
    },
)
create = registry.create
names = registry.names
register = registry.register
