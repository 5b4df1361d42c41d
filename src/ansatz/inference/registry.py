"""Ways to be unsure about weights, by name."""

from ansatz.registry import Registry

registry = Registry(
    "inference",
    {
        "point": "ansatz.inference.point:Point",
        "ensemble": "ansatz.inference.ensemble:Ensemble",
        "map": "ansatz.inference.map:Map",
        "laplace": "ansatz.inference.laplace:Laplace",
        "swag": "ansatz.inference.swag:Swag",
        "vi": "ansatz.inference.vi:Variational",
        "sgld": "ansatz.inference.stochastic_gradient:SGLD",
        "sghmc": "ansatz.inference.stochastic_gradient:SGHMC",
        "dropout": "ansatz.inference.dropout:Dropout",
        "gp": "ansatz.inference.gp:GaussianProcess",
        "nngp": "ansatz.inference.wide:NNGP",
        "ntk": "ansatz.inference.wide:NTK",
        "mh": "ansatz.inference.mcmc:MetropolisHastings",
        "mala": "ansatz.inference.mcmc:Mala",
        "hmc": "ansatz.inference.mcmc:HamiltonianMonteCarlo",
        "nuts": "ansatz.inference.mcmc:Nuts",
    },
)
DEFAULT = "point"
AUTO = "auto"  # chosen by the number of rows
MOST_ROWS = 1_000  # of a default ensemble: one network is worse than ten, and ten take seconds
FEWEST_ROWS = 100  # of a default ensemble: with fewer, a penalised network sees all rows at once


def choose(rows: float, *, networks: bool, steered: bool, members: bool) -> str:
    """Chooses the inference that was not asked for.

    From 100 to 1,000 training rows of a table it is the ensemble: on few rows it is better than one
    network and than the linear model, which it contains, and its intervals hold what they claim
    (``ansatz bench coverage``). One network is left where the ensemble has no out-of-fold scores
    to be mixed by, and where options steer the training of a network.

    Args:
        rows: sum of the weights of the training rows.
        networks: whether default networks of a likelihood that scores row by row are fitted.
        steered: whether options of the training or the network were set.
        members: whether a number of members was set.
    """
    few = FEWEST_ROWS <= rows <= MOST_ROWS and networks and not steered
    return "ensemble" if members or few else DEFAULT


create = registry.create
names = registry.names
register = registry.register
