"""Generators by name."""

from typing import TYPE_CHECKING

from ansatz.registry import Registry

if TYPE_CHECKING:
    from ansatz.spec import InputSpec

registry = Registry(
    "generator",
    {
        "autoencoder": "ansatz.generative.autoencoder:Autoencoder",
        "copula": "ansatz.generative.simple:Copula",
        "diffusion": "ansatz.generative.diffusion.generator:Diffusion",
        "gan": "ansatz.generative.gan:GenerativeAdversarial",
        "independent": "ansatz.generative.simple:Independent",
        "ppca": "ansatz.generative.simple:ProbabilisticPCA",
        "vae": "ansatz.generative.autoencoder:VariationalAutoencoder",
    },
)
SIMPLE = ("independent", "copula", "ppca")  # stand beside every fit
MOST_NUMBERS = 3_000  # of an example whose covariance is estimated


def default_of(spec: "InputSpec | None") -> str:
    """The generator where none is named: of tables and of grids."""
    return "vae" if spec is not None and len(spec.size) else "copula"


create = registry.create
names = registry.names
register = registry.register
