"""Maps, dropout and normalisation of the features of nodes, dense or sparse."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from ansatz.errors import UsageError
from ansatz.layers.graph_batch import SparseRows

Features = Tensor | SparseRows


def map_nodes(linear: nn.Linear, x: Features) -> Tensor:
    """The affine map of each row; of sparse rows only their stored numbers are read."""
    if isinstance(x, Tensor):
        found: Tensor = linear(x)
        return found
    found = x @ linear.weight.T.contiguous()
    return found if linear.bias is None else found + linear.bias


def drop_features(x: Features, share: float, training: bool) -> Features:
    """Dropout. That of the stored numbers of sparse rows is that of the dense ones: 0 stays 0."""
    if not training or not share:
        return x
    if isinstance(x, Tensor):
        return functional.dropout(x, share)
    return x.with_values(functional.dropout(x.values, share))


class NodeBatchNorm(nn.Module):
    """Batch normalisation over all nodes; a single node has the running statistics.

    Args:
        features: numbers per node.

    Example:
        >>> import torch
        >>> from ansatz.layers.graphs.node_features import NodeBatchNorm
        >>> NodeBatchNorm(2)(torch.ones(1, 2)).shape
        torch.Size([1, 2])
    """

    def __init__(self, features: int) -> None:
        super().__init__()
        self.module = nn.BatchNorm1d(features)

    def forward(self, x: Tensor) -> Tensor:
        norm = self.module
        if len(x) > 1 or not self.training:
            found: Tensor = norm(x)
            return found
        return functional.batch_norm(
            x, norm.running_mean, norm.running_var, norm.weight, norm.bias, False, 0.0, norm.eps
        )


def node_norm(owner: str, name: str | None, features: int) -> nn.Module:
    """The norm of a layer's nodes: ``"batch"``, ``"layer"``, or None for none."""
    made = {None: nn.Identity, "batch": NodeBatchNorm, "layer": nn.LayerNorm}.get(name)
    if made is None:
        raise UsageError(f"norm of {owner} must be batch, layer or none, got {name!r}.")
    return nn.Identity() if name is None else made(features)


def as_parameter(*shape: int, scale: float, generator: torch.Generator | None) -> nn.Parameter:
    """Independent uniform numbers of standard deviation ``scale``."""
    from ansatz.layers.schemes import draw_uniform

    return nn.Parameter(draw_uniform(torch.empty(*shape), scale, generator))
