"""Inputs of several kinds in one network: a body for each, joined before the head."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.networks.part_inputs import cut_inputs
from ansatz.networks.registry import create
from ansatz.spec import Inputs, InputSpec

BODIES = {"vector": "mlp", "grid": "small_resnet", "sequence": "bag"}  # by a part's structure


class Joined(nn.Module):
    r"""A body for each part of the inputs: what it says alone, and its features for a joint head.

    .. math:: f(x) = \sum_i a_i(x_i) + W \, \sigma([b_1(x_1), \dots, b_m(x_m)]) + c

    A body's network gives both, P numbers :math:`a_i` and F features :math:`b_i`: the parts add up,
    and the head W, with :math:`\sigma` the SiLU, holds what only several of them show. A body that
    begins with the training rows (``bag``) does so with its own :math:`a_i`.

    Args:
        inputs: a spec with parts, :meth:`InputSpec.joined`.
        outputs: raw numbers, :math:`P`.
        features: of each body, :math:`F`.
        bodies: options of the bodies' factories by the name of their part; ``"network"`` among
            them names another network than the default of the part's structure.
        generator: of the initial weights.

    Shapes:
        - inputs: the tensors of the first part, then those of the second, and so on; sequences
          have two, values and mask, and so have columns with embedded levels, x and codes.
        - returns: ``(B, P)``.
    """

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        features: int = 32,
        bodies: Mapping[str, Mapping[str, Any]] | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.spec = InputSpec.of(inputs)
        if not self.spec.parts:
            raise UsageError("joined needs inputs of several parts; for one take its own network.")
        unknown = set(bodies or {}) - {name for name, _ in self.spec.parts}
        if unknown:
            known = ", ".join(name for name, _ in self.spec.parts)
            raise UsageError(f"bodies: no part is called '{unknown.pop()}'. Parts: {known}.")
        self.features, self.bodies = features, nn.ModuleDict()
        for name, part in self.spec.parts:
            options = dict((bodies or {}).get(name, {}))
            network = options.pop("network", BODIES.get(part.structure, "mlp"))
            self.bodies[name] = create(
                network, inputs=part, outputs=outputs + features, generator=generator, **options
            )
        width = features * len(self.spec.parts)
        self.head = nn.Linear(width, outputs)
        with torch.no_grad():
            bound = width**-0.5
            self.head.weight.uniform_(-bound, bound, generator=generator)
            self.head.bias.zero_()

    def begin(self, *inputs: Tensor, slopes: Tensor) -> None:
        """Shows the training rows to the bodies that begin with them.

        Args:
            inputs: of all rows.
            slopes: ``(N, P)``, of the loss in the outputs at the constant model.
        """
        own = torch.cat([slopes, slopes.new_zeros(len(slopes), self.features)], 1)
        for body, part in zip(self.bodies.values(), self._cut(inputs), strict=True):
            begin: Any = getattr(body, "begin", None)
            if begin is not None:
                begin(*part, slopes=own)

    def forward(self, *inputs: Tensor) -> Tensor:
        outputs = self.head.out_features
        found = [
            body(*part) for body, part in zip(self.bodies.values(), self._cut(inputs), strict=True)
        ]
        alone = torch.stack([each[:, :outputs] for each in found]).sum(0)
        joint = torch.cat([each[:, outputs:] for each in found], 1)
        return alone + self.head(nn.functional.silu(joint))

    def _cut(self, inputs: tuple[Tensor, ...]) -> list[tuple[Tensor, ...]]:
        return cut_inputs("joined", self.spec, inputs)
