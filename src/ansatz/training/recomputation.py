"""Gradient checkpointing: activations are computed again in the backward pass, not kept."""

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint

from ansatz.training.machine import owned_generators


def segments(network: nn.Module) -> list[nn.Module]:
    """The blocks of a network whose activations can be computed again, each by itself.

    They are the modules below the root that hold several layers, the outermost of them; where
    there is one alone, those inside it. An ``nn.Sequential`` of layers is one that is cut in
    parts. A network without blocks, as an ``MLP``, has none.
    """
    if type(network) is nn.Sequential:
        return _blocks(network)
    found = [each for child in network.children() for each in _blocks(child)]
    while len(found) == 1:
        inside = [each for child in found[0].children() for each in _blocks(child)]
        if len(inside) < 2:
            break
        found = inside
    return found


def _blocks(module: nn.Module) -> list[nn.Module]:
    layers = [m for m in module.modules() if next(m.parameters(recurse=False), None) is not None]
    if len(layers) < 2:
        return []
    # What is only a list is never called itself.
    if type(module).forward is nn.Module.forward or type(module) in (nn.ModuleList, nn.ModuleDict):
        return [each for child in module.children() for each in _blocks(child)]
    if type(module) is nn.Sequential:
        inside = [each for child in module for each in _blocks(child)]
        return inside or [module]
    return [module]


@contextmanager
def recomputing(network: nn.Module) -> Iterator[None]:
    """Lets the blocks of a network forget their activations inside, and compute them again.

    The gradients are the same: dropout draws the same numbers again, and running statistics of
    batch normalization are updated once. The price is a second forward pass.

    References:
        Chen et al. (2016), Training deep nets with sublinear memory cost.
        https://arxiv.org/abs/1604.06174
    """
    blocks = segments(network)
    for block in blocks:
        block.forward = partial(_in_parts, _parts(block))
    try:
        yield
    finally:
        for block in blocks:
            del block.forward  # the method of the class again


def _parts(block: nn.Module) -> list[Any]:
    """The function of a block; a chain of L layers is cut in parts of about the root of L."""
    parts = [block]
    if type(block) is nn.Sequential:
        size = max(2, math.isqrt(len(block)))
        parts = [block[start : start + size] for start in range(0, len(block), size)]
    return [
        partial(checkpoint, part.forward, use_reentrant=False, context_fn=partial(_Twice.of, part))
        for part in parts
    ]


def _in_parts(parts: list[Any], *inputs: Any, **options: Any) -> Any:
    first, *others = parts
    x = first(*inputs, **options)
    for part in others:
        x = part(x)
    return x


class _Twice:
    """The states that both forward passes of a block must begin with."""

    def __init__(self, block: nn.Module) -> None:
        self.norms = [m for m in block.modules() if isinstance(m, _BatchNorm)]
        self.generators = list(owned_generators(block).values())
        self.states: list[torch.Tensor] = []

    @classmethod
    def of(
        cls, block: nn.Module
    ) -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
        """The contexts of the first and the second pass."""
        made = cls(block)
        return made.first(), made.second()

    @contextmanager
    def first(self) -> Iterator[None]:
        self.states = [each.get_state() for each in self.generators]
        yield

    @contextmanager
    def second(self) -> Iterator[None]:
        now = [each.get_state() for each in self.generators]
        kept = [(norm.momentum, _count(norm)) for norm in self.norms]
        for generator, state in zip(self.generators, self.states, strict=True):
            generator.set_state(state)
        for norm in self.norms:
            norm.momentum = 0.0  # running statistics stay: the first pass has updated them
        try:
            yield
        finally:
            for generator, state in zip(self.generators, now, strict=True):
                generator.set_state(state)
            for norm, (momentum, count) in zip(self.norms, kept, strict=True):
                norm.momentum = momentum
                if norm.num_batches_tracked is not None and count is not None:
                    norm.num_batches_tracked.copy_(count)


def _count(norm: _BatchNorm) -> torch.Tensor | None:
    tracked = norm.num_batches_tracked
    return None if tracked is None else tracked.clone()
