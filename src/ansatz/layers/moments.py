"""What an atom sees around it: moments of its neighbours, and Gram matrices of them."""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from ansatz.layers.ragged import segment_sum

ROOT = math.sqrt(3.0)
SIZES = (1, 3, 5)  # the functions of degree 0, 1 and 2
Parts = tuple[slice, ...]


def harmonics(u: Tensor, degree: int) -> Tensor:
    r"""Polynomials of a direction whose inner products are Legendre's, ``(E, 3)`` to ``(E, C)``.

    .. math:: \sum_{m} Y_{lm}(u) Y_{lm}(v) = P_l(u^\top v), \qquad l = 0, \dots, \text{degree}

    C is 1, 4 or 9.

    Example:
        >>> import torch
        >>> from ansatz.layers.moments import harmonics
        >>> Y = harmonics(torch.tensor([[0.0, 0.6, 0.8], [1.0, 0.0, 0.0]]), 2)
        >>> Y.square().sum(1).round(decimals=4)
        tensor([3., 3.])
    """
    x, y, z = u.unbind(1)
    parts = [torch.ones_like(x)]
    if degree > 0:
        parts += [x, y, z]
    if degree > 1:
        parts += [ROOT * x * y, ROOT * y * z, ROOT * x * z]
        parts += [ROOT / 2 * (x * x - y * y), z * z - (x * x + y * y) / 2]
    return torch.stack(parts, 1)


def _slopes(u: Tensor, v: Tensor, degree: int) -> Tensor:
    """The derivatives of all but the first of :func:`harmonics` along v, ``(E, C - 1)``."""
    x, y, z = u.unbind(1)
    a, b, c = v.unbind(1)
    parts = [a, b, c]
    if degree > 1:
        parts += [ROOT * (a * y + x * b), ROOT * (b * z + y * c), ROOT * (a * z + x * c)]
        parts += [ROOT * (x * a - y * b), 2 * z * c - x * a - y * b]
    return torch.stack(parts, 1)


def _gradient(u: Tensor, b: Tensor, degree: int) -> Tensor:
    """The gradient of ``sum(b * harmonics(u)[:, 1:], 1)`` in u, ``(E, 3)``."""
    if degree == 1:
        return b
    x, y, z = u.unbind(1)
    p, q, s, xy, yz, xz, d, e = b.unbind(1)
    return torch.stack(
        [
            p + ROOT * (xy * y + xz * z + d * x) - e * x,
            q + ROOT * (xy * x + yz * z - d * y) - e * y,
            s + ROOT * (yz * y + xz * x) + 2 * e * z,
        ],
        1,
    )


class Surroundings(NamedTuple):
    """The pairs of a batch in the form that moments need.

    Args:
        distance: ``(E,)``.
        direction: ``(E, 3)`` unit vectors.
        value: ``(E, K)`` radial functions at the distances; slope: their derivatives.
        group: ``(E,)`` never falling, the group of each pair: a center and an element.
        offsets: ``(G + 1,)``, where each group begins.
    """

    distance: Tensor
    direction: Tensor
    value: Tensor
    slope: Tensor
    group: Tensor
    offsets: Tensor

    @classmethod
    def of(cls, vectors: Tensor, basis: Any, group: Tensor, groups: int) -> "Surroundings":
        """Takes vectors of pairs apart."""
        distance = torch.linalg.vector_norm(vectors, dim=1)
        counts = torch.bincount(group, minlength=groups)
        offsets = functional.pad(counts.cumsum(0), (1, 0))
        value, slope = basis(distance)
        return cls(distance, vectors / distance.unsqueeze(1), value, slope, group, offsets)


def moments(near: Surroundings, degree: int) -> Tensor:
    r"""Moments of the neighbours in each group, ``(G, C, K)``.

    .. math:: A_{g, lm, k} = \sum_{(i, j) \in g} \phi_k(r_{ij})\, Y_{lm}(u_{ij})

    With the rows :math:`\tilde R_{ij} = \phi(r_{ij}) (1, u_{ij})` of DeePot-SE this is
    :math:`\tilde R^\top` times a fixed embedding of the distances; a learned one is a linear map
    of K, which an atom applies once, not once for each of its neighbours.

    Example:
        >>> import torch
        >>> from ansatz.layers import RadialBasis
        >>> from ansatz.layers.moments import Surroundings, moments
        >>> vectors = torch.tensor([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])
        >>> near = Surroundings.of(vectors, RadialBasis(4.0, 5), torch.tensor([0, 0]), 1)
        >>> A = moments(near, 1)
        >>> A.shape, bool(A[0, 3].abs().max() < 1e-6)
        (torch.Size([1, 4, 5]), True)

    References:
        Zhang et al. (2018), End-to-end symmetry preserving inter-atomic potential energy model.
        https://arxiv.org/abs/1805.09003
    """
    Y = harmonics(near.direction, degree)
    if near.value.requires_grad or not len(Y):
        return segment_sum(Y.unsqueeze(2) * near.value.unsqueeze(1), near.offsets)
    return torch.stack([_bags(near.value, Y[:, c], near.offsets) for c in range(Y.shape[1])], 1)


