"""What each layer of an infinitely wide network does to a kernel."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from ansatz.kernels.moments import Moments


class State(NamedTuple):
    """Kernels of the rows of two batches after some layers; means are over units.

    A grid has its axes behind the rows': pixels of both examples alike, or all pairs of pixels
    (``pairs``) where a pooling layer follows, which mixes them.
    """

    first: Tensor  # of each row of x with itself, (N, *size) or (N, *size, *size)
    second: Tensor  # the same of x'
    cross: Tensor  # (N, M, *size) or (N, M, *size, *size)
    tangent: Tensor | None  # like cross; None where only the covariance is asked for
    mean: Tensor  # of the units, (N, *size)
    other: Tensor  # the same of x', (M, *size)
    axes: int  # of the grid
    pairs: bool

    @property
    def width(self) -> int:
        """The axes of a pair of pixels."""
        return self.axes * (2 if self.pairs else 1)


Map = Callable[[State], State]


@dataclass(frozen=True)
class Affine:
    """Random weights: the mean over the inputs of variance ``weight``, and ``bias``.

    Args:
        weight: inputs times the variance of a weight.
        bias: the variance of a bias.
        learned: whether the tangent kernel counts them.
    """

    weight: float
    bias: float
    learned: bool = True

    def __call__(self, state: State) -> State:
        if state.axes:
            raise ValueError("an affine map takes no grid; flatten it first.")
        return random_map(state, self)


def random_map(state: State, affine: Affine) -> State:
    """Multiplies by the variance of the weights and adds that of the biases."""

    def scaled(k: Tensor) -> Tensor:
        return affine.weight * k + affine.bias if affine.bias else affine.weight * k

    cross = scaled(state.cross)
    tangent = None
    if state.tangent is not None:
        tangent = affine.weight * state.tangent
        tangent = tangent + cross if affine.learned else tangent
    return state._replace(
        first=scaled(state.first),
        second=scaled(state.second),
        cross=cross,
        tangent=tangent,
        mean=torch.zeros_like(state.mean),
        other=torch.zeros_like(state.other),
    )


@dataclass(frozen=True)
class Nonlinear:
    """An activation of every unit, minus a constant."""

    moments: Moments
    origin: float = 0.0

    def __call__(self, state: State) -> State:
        moments = self.moments
        a, b = _own(state.first, state), _own(state.second, state)
        mean, other = (moments.mean(each) for each in (a, b))
        cross, dot = moments.product(
            _left(a, state), _right(b, state), state.cross, state.tangent is not None
        )
        first, second = (
            _within(moments, k, v, state) for k, v in ((state.first, a), (state.second, b))
        )
        if self.origin:
            c = self.origin
            cross = cross - c * (_left(mean, state) + _right(other, state)) + c * c
            first = _centred(first, mean, c, state)
            second = _centred(second, other, c, state)
            mean, other = mean - c, other - c
        tangent = state.tangent
        if tangent is not None:
            assert dot is not None
            tangent = tangent * dot
        return state._replace(
            first=first, second=second, cross=cross, tangent=tangent, mean=mean, other=other
        )


def _within(moments: Moments, k: Tensor, own: Tensor, state: State) -> Tensor:
    if not state.pairs:
        return moments.square(own)
    left, right = _spread(own, state.axes, True), _spread(own, state.axes, False)
    return moments.product(left, right, k, False)[0]


def _centred(k: Tensor, mean: Tensor, c: float, state: State) -> Tensor:
    if not state.pairs:
        return k - 2 * c * mean + c * c
    left, right = _spread(mean, state.axes, True), _spread(mean, state.axes, False)
    return k - c * (left + right) + c * c


def _own(k: Tensor, state: State) -> Tensor:
    """The variance of each pixel, ``(N, *size)``."""
    if not state.pairs:
        return k
    size = k.shape[1 : 1 + state.axes]
    flat = k.reshape(len(k), math.prod(size), math.prod(size))
    return flat.diagonal(dim1=1, dim2=2).reshape(len(k), *size)


def _spread(v: Tensor, axes: int, left: bool) -> Tensor:
    """Numbers of pixels along the first or the second axes of pairs of pixels."""
    size = v.shape[v.ndim - axes :]
    lead = v.shape[: v.ndim - axes]
    return v.reshape(*lead, *size, *(1,) * axes) if left else v.reshape(*lead, *(1,) * axes, *size)


def _left(v: Tensor, state: State) -> Tensor:
    v = _spread(v, state.axes, True) if state.pairs else v
    return v.unsqueeze(1)


def _right(v: Tensor, state: State) -> Tensor:
    v = _spread(v, state.axes, False) if state.pairs else v
    return v.unsqueeze(0)


@dataclass(frozen=True)
class Convolution:
    """A random map of the pixels in a window, the same at every place."""

    affine: Affine
    size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]

    def __call__(self, state: State) -> State:
        return random_map(_each(state, self._mean, self._mean), self.affine)

    def _mean(self, k: Tensor, axes: int, copies: int) -> Tensor:
        """The mean over the window, which both pixels of a pair move in together."""
        margin = [n for p in reversed(self.padding) for n in (p, p)] * copies
        k = pad(k, margin)
        sizes = [
            (n - d * (w - 1) - 1) // s + 1
            for n, w, s, d in zip(
                k.shape[k.ndim - axes :], self.size, self.stride, self.dilation, strict=True
            )
        ]
        total: Tensor | None = None
        for place in itertools.product(*(range(w) for w in self.size)):
            cuts = tuple(
                slice(d * o, d * o + s * (n - 1) + 1, s)
                for o, s, d, n in zip(place, self.stride, self.dilation, sizes, strict=True)
            )
            window: Any = (..., *cuts * copies)
            part = k[window]
            total = part.clone() if total is None else total.add_(part)
        assert total is not None
        return total.div_(math.prod(self.size))


@dataclass(frozen=True)
class AveragePool:
    """The mean of the pixels in a window; ``size`` None is the whole grid."""

    size: tuple[int, ...] | None
    stride: tuple[int, ...]
    padding: tuple[int, ...]

    def __call__(self, state: State) -> State:
        return _each(state, self._mean, self._mean, means=True)

    def _mean(self, k: Tensor, axes: int, copies: int) -> Tensor:
        for copy in range(copies):
            for axis in range(axes):
                place = k.ndim - axes * copies + copy * axes + axis
                k = self._along(k, place, axis)
        return k

    def _along(self, k: Tensor, place: int, axis: int) -> Tensor:
        if self.size is None:
            return k.mean(place, keepdim=True)
        k = k.movedim(place, -1)
        k = pad(k, (self.padding[axis],) * 2)
        found = k.unfold(-1, self.size[axis], self.stride[axis]).mean(-1)
        return found.movedim(-1, place)


def _each(
    state: State,
    of_kernels: Callable[[Tensor, int, int], Tensor],
    of_means: Callable[[Tensor, int, int], Tensor],
    *,
    means: bool = False,
) -> State:
    axes, copies = state.axes, 2 if state.pairs else 1
    first, second, cross = (
        of_kernels(k, axes, copies) for k in (state.first, state.second, state.cross)
    )
    tangent = None if state.tangent is None else of_kernels(state.tangent, axes, copies)
    mean, other = (of_means(m, axes, 1) for m in (state.mean, state.other))
    return state._replace(
        first=first, second=second, cross=cross, tangent=tangent, mean=mean, other=other
    )


def flatten(state: State) -> State:
    """The mean over pixels: the maps behind see each with weights of its own."""
    if not state.axes:
        return state

    def over(k: Tensor) -> Tensor:
        dims = tuple(range(k.ndim - state.axes, k.ndim))
        if state.pairs:
            flat = k.flatten(k.ndim - state.axes).flatten(
                k.ndim - 2 * state.axes, k.ndim - state.axes - 1
            )
            return flat.diagonal(dim1=-2, dim2=-1).mean(-1)
        return k.mean(dims)

    def of_means(m: Tensor) -> Tensor:
        return m.mean(tuple(range(1, m.ndim)))

    return State(
        over(state.first),
        over(state.second),
        over(state.cross),
        None if state.tangent is None else over(state.tangent),
        of_means(state.mean),
        of_means(state.other),
        0,
        False,
    )


@dataclass(frozen=True)
class Residual:
    """The sum of two branches of the same input."""

    branch: Sequence[Map]
    skip: Sequence[Map]

    def __call__(self, state: State) -> State:
        left, right = run(self.branch, state), run(self.skip, state)
        # The weights of one branch are independent of the other, so that they covary by means.
        tangent = None
        if left.tangent is not None and right.tangent is not None:
            tangent = left.tangent + right.tangent
        cross = left.cross + right.cross
        cross = cross + _left(left.mean, left) * _right(right.other, right)
        cross = cross + _left(right.mean, right) * _right(left.other, left)
        first, second = (
            a + b + self._means(m, n, left)
            for a, b, m, n in (
                (left.first, right.first, left.mean, right.mean),
                (left.second, right.second, left.other, right.other),
            )
        )
        mean, other = left.mean + right.mean, left.other + right.other
        return left._replace(
            first=first, second=second, cross=cross, tangent=tangent, mean=mean, other=other
        )

    def _means(self, m: Tensor, n: Tensor, state: State) -> Tensor:
        if not state.pairs:
            return 2 * m * n
        axes = state.axes
        return _spread(m, axes, True) * _spread(n, axes, False) + _spread(n, axes, True) * _spread(
            m, axes, False
        )


def run(maps: Sequence[Map], state: State) -> State:
    """All maps in turn."""
    for each in maps:
        state = each(state)
    return state
