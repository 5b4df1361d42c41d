"""Rules that write patterns into the weights of an associative memory."""

from typing import Literal

import torch
from torch import Tensor

Rule = Literal["hebb", "pseudo_inverse", "storkey"]


def hebb(weight: Tensor, patterns: Tensor) -> Tensor:
    r"""Hebb's rule: what fires together is wired together.

    .. math:: W \leftarrow W + \frac{1}{D} \Big(\sum_{p=1}^N x_p x_p^\top - N I\Big)

    The diagonal stays what it was, 0: each of the N outer products has a diagonal of ones, and so
    the identity is subtracted N times, not never and not once.

    Args:
        weight: ``(D, D)``, symmetric.
        patterns: ``(N, D)``, signs.

    References:
        Hopfield (1982), Neural networks and physical systems with emergent collective
        computational abilities. https://doi.org/10.1073/pnas.79.8.2554
    """
    size = patterns.shape[1]
    # The sum is one of whole numbers, exact in any precision, before it is divided.
    total = patterns.T @ patterns
    total.diagonal().sub_(len(patterns))
    return weight + total / size


def pseudo_inverse(weight: Tensor, diagonal: Tensor, patterns: Tensor) -> tuple[Tensor, Tensor]:
    r"""The projection on the span of the patterns, which all become exact fixed points.

    .. math:: W = X^\top (X X^\top)^{-1} X - \mathrm{diag}, \qquad
        P \leftarrow P + \frac{r r^\top}{\lVert r \rVert^2},\quad r = x - P x

    Patterns are added one by one, by the part :math:`r` that is new; a pattern in the span of the
    others adds nothing.

    Args:
        weight: ``(D, D)``, the projection without its diagonal.
        diagonal: ``(D,)``, the diagonal that was taken out.
        patterns: ``(N, D)``, signs.

    Returns:
        the new weight and diagonal.

    References:
        Personnaz, Guyon and Dreyfus (1985), Information storage and retrieval in spin-glass like
        neural networks. https://doi.org/10.1051/jphyslet:01985004608035900
    """
    projection = (weight + diagonal.diag()).double()
    for x in patterns.double():
        residual = x - projection @ x
        # Twice: once leaves a part of the span behind, of the size of the rounding (Kahan).
        residual -= projection @ residual
        norm = residual @ residual
        if norm > 1e-8 * len(x):
            projection += torch.outer(residual, residual) / norm
    projection = (projection + projection.T) / 2
    kept = projection.diagonal().clone().to(diagonal.dtype)
    return (projection - projection.diagonal().diag()).to(weight.dtype), kept


def storkey(weight: Tensor, patterns: Tensor) -> Tensor:
    r"""Storkey's rule: Hebb's, less what the memory already holds; local and one pattern at a time.

    .. math:: w_{ij} \leftarrow w_{ij} + \frac{1}{D} (x_i x_j - x_i h_{ji} - h_{ij} x_j), \qquad
        h_{ij} = \sum_{k \ne i, j} w_{ik} x_k

    Args:
        weight: ``(D, D)``, symmetric with a diagonal of zeros.
        patterns: ``(N, D)``, signs.

    References:
        Storkey (1997), Increasing the capacity of a Hopfield network without sacrificing
        functionality. https://doi.org/10.1007/BFb0020196
    """
    size = patterns.shape[1]
    for x in patterns:
        h = (weight @ x).unsqueeze(1) - weight * x  # h_ij, the terms k = j taken out
        weight = weight + (torch.outer(x, x) - x.unsqueeze(1) * h.T - h * x) / size
        weight.fill_diagonal_(0)
    return weight
