"""What a network consists of: layers, shapes, parameters, work."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.utils.flop_counter import FlopCounterMode

from ansatz.spec import InputSpec


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


@dataclass(frozen=True)
class Summary:
    """The layers of a network in the order of its computation, and their sums.

    Args:
        rows: one per layer that computes something; shapes are for one example.
        parameters: all parameters, each counted once.
        trainable: those that are trained.
        multiply_adds: multiplications by weights that one example takes.
        depth: layers of weights from input to output, :math:`L`.
        width: units of the widest hidden layer.
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
        table = [("layer", "type", "output", "parameters", "multiply-adds")]
        for row in self.rows:
            shape = " x ".join(str(size) for size in row.output_shape)
            table.append(
                (row.name, row.type, shape, f"{row.parameters:,}", f"{row.multiply_adds:,}")
            )
        sizes = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
        lines = [
            "  ".join(
                cell.rjust(size) if i > 2 else cell.ljust(size)
                for i, (cell, size) in enumerate(zip(line, sizes, strict=True))
            )
            for line in table
        ]
        lines.append(
            f"{self.parameters:,} parameters ({self.trainable:,} trained), "
            f"{self.multiply_adds:,} multiply-adds; depth {self.depth}, width {self.width}, "
            f"capacity {self.capacity:,} hidden units"
        )
        return "\n".join(lines)


def summary(network: nn.Module, inputs: InputSpec | int | Tensor | tuple[Tensor, ...]) -> Summary:
    """Counts what ``network`` does to one example.

    It is run once on zeros, evaluating, without gradients; its modes are restored afterwards.

    Args:
        network: any module.
        inputs: the columns of a table, their number, or the network's argument (a tuple of
            several) for a batch of one.

    Returns:
        A ``Summary``; ``str()`` of it is a table.

    Example:
        >>> from ansatz.networks import MLP, summary
        >>> found = summary(MLP(3, 2, widths=(16, 8)), 3)
        >>> found.depth, found.width, found.capacity, found.parameters
        (3, 16, 24, 218)
    """
    if isinstance(inputs, Tensor):
        inputs = (inputs,)
    arguments = inputs if isinstance(inputs, tuple) else _zeros(network, InputSpec.of(inputs))
    calls: list[tuple[str, nn.Module, tuple[int, ...]]] = []
    names = {module: name for name, module in network.named_modules()}

    def record(module: nn.Module, _: Any, output: Any) -> None:
        shape = tuple(output.shape[1:]) if isinstance(output, Tensor) else ()
        calls.append((names[module], module, shape))

    modes = {module: module.training for module in network.modules()}
    hooks = [m.register_forward_hook(record) for m in modes if _computes(m, names[m])]
    counter = FlopCounterMode(display=False)
    try:
        network.eval()
        with torch.no_grad(), counter:
            network(*arguments)
    finally:
        for hook in hooks:
            hook.remove()
        for module, mode in modes.items():
            module.training = mode
    return _count(network, calls, counter)


def _zeros(network: nn.Module, spec: InputSpec) -> tuple[Tensor, ...]:
    like = next(iter([*network.parameters(), *network.buffers()]), torch.empty(0))
    x = torch.zeros(1, spec.features, dtype=like.dtype, device=like.device)
    codes = torch.zeros(1, len(spec.cardinalities), dtype=torch.long, device=like.device)
    return (x, codes) if spec.cardinalities else (x,)


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


def _work(module: nn.Module, path: str, flops: dict[str, dict[Any, int]]) -> int:
    """Multiply-adds of its own, without those that its parts report themselves."""
    parts = [f"{path}.{name}" for name, _ in module.named_children()]
    total, inner = (
        sum(sum(flops.get(place, {}).values()) for place in places) for places in ([path], parts)
    )
    return (total - inner) // 2  # torch counts a multiplication and an addition as two


def _count(
    network: nn.Module,
    calls: list[tuple[str, nn.Module, tuple[int, ...]]],
    counter: FlopCounterMode,
) -> Summary:
    root, flops = type(network).__name__, counter.get_flop_counts()
    rows, seen = [], set[nn.Module]()
    for name, module, shape in calls:
        path = f"{root}.{name}" if name else root
        # A shared layer's parameters and work are told once.
        work, size = (0, 0) if module in seen else (_work(module, path, flops), _size(module))
        seen.add(module)
        rows.append(LayerRow(name, type(module).__name__, shape, size, work))
    # A network of ours knows its widths; of another, the linear and convolution layers tell them.
    weighted = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
    found = [m.weight.shape[0] for _, m, _ in calls if isinstance(m, weighted)][:-1]
    widths = tuple(getattr(network, "widths", found))
    parameters = list(network.parameters())
    return Summary(
        rows=tuple(rows),
        parameters=sum(p.numel() for p in parameters),
        trainable=sum(p.numel() for p in parameters if p.requires_grad),
        multiply_adds=sum(flops.get("Global", {}).values()) // 2,
        depth=len(widths) + 1,
        width=max(widths, default=0),
        capacity=sum(widths),
    )
