"""One pass through a network, seen operation by operation: work, shapes and what units see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from ansatz.errors import UsageError
from ansatz.layers.mode import evaluation_mode
from ansatz.networks.fields import Fields, fields_of
from ansatz.networks.fields.receptive_fields import tensors
from ansatz.spec import Inputs, InputSpec


class ModuleCall(NamedTuple):
    """A module that has done its part."""

    name: str
    module: nn.Module
    shape: tuple[int, ...]  # of one example
    fields: Fields | None


class Trace(NamedTuple):
    """The record of a pass: modules called in order, multiply-adds by module, the longest path."""

    calls: list[ModuleCall]
    work: Counter[str]
    fields: Fields | None  # of the network's output
    depth: int  # layers of weights on the longest way from the input to the output


def trace(network: nn.Module, inputs: Inputs | Tensor | tuple[Tensor, ...]) -> Trace:
    """Runs ``network`` once, evaluating and without gradients, and watches.

    Its modes are restored afterwards. Of a grid ``(B, C, *size)`` it is followed which pixels each
    unit can see.
    """
    watch = _Watch(network)
    # Views of our own: the marks are not put on the user's tensors.
    arguments = tuple(
        each.detach().view(each.shape) if isinstance(each, Tensor) else each
        for each in _arguments(network, inputs)
    )
    for each in arguments:
        if isinstance(each, Tensor):
            each._ansatz_depth = 0  # type: ignore[attr-defined]
    grid = arguments[0] if arguments else None
    if isinstance(grid, Tensor) and 3 <= grid.ndim <= 5 and grid.is_floating_point():
        watch.mark(grid, Fields.start(grid.shape))
    hooks = watch.hooks()
    try:
        with evaluation_mode(network), torch.no_grad(), watch:
            output = network(*arguments)
    finally:
        for hook in hooks:
            hook.remove()
    first = next(iter(tensors([output])), None)  # extra heads follow the main output
    depth = getattr(first, "_ansatz_depth", 0)
    return Trace(watch.calls, watch.work, watch.find(first), depth)


def _arguments(network: nn.Module, inputs: Any) -> tuple[Any, ...]:
    if isinstance(inputs, Tensor):
        return (inputs,)
    if isinstance(inputs, tuple | list):
        if len(inputs) == 4 and all(isinstance(each, int) for each in inputs):
            shape = ", ".join(map(str, inputs))
            raise UsageError(
                f"({shape}) may be with or without a batch: give InputSpec.grid(C, *size), or a "
                f"tensor, torch.zeros({shape})."
            )
        if not inputs or not isinstance(inputs[0], int):
            return tuple(inputs)
    spec = InputSpec.of(inputs)
    like = next(iter([*network.parameters(), *network.buffers()]), torch.empty(0))
    if spec.structure == "grid" and not spec.size:
        raise UsageError(
            "the size of the grid must be known: InputSpec.grid(3, 32, 32), or a tensor (1, C, ...)"
        )
    x = torch.zeros(1, spec.features, *spec.size, dtype=like.dtype, device=like.device)
    codes = torch.zeros(1, len(spec.cardinalities), dtype=torch.long, device=like.device)
    return (x, codes) if spec.cardinalities else (x,)


class _Watch(TorchDispatchMode):
    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.names = {module: name for name, module in network.named_modules()}
        self.inside = [""]
        self.calls: list[ModuleCall] = []
        self.work: Counter[str] = Counter()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing here is compiled, and asking for it would load seconds of code

    def hooks(self) -> list[Any]:
        """Around every module, so that work has an owner."""

        def enter(module: nn.Module, _: Any) -> None:
            self.inside.append(self.names[module])

        def leave(module: nn.Module, _: Any, output: Any) -> None:
            name = self.inside.pop()
            shape = tuple(output.shape[1:]) if isinstance(output, Tensor) else ()
            self.calls.append(ModuleCall(name, module, shape, self.find(output)))

        return [
            hook
            for module in self.names
            for hook in (
                module.register_forward_pre_hook(enter),
                module.register_forward_hook(leave),
            )
        ]

    @staticmethod
    def find(value: Any) -> Fields | None:
        """Gives the record of a tensor; torch keeps a tensor's Python attributes."""
        return getattr(value, "_ansatz_fields", None)

    @staticmethod
    def mark(tensor: Tensor, fields: Fields | None) -> None:
        """Notes it there."""
        tensor._ansatz_fields = fields  # type: ignore[attr-defined]

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        output = func(*args, **kwargs)
        packet = func.overloadpacket
        if packet in flop_registry:  # torch counts a multiplication and an addition as two
            flops = flop_registry[packet](*args, **kwargs, out_val=output)
            self.work[self.inside[-1]] += flops // 2
        names = (argument.name for argument in func._schema.arguments)
        arguments = dict(zip(names, args, strict=False)) | kwargs
        self._follow(func, arguments, output)
        _deepen(arguments, output, packet in flop_registry)
        return output

    def _follow(self, func: Any, arguments: dict[str, Any], output: Any) -> None:
        single = isinstance(output, Tensor)
        results = [output] if single else list(output or ()) if _several(output) else []
        source = arguments.get("self")
        for place, result in enumerate(results):
            if not isinstance(result, Tensor) or (place and result.ndim != results[0].ndim):
                continue  # moments that a norm returns beside its result
            written = result is source
            fields = fields_of(func, arguments, self.find, result, place)
            self.mark(result, fields)
            if written and fields is not None:
                self._write_back(result, fields)
            elif single and isinstance(source, Tensor) and _shares(result, source):
                result._ansatz_view = (source, func, arguments)  # type: ignore[attr-defined]

    def _write_back(self, view: Tensor, fields: Fields) -> None:
        """Records a write into a part of a tensor as a write into that tensor."""
        origin = getattr(view, "_ansatz_view", None)
        if origin is None:
            return
        base, func, arguments = origin
        form = replace(fields, shape=tuple(base.shape))
        before = self.find(base) or form.nothing()
        arrays = []
        for old, new in zip(before.arrays, fields.arrays, strict=True):
            whole = old.expand(2, 2, *base.shape).clone(memory_format=torch.contiguous_format)
            for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
                part = func(**{**arguments, "self": whole[i, j]})
                part.copy_(new[i, j].expand(part.shape))
            arrays.append(whole)
        after = (form if len(view.shape) == len(base.shape) else before).rearranged(
            arrays, base.shape
        )
        self.mark(base, after)
        self._write_back(base, after)


def _deepen(arguments: dict[str, Any], output: Any, multiplies: bool) -> None:
    """A product with what does not come from the input, weights, is one layer more."""
    given = list(tensors(arguments.values()))
    depths = [each._ansatz_depth for each in given if hasattr(each, "_ansatz_depth")]
    if not depths:
        return
    depth = max(depths) + (multiplies and len(depths) < len(given))
    for result in tensors([output]):
        result._ansatz_depth = depth  # type: ignore[attr-defined]
        while (origin := getattr(result, "_ansatz_view", None)) is not None:
            result = origin[0]  # written into a part of it
            result._ansatz_depth = max(depth, getattr(result, "_ansatz_depth", 0))


def _several(output: Any) -> bool:
    return isinstance(output, (list, tuple))


def _shares(result: Tensor, source: Tensor) -> bool:
    return result.untyped_storage()._cdata == source.untyped_storage()._cdata
