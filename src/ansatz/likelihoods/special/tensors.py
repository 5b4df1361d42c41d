"""SciPy's functions, double precision and blocks of rows on tensors."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor


def elementwise(function: Callable[..., Any], *tensors: Tensor) -> Tensor:
    """Applies a NumPy function in double precision; the result is as the tensors were.

    There is no gradient: callers that need one supply it, and detach first.
    """
    tensors = torch.broadcast_tensors(*tensors)
    first = tensors[0]
    if first.is_meta:
        return torch.empty_like(first)
    values = function(*(t.detach().cpu().double().numpy() for t in tensors))
    return torch.as_tensor(values).to(dtype=first.dtype, device=first.device)


def wide(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Converts the tensors to double precision on the CPU, which not every device has."""
    return tuple(t if t.is_meta else t.cpu().double() for t in tensors)


def tensors_of(part: object) -> list[Tensor]:
    """The tensors among the attributes of an object, in the order of their assignment."""
    return [value for value in vars(part).values() if isinstance(value, Tensor)]


def in_double(method: Callable[[Any, Tensor], Tensor]) -> Callable[[Any, Tensor], Tensor]:
    """Makes a method of y run with all parameters and y broadcast in double precision.

    For classes whose arguments are the tensors that they hold, in that order.
    """

    @wraps(method)
    def wrapped(self: Any, y: Tensor) -> Tensor:
        value, *parameters = torch.broadcast_tensors(*wide(y, *tensors_of(self)))
        return method(type(self)(*parameters), value).to(y)

    return wrapped


def once_differentiable(
    value: Callable[..., Tensor], slopes: Callable[..., tuple[Tensor | None, ...]], *tensors: Tensor
) -> Tensor:
    """``value(*tensors)`` of broadcast tensors, in double precision, with first derivatives only.

    ``slopes(needed, *tensors)`` gives the derivative in each tensor, or None where not needed.
    """
    return _Once.apply(value, slopes, *torch.broadcast_tensors(*tensors))


class _Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Any, slopes: Any, *tensors: Tensor) -> Tensor:
        ctx.slopes, first = slopes, tensors[0]
        ctx.save_for_backward(*tensors)
        return torch.empty_like(first) if first.is_meta else value(*wide(*tensors)).to(first)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivative()
        if grad.is_meta:
            return (None, None, *(torch.empty_like(grad) for _ in ctx.saved_tensors))
        found = ctx.slopes(ctx.needs_input_grad[2:], *wide(*ctx.saved_tensors))
        return (None, None, *(None if s is None else grad * s.to(grad) for s in found))


def refuse_second_derivative() -> None:
    """Raises in a backward pass whose derivative has no graph of its own.

    Without it a second derivative would silently leave out what this function adds to it.
    """
    if torch.is_grad_enabled():  # create_graph=True
        raise RuntimeError(
            "cdf, log_cdf and log_survival of this distribution have first derivatives only; "
            "a second one (create_graph=True) is not available."
        )


def in_blocks(function: Callable[..., Tensor], *tensors: Tensor, size: int = 2**10) -> Tensor:
    """Applies a function to blocks of rows, so that what it makes of them stays in the cache.

    A million rows of a hundred nodes each would take a gigabyte, and four times as long.
    """
    shape = tensors[0].shape
    parts = zip(*(t.reshape(-1).split(size) for t in tensors), strict=True)
    value = torch.cat([function(*part) for part in parts])
    return value.reshape((*shape, *value.shape[1:]))


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


def none(rows: Tensor) -> bool:
    """Whether no row is meant, so that its branch may be left out; False where nobody can know."""
    try:
        return not bool(rows.any())
    except RuntimeError:  # inside vmap, and on the meta device
        return False
