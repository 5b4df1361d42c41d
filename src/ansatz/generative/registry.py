"""Generators by name."""

from typing import TYPE_CHECKING

from ansatz.registry import Registry

if TYPE_CHECKING:
    from ansatz.spec import InputSpec

registry = Registry(
    "generator",
    {
        "copula": "ansatz.generative.simple:Copula",
        "independent": "ansatz.generative.simple:Independent",
        "ppca": "ansatz.generative.simple:ProbabilisticPCA",
    },
)
SIMPLE = ("independent", "copula", "ppca")  # stand beside every fit
MOST_NUMBERS = 3_000  # of an example whose covariance is estimated


def default_of(spec: "InputSpec | None") -> str:
    """The generator where none is named: of tables and of grids."""
    return "copula"


create = registry.create
names = registry.names
register = registry.register
