"""Rows as vectors of numbers, as kernels take them."""

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.spec import InputSpec


def as_numbers(inputs: tuple[Tensor, ...], spec: InputSpec) -> Tensor:
    """All inputs of a row as one vector; levels that a network would embed as indicators."""
    if spec.structure != "vector" and not spec.size:
        raise UsageError("inference gp takes rows of one length; take --inference ensemble.")
    parts = [inputs[0].double().flatten(1)]
    for codes, count in zip(
        inputs[1].T if len(inputs) > 1 else (), spec.cardinalities, strict=True
    ):
        parts.append(nn.functional.one_hot(codes, count + 1).double())
    return torch.cat(parts, 1)
