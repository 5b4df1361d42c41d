"""Inputs of several kinds in one network: a body for each, joined before the head."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.networks.registry import create
from ansatz.spec import Inputs, InputSpec

BODIES = {"vector": "mlp", "grid": "small_resnet"}  # by the structure of a part


class Joined(nn.Module):
    r"""A body for each part of the inputs, their features side by side, and a linear head.

    .. math:: f(x) = W \, [b_1(x_1), \dots, b_m(x_m)] + c

    Args:
        inputs: a spec with parts, :meth:`InputSpec.joined`.
        outputs: raw numbers.
        features: of each body, :math:`F`.
        bodies: options of the bodies' factories by the name of their part; ``"network"`` among
            them names another network than the default of the part's structure.
        generator: of the initial weights.

    Shapes:
        - inputs: the tensors of the first part, then those of the second, and so on; a part with
          embedded levels has two, x and codes.
        - returns: ``(B, outputs)``.
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
        spec = InputSpec.of(inputs)
        if not spec.parts:
            raise UsageError("joined needs inputs of several parts; for one take its own network.")
        self.counts = [1 + bool(part.cardinalities) for _, part in spec.parts]
        self.bodies = nn.ModuleDict()
        for name, part in spec.parts:
            options = dict((bodies or {}).get(name, {}))
            network = options.pop("network", BODIES.get(part.structure, "mlp"))
            self.bodies[name] = create(
                network, inputs=part, outputs=features, generator=generator, **options
            )
        width = features * len(spec.parts)
        self.head = nn.Linear(width, outputs)
        with torch.no_grad():
            bound = width**-0.5
            self.head.weight.uniform_(-bound, bound, generator=generator)
            self.head.bias.zero_()

    def forward(self, *inputs: Tensor) -> Tensor:
        if len(inputs) != sum(self.counts):
            raise ValueError(
                f"joined takes {sum(self.counts)} tensors, those of {', '.join(self.bodies)} in "
                f"turn, got {len(inputs)}."
            )
        found, first = [], 0
        for body, count in zip(self.bodies.values(), self.counts, strict=True):
            found.append(body(*inputs[first : first + count]))
            first += count
        return self.head(nn.functional.silu(torch.cat(found, -1)))
