"""The likelihoods by name."""

from ansatz.registry import Registry

registry = Registry(
    "likelihood",
    {
        "bernoulli": "ansatz.likelihoods.bernoulli:Bernoulli",
        "categorical": "ansatz.likelihoods.categorical:Categorical",
        "cross_entropy": "ansatz.likelihoods.cross_entropy:CrossEntropy",
        "gamma": "ansatz.likelihoods.gamma:Gamma",
        "huber": "ansatz.likelihoods.huber:Huber",
        "laplace": "ansatz.likelihoods.laplace:Laplace",
        "mae": "ansatz.likelihoods.mae:MAE",
        "mse": "ansatz.likelihoods.mse:MSE",
        "normal": "ansatz.likelihoods.normal:Normal",
        "poisson": "ansatz.likelihoods.poisson:Poisson",
        "student_t": "ansatz.likelihoods.student_t:StudentT",
    },
)
create = registry.create
names = registry.names
register = registry.register
