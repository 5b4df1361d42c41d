"""The absolute value, for losses that are differentiated twice."""

from typing import Any

import torch
from torch import Tensor


def absolute(x: Tensor) -> Tensor:
    r"""The absolute value :math:`|x|` with slope sign x, 0 at 0, and second derivative 0.

    It is ``x.abs()``, bit for bit. The second derivative that torch gives that one is a symbolic
    zero, and the sum of two of these imports ``torch._dynamo``: a second or more of a process.
    """
    return _Absolute.apply(x)


class _Absolute(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.abs()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad * x.sign()  # whose own slope is a plain tensor of zeros

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return tangent * x.sign()
