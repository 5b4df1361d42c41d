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
        return drop(x, share)
    return x.with_values(drop(x.values, share))


def drop(x: Tensor, share: float) -> Tensor:
    """Dropout with a share of a multiple of 1 / 65,536; a mask takes a quarter of torch's time.

    Four numbers are decided by one of 64 random bits from torch's global generator.

    Example:
        >>> import torch
        >>> from ansatz.layers.graphs.node_features import drop
        >>> sorted(set(drop(torch.ones(100), 0.5).tolist()))
        [0.0, 2.0]
    """
    level = round(share * 2**16)
    bits = torch.empty((x.numel() + 3) // 4, dtype=torch.int64, device=x.device)
    draws = bits.random_(-(2**63), None).view(torch.int16)[: x.numel()]
    kept = (draws >= level - 2**15).to(x.dtype).mul_(2**16 / (2**16 - level))
    return x * kept.view_as(x)


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
