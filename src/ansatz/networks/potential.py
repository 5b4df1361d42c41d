"""Energies as sums over atoms, and their derivatives."""

from typing import Any

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.molecule_batch import MoleculeBatch
from ansatz.layers.ragged import rows_of
from ansatz.spec import Inputs, InputSpec

VIRIAL = 9  # numbers between the number of atoms and the forces
LEAD = 2 + VIRIAL  # numbers before the forces


class Potential(nn.Module):
    r"""A network whose answer is a sum over atoms; with ``forces`` also minus its gradient.

    .. math:: E = \sum_i \left[ c_{z_i} + \epsilon_i(\{r_{ij}, z_j\}) \right], \qquad
        F_i = -\frac{\partial E}{\partial x_i}, \qquad
        W = \sum_{(i,j)} r_{ij} \otimes \frac{\partial E}{\partial r_{ij}}

    with the constant :math:`c_z` of an element, which :meth:`start` fits to the outcomes. A
    network defines ``atomic(batch, vectors)``, the :math:`\epsilon_i`, ``(N, P)``; it may know a
    faster way to the gradient than :meth:`gradient`.

    Shapes:
        - returns: ``(B, P)``; with ``forces`` ``(B, 11 + 3 A)``: the energy, the number of atoms,
          the virial W row by row, and the forces of the atoms, 0 behind the last one of A.
    """

    reference: Tensor
    heads: tuple[str, ...] = ()

    def __init__(self, name: str, inputs: Inputs, outputs: int, *, forces: bool) -> None:
        super().__init__()
        spec = InputSpec.of(inputs)
        if spec.structure != "molecule":
            raise UsageError(
                f"{name} takes molecules, got inputs of structure '{spec.structure}'; say "
                "InputSpec.molecule(elements, cutoff)."
            )
        if forces and outputs != 1:
            raise UsageError(f"{name}: forces are those of one energy, got {outputs} outputs.")
        self.spec, self.outputs, self.forces = spec, outputs, forces
        zeros = torch.zeros(spec.features, outputs, dtype=torch.float64)
        self.register_buffer("reference", zeros)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Keeps the constants of elements in float64: energies are large, differences small."""
        kept = self.reference
        super()._apply(fn, recurse)
        if not kept.is_meta and not self.reference.is_meta:
            self.reference = kept.to(self.reference.device)
        return self

    def atomic(self, batch: MoleculeBatch, vectors: Tensor) -> Tensor:
        """The contribution of each atom, ``(N, P)``, without the constant of its element."""
        raise NotImplementedError

    def gradient(self, batch: MoleculeBatch, *, graph: bool) -> tuple[Tensor, Tensor]:
        """Contributions ``(N, 1)`` and the gradient of their sum in the vectors, ``(E, 3)``."""
        with torch.enable_grad():
            vectors = batch.vectors.detach().requires_grad_()
            each = self.atomic(batch, vectors)
            (found,) = torch.autograd.grad(
                each.sum(), vectors, create_graph=graph, materialize_grads=True
            )
        return (each, found) if graph else (each.detach(), found.detach())

    def forward(self, batch: MoleculeBatch) -> Tensor:
        if not self.forces:
            return self.total(batch, self.atomic(batch, batch.vectors))
        # Forces are gradients, also where nothing is trained and gradients are switched off.
        each, gradient = self.gradient(batch, graph=torch.is_grad_enabled())
        pairs = gradient - gradient.index_select(0, batch.back)
        force = batch.sum_pairs(pairs)  # (N, 3)
        vectors = batch.vectors.detach()
        frame = rows_of(batch.pair_offsets, len(vectors))
        outer = (vectors.unsqueeze(2) * gradient.unsqueeze(1)).reshape(-1, VIRIAL)
        virial = outer.new_zeros(batch.count_rows(), VIRIAL).index_add(0, frame, outer.detach())
        energy = self.total(batch, each)
        widest = int(batch.atoms.max()) if batch.count_rows() else 0
        atom = torch.arange(len(force), device=force.device)
        first = rows_of(batch.offsets, len(force))
        place = first * widest + atom - batch.offsets[first]
        padded = force.new_zeros(batch.count_rows() * widest, 3).index_copy(0, place, force)
        lead = torch.cat([energy, batch.atoms.unsqueeze(1), virial], 1)
        return torch.cat([lead, padded.reshape(-1, 3 * widest)], 1)

    def total(self, batch: MoleculeBatch, each: Tensor) -> Tensor:
        """Sums over the atoms of each frame, ``(B, P)`` float64, the constants among them."""
        return batch.sum(each.double() + self.reference.index_select(0, batch.species))

    def settle(self, constants: Tensor) -> None:
        """Adds constants of elements, ``(S, P)``."""
        self.reference += constants.to(self.reference)

    def start(self, batch: MoleculeBatch, constants: Tensor, unit: Tensor) -> None:
        """Begins training at constants of elements; ``unit`` is the scale of contributions."""
        self.settle(constants)