def pull(gradient: Tensor, near: Surroundings, degree: int) -> Tensor:
    r"""The gradient in the vectors of the pairs from that in their moments: the chain rule by hand.

    .. math:: \frac{\partial E}{\partial r} = \sum_{c, k} g_{ck} \left[
        \phi_k' Y_c\, u + \frac{\phi_k}{r} (I - u u^\top) \nabla Y_c(u) \right]

    Its derivative in g, which training by forces needs, is again a sum over neighbours.

    Shapes:
        - gradient: ``(G, C, K)``; returns ``(E, 3)``.
    """
    found: Tensor = _Pull.apply(gradient, *near, degree)
    return found


class _Pull(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, g: Tensor, *rest: Any) -> Tensor:
        near, degree = Surroundings(*rest[:-1]), rest[-1]
        ctx.save_for_backward(*near)
        ctx.degree = degree
        u = near.direction
        each = g.index_select(0, near.group)  # (E, C, K)
        Y = harmonics(u, degree)
        along = (torch.einsum("eck,ek->ec", each, near.slope) * Y).sum(1, keepdim=True)
        if not degree:
            return along * u
        b = torch.einsum("eck,ek->ec", each[:, 1:], near.value) / near.distance.unsqueeze(1)
        across = _gradient(u, b, degree)
        return across + (along - (across * u).sum(1, keepdim=True)) * u

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, v: Tensor) -> Any:
        near, degree = Surroundings(*ctx.saved_tensors), ctx.degree
        u = near.direction
        along = (v * u).sum(1, keepdim=True)
        Y = harmonics(u, degree) * along
        parts = [_bags(near.slope, Y[:, c], near.offsets) for c in range(Y.shape[1])]
        if degree:
            across = _slopes(u, v - along * u, degree) / near.distance.unsqueeze(1)
            for c in range(across.shape[1]):
                parts[c + 1] = parts[c + 1] + _bags(near.value, across[:, c], near.offsets)
        return torch.stack(parts, 1), *[None] * (len(near) + 1)


def _bags(table: Tensor, weight: Tensor, offsets: Tensor) -> Tensor:
    """Weighted sums of the rows of each group."""
    if not len(table):
        return table.new_zeros(len(offsets) - 1, table.shape[1])
    order = torch.arange(len(table), device=table.device)
    found: Tensor = functional.embedding_bag(
        order, table, offsets, mode="sum", include_last_offset=True,
        per_sample_weights=weight.contiguous(),
    )  # fmt: skip
    return found


def gram(T: Tensor, few: int) -> Tensor:
    r"""Gram matrices of embedded moments, which no rotation changes.

    .. math:: D^l_{ab} = \sum_m T_{lm, a} T_{lm, b} = \sum_{j, k} g_a(r_j) g_b(r_k)
        P_l(u_j^\top u_k)

    For l = 1 this is :math:`G^\top (R R^\top) G`, with the directions of the neighbours as rows of
    R: a fixed number of channels in place of one row and column for each neighbour.

    Args:
        T: ``(N, C, M)``, the functions of degree 0 first.
        few: b runs over the first of the M channels.

    Shapes:
        - returns: ``(N, L, M, few)`` with the degrees l = 1, ..., L.

    Example:
        >>> import torch
        >>> from ansatz.layers.moments import gram
        >>> gram(torch.randn(5, 4, 8), 2).shape
        torch.Size([5, 1, 8, 2])
    """
    found, first = [], 1
    for size in SIZES[1:]:
        if first < T.shape[1]:
            part = T[:, first : first + size]
            found.append(part.mT @ part[..., :few])
        first += size
    return torch.stack(found, 1)
