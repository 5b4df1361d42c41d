"""The linear model of molecules: each atom adds the constant of its element."""

import torch
from torch import Tensor, nn

from ansatz.layers.molecule_batch import MoleculeBatch
from ansatz.networks.potential import Potential
from ansatz.spec import Inputs


class ElementCounts(Potential):
    r"""A number for each atom of an element; no position matters, and forces are zero.

    .. math:: E = \sum_z n_z c_z

    Args:
        inputs: ``InputSpec.molecule(elements, cutoff)``.
        outputs: :math:`P`.
        forces: whether forces come with the energy: they are 0.
        generator: for the contract of factories; nothing is drawn.

    Shapes:
        - batch: :class:`~ansatz.layers.MoleculeBatch`.
        - returns: ``(B, P)``; with ``forces`` ``(B, 11 + 3 A)``, see ``networks/potential.py``.

    Example:
        >>> from ansatz.networks import ElementCounts
        >>> from ansatz.spec import InputSpec
        >>> sum(p.numel() for p in ElementCounts(InputSpec.molecule(2, 4.5), 1).parameters())
        2
    """

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        forces: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__("element_counts", inputs, outputs, forces=forces)
        self.constants = nn.Parameter(torch.zeros(self.spec.features, outputs))

    def atomic(self, batch: MoleculeBatch, vectors: Tensor) -> Tensor:
        return self.constants.index_select(0, batch.species)
