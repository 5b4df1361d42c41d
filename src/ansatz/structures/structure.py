"""The contract of the first axis: what does x look like?"""

from collections.abc import Sequence
from typing import Any, Protocol

from ansatz.spec import InputSpec


class Structure(Protocol):
    """One answer, and all that the library needs to know about it.

    ``network`` and ``linear_network`` are the names of the default network and of the linear one
    (empty where none makes sense); ``symmetry`` names the group under which the answer must not
    change; ``report`` is the ``"module:Class"`` of what it contributes to a report.

    Example:
        >>> from ansatz.structures import Structure, Vector
        >>> structure: Structure = Vector()
        >>> structure.network, structure.symmetry
        ('mlp', 'none')
    """

    name: str
    network: str
    linear_network: str
    symmetry: str
    report: str

    def spec(self, x: Any) -> InputSpec:
        """The shape of one example, read off a batch of them."""
        ...

    def collate(self, rows: Sequence[Any]) -> tuple[Any, ...]:
        """Examples put together into the positional arguments of a network."""
        ...
