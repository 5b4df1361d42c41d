"""Summaries of networks: layers, shapes, parameters, work, receptive fields."""

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd
from torch.nn.utils import parametrize

from ansatz.networks.receptive_field import field_of
from ansatz.networks.trace import Trace, trace
from ansatz.spec import Inputs


class LayerRow(NamedTuple):
    """One layer of a summary.

    Example:
        >>> from ansatz.networks import LayerRow
        >>> LayerRow("output", "Linear", (1,), 9, 8).parameters
        9
    """

    name: str
    type: str
    output_shape: tuple[int, ...]
    parameters: int
    multiply_adds: int
    receptive_field: tuple[int, ...] = ()  # pixels of the grid that one of its units sees


@dataclass(frozen=True)
class Summary:
    """The layers of a network in the order of its computation, and their sums.

    Args:
        rows: one per layer that computes something; shapes are for one example.
        parameters: all parameters, each counted once.
        trainable: those that are trained.
        multiply_adds: multiplications by weights that one example takes.
        depth: layers of weights on the longest way from input to output, :math:`L`.
        width: units of the widest hidden layer; of a convolution, its channels.
        capacity: hidden units in total.

    Example:
        >>> from ansatz.networks import MLP, summary
        >>> print(summary(MLP(3, 1, widths=(8,)), 3))
        layer       type         output  parameters  multiply-adds
        inputs      TableInputs  3                0              0
        hidden.0    Linear       8               32             24
        activation  SiLU         8                0              0
        output      Linear       1                9              8
        41 parameters (41 trained), 32 multiply-adds; depth 2, width 8, capacity 8 hidden units
    """

    rows: tuple[LayerRow, ...]
    parameters: int
    trainable: int
    multiply_adds: int
    depth: int
    width: int
    capacity: int

    def __str__(self) -> str:
        on_grid = any(row.receptive_field for row in self.rows)
        table = [("layer", "type", "output", "parameters", "multiply-adds", "receptive field")]
        for row in self.rows:
            counts = f"{row.parameters:,}", f"{row.multiply_adds:,}"
            field = _product(row.receptive_field)
            table.append((row.name, row.type, _product(row.output_shape), *counts, field))
        if not on_grid:
            table = [line[:-1] for line in table]  # type: ignore[misc]
        sizes = [max(len(text) for text in column) for column in zip(*table, strict=True)]
        lines = [
            "  ".join(
                text.rjust(size) if i > 2 else text.ljust(size)
                for i, (text, size) in enumerate(zip(line, sizes, strict=True))
            )
            for line in table
        ]
        lines.append(
            f"{self.parameters:,} parameters ({self.trainable:,} trained), "
            f"{self.multiply_adds:,} multiply-adds; depth {self.depth}, width {self.width}, "
            f"capacity {self.capacity:,} hidden units"
        )
        return "\n".join(lines)


def _product(sizes: tuple[int, ...]) -> str:
    return " x ".join(str(size) for size in sizes)


def summary(network: nn.Module, inputs: Inputs | Tensor | tuple[Tensor, ...]) -> Summary:
    """Lists the layers of ``network`` with shapes, parameters, work and receptive fields.

    It is run once on zeros, evaluating, without gradients; its modes are restored afterwards. A
    convolution with a kernel of k pixels takes :math:`k C_i C_o` multiply-adds for each of its
    outputs' places (:math:`k / groups` of them with groups).

    Args:
        network: any module.
        inputs: the columns of a table, their number, channels and size of a grid, or the network's
            argument (a tuple of several) for a batch of one.

    Returns:
        A ``Summary``; ``str()`` of it is a table.

    Example:
        >>> from ansatz.networks import MLP, summary
        >>> found = summary(MLP(3, 2, widths=(16, 8)), 3)
        >>> found.depth, found.width, found.capacity, found.parameters
        (3, 16, 24, 218)
    """
    seen = trace(network, inputs)
    rows, counted = [], set[nn.Module]()
    for name, module, shape, fields in seen.calls:
        if not _computes(module, name):
            continue
        # A shared layer's parameters and work are counted once.
        work, size = (0, 0) if module in counted else (seen.work[name], _size(module))
        counted.add(module)
        field = () if fields is None else field_of(fields).size
        rows.append(LayerRow(name, type(module).__name__, shape, size, work, field))
    widths, depth = _widths(network, seen)
    parameters = list(network.parameters())
    return Summary(
        rows=tuple(rows),
        parameters=sum(p.numel() for p in parameters),
        trainable=sum(p.numel() for p in parameters if p.requires_grad),
        multiply_adds=seen.work.total(),
        depth=depth,
        width=max(widths, default=0),
        capacity=sum(widths),
    )


def _computes(module: nn.Module, name: str) -> bool:
    """A leaf, or a module with weights of its own; parametrisations belong to their layer."""
    if "parametrizations" in name or isinstance(module, nn.Identity):
        return False
    parts = [child for child, _ in module.named_children() if child != "parametrizations"]
    return not parts or any(True for _ in module.parameters(recurse=False))


def _size(module: nn.Module) -> int:
    """Parameters of its own; a parametrisation's are its layer's."""
    own = [*module.parameters(recurse=False)]
    if parametrize.is_parametrized(module):
        own += module.get_submodule("parametrizations").parameters()
    return sum(p.numel() for p in own)


def _widths(network: nn.Module, seen: Trace) -> tuple[tuple[int, ...], int]:
    """Units of the hidden layers, and the depth.

    A network of ours on tables knows its widths; of another, the layers with weights tell them.
    """
    known = getattr(network, "widths", None)
    if known is not None and seen.fields is None:
        return tuple(known), len(known) + 1
    found = [
        module.out_features if isinstance(module, nn.Linear) else module.out_channels
        for _, module, _, _ in seen.calls
        if isinstance(module, (nn.Linear, _ConvNd))
    ]
    return tuple(found[:-1]), max(seen.depth, 1)
