"""The linear recurrence over time, in chunks that run side by side."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ansatz.errors import UsageError

_CHUNK = 64  # steps of a chunk: as many small operations in turn, whatever the length


def scan(a: Tensor, b: Tensor, initial: Tensor | None = None, *, reverse: bool = False) -> Tensor:
    r"""Solves a linear recurrence with factors that change from step to step.

    .. math:: h_t = a_t \odot h_{t-1} + b_t, \qquad t = 1, \dots, T

    The steps are cut into chunks of 64. All chunks first run side by side from a zero state and
    yield what they add and the factor by which they multiply their start. The starts of the chunks
    are a recurrence of the same kind, :math:`64` times shorter. From these all chunks run side by
    side once more. The work is :math:`O(T)` and the depth :math:`O(64 \log_{64} T)`. Products of
    factors are never divided by or taken logarithms of, so factors may be zero or negative; with
    :math:`|a_t| \le 1` nothing overflows.

    The gradient is the same recurrence backwards in time,
    :math:`g_t = \bar a_{t+1} \odot g_{t+1} + \partial L / \partial h_t`, and so are its gradients.

    Args:
        a: factors; any shape that broadcasts to that of ``b``.
        b: what is added at each step.
        initial: :math:`h_0`; zeros when not given.
        reverse: run from the last step to the first, :math:`h_t = a_t \odot h_{t+1} + b_t`.

    Shapes:
        - a: ``(B, T, D)``, ``(B, T, 1)`` or ``(D,)``, real or complex.
        - b: ``(B, T, D)``.
        - initial: ``(B, D)``.
        - returns: ``(B, T, D)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import scan
        >>> scan(torch.tensor(0.5), torch.ones(1, 4, 1)).flatten()
        tensor([1.0000, 1.5000, 1.7500, 1.8750])

    References:
        Blelloch (1990), Prefix sums and their applications, section 1.4; Martin & Cundy (2018),
        Parallelizing linear recurrent neural nets over sequence length.
        https://arxiv.org/abs/1709.04057
    """
    if b.ndim != 3 or not b.shape[1]:
        raise UsageError(f"scan needs b of shape (B, T, D) with T >= 1, got {tuple(b.shape)}.")
    dtype = torch.promote_types(a.dtype, b.dtype)
    if initial is None:
        initial = b.new_zeros(b.shape[0], b.shape[2])
    dtype = torch.promote_types(dtype, initial.dtype)
    try:
        a = a.to(dtype).expand(b.shape)
        initial = initial.to(dtype).expand(b.shape[0], b.shape[2])
    except RuntimeError:
        raise UsageError(
            f"scan needs a that broadcasts to b {tuple(b.shape)} and initial of shape (B, D), got "
            f"{tuple(a.shape)} and {tuple(initial.shape)}."
        ) from None
    return _apply(a, b.to(dtype), initial, reverse)


class _Scan(torch.autograd.Function):
    """The recurrence, or the delayed one, whose gradients are of the other kind.

    Delayed, h_1 = b_1 and h_t = a_{t-1} h_{t-1} + b_t: the factor of the step before.
    """

    @staticmethod
    def forward(a: Tensor, b: Tensor, initial: Tensor, reverse: bool, delayed: bool) -> Tensor:
        h = torch.empty_like(b, memory_format=torch.contiguous_format)
        if delayed:
            first, later, earlier = _places(reverse)
            h[:, first] = b[:, first]
            _solve(a[:, earlier], b[:, later], h[:, first], h[:, later], reverse)
        else:
            _solve(a, b, initial, h, reverse)
        return h

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        a, _, initial, ctx.reverse, ctx.delayed = inputs
        ctx.save_for_backward(a, initial, output)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        a, initial, h = ctx.saved_tensors
        factor, zero = a.conj().resolve_conj(), torch.zeros_like(initial)
        g = _apply(factor, gradients[0], zero, not ctx.reverse, not ctx.delayed)
        grad_a = grad_initial = None
        if ctx.needs_input_grad[0]:
            after = _shift(g, zero, not ctx.reverse) if ctx.delayed else g
            before = h if ctx.delayed else _shift(h, initial, ctx.reverse)
            grad_a = after * before.conj()
        if ctx.needs_input_grad[2] and not ctx.delayed:
            first = _places(ctx.reverse)[0]
            grad_initial = g[:, first] * factor[:, first]
        return grad_a, g, grad_initial, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
        """The mapped axis joins the batch."""
        tensors = [
            x.expand(info.batch_size, *x.shape) if dim is None else x.movedim(dim, 0)
            for x, dim in zip(inputs[:3], in_dims[:3], strict=True)
        ]
        h = _apply(*(x.flatten(0, 1) for x in tensors), *inputs[3:])
        return h.unflatten(0, (info.batch_size, -1)), 0


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _apply(a: Tensor, b: Tensor, initial: Tensor, reverse: bool, delayed: bool = False) -> Tensor:
    h: Tensor = _Scan.apply(a, b, initial, reverse, delayed)
    return h


def _places(reverse: bool) -> tuple[int, slice, slice]:
    """The first step, all after it, and all before the last."""
    later, earlier = slice(1, None), slice(None, -1)
    return (-1, earlier, later) if reverse else (0, later, earlier)


def _shift(x: Tensor, start: Tensor, reverse: bool) -> Tensor:
    """Each step's number from the step before."""
    parts = [start.unsqueeze(1), x[:, _places(reverse)[2]]]
    return torch.cat(parts[::-1] if reverse else parts, 1)


def _solve(a: Tensor, b: Tensor, initial: Tensor, out: Tensor, reverse: bool) -> None:
    """Writes the states to ``out``; all steps but a remainder run in chunks."""
    steps = b.shape[1]
    chunks = steps // _CHUNK
    if chunks < 2:
        order = range(steps)
        _run(order[::-1] if reverse else order, a.unbind(1), b.unbind(1), initial, out.unbind(1))
        return
    count = chunks * _CHUNK
    main, rest = slice(None, count), slice(count, None)
    if reverse:
        main, rest = slice(steps - count, None), slice(None, steps - count)
    _solve_chunks(a[:, main], b[:, main], initial, out[:, main], reverse)
    if count < steps:
        end = out[:, steps - count] if reverse else out[:, count - 1]
        _solve(a[:, rest], b[:, rest], end, out[:, rest], reverse)


def _solve_chunks(a: Tensor, b: Tensor, initial: Tensor, out: Tensor, reverse: bool) -> None:
    # Each list has one (B, chunks, D) per step within a chunk.
    A, B, H = (x.unflatten(1, (-1, _CHUNK)).unbind(2) for x in (a, b, out))
    order = range(_CHUNK)[::-1] if reverse else range(_CHUNK)
    added = B[order[0]].clone(memory_format=torch.contiguous_format)
    factor = A[order[0]].clone(memory_format=torch.contiguous_format)
    for t in order[1:]:
        torch.addcmul(B[t], A[t], added, out=added)
        factor.mul_(A[t])
    starts = torch.empty_like(added)
    first, later, earlier = _places(reverse)
    starts[:, first] = initial
    _solve(factor[:, earlier], added[:, earlier], initial, starts[:, later], reverse)
    _run(order, A, B, starts, H)


def _run(
    order: range, a: Sequence[Tensor], b: Sequence[Tensor], h: Tensor, out: Sequence[Tensor]
) -> None:
    for t in order:
        h = torch.addcmul(b[t], a[t], h, out=out[t])
