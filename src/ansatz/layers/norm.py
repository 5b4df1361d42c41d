"""Normalisation layers."""

from typing import Literal, get_args

from torch import Tensor, nn
from torch.nn.functional import local_response_norm

from ansatz.errors import UsageError
from ansatz.layers.limits import require_whole
from ansatz.layers.registry import norms

Norm = Literal["batch", "layer", "rms", "weight"]


def normalize(linear: nn.Linear, norm: Norm | None) -> nn.Module:
    r"""Gives the module to apply after ``linear`` to normalise its outputs.

    - ``"batch"``: :math:`\gamma (z - \bar z) / \sqrt{v + \epsilon} + \beta` with mean and variance
      of each unit over the batch; running ones when evaluating. That is :math:`\gamma w^T x`
      divided by :math:`\sqrt{w^T \Sigma w}`, :math:`\Sigma` the centred covariance of x.
    - ``"layer"``: the same over the units of each row: it does not depend on the batch.
    - ``"rms"``: divides by the root mean square of the row and subtracts nothing.
    - ``"weight"``: changes ``linear`` itself, to :math:`w = \gamma v / \|v\|` per unit.

    Args:
        linear: the layer in front; ``"weight"`` re-parametrises it in place.
        norm: which; None for none.

    Returns:
        A module on ``(B, K)``; the identity where nothing remains to be done.

    Example:
        >>> import torch
        >>> from ansatz.layers import normalize
        >>> normalize(torch.nn.Linear(3, 4), "layer").normalized_shape
        (4,)

    References:
        Ioffe & Szegedy (2015), Batch normalization, algorithm 1. https://arxiv.org/abs/1502.03167;
        Ba, Kiros & Hinton (2016), Layer normalization. https://arxiv.org/abs/1607.06450;
        Salimans & Kingma (2016), Weight normalization. https://arxiv.org/abs/1602.07868
    """
    if norm is None:
        return nn.Identity()
    if norm not in get_args(Norm):
        known = ", ".join(get_args(Norm))
        raise UsageError(f"norm must be None or one of {known}, got {norm!r}.")
    made = norms.create(norm, linear if norm == "weight" else linear.out_features)
    return nn.Identity() if norm == "weight" else made


class LocalResponseNorm(nn.Module):
    r"""Divides each activation by a power of the energy of the channels around it.

    .. math:: b_i = a_i \Big/ \Bigl( k + \alpha \sum_{j = \max(0, i - \lfloor n/2 \rfloor)}
        ^{\min(C - 1, i + \lfloor (n-1)/2 \rfloor)} a_j^2 \Bigr)^\beta

    The defaults are the paper's. ``torch.nn.LocalResponseNorm`` divides :math:`\alpha` by n and has
    other defaults (k = 1): this layer is ``torch.nn.LocalResponseNorm(n, n * alpha, beta, k)``.
    Caffe, whose GoogLeNet has n = 5 and alpha = 1e-4, divides as torch does.

    Args:
        size: :math:`n`, channels of the window; at the ends it is cut off.
        alpha: :math:`\alpha`, not divided by n.
        beta: :math:`\beta`.
        k: :math:`k`.

    Shapes:
        - x: ``(B, C, *size)`` with at least one axis; returns the same.

    Example:
        >>> import torch
        >>> from ansatz.layers import LocalResponseNorm
        >>> LocalResponseNorm(size=3, alpha=1.0, beta=1.0, k=0.0)(torch.ones(1, 3, 1)).flatten()
        tensor([0.5000, 0.3333, 0.5000])

    References:
        Krizhevsky, Sutskever & Hinton (2012), ImageNet classification with deep convolutional
        neural networks, section 3.3.
    """

    def __init__(
        self, size: int = 5, alpha: float = 1e-4, beta: float = 0.75, k: float = 2.0
    ) -> None:
        super().__init__()
        self.size = require_whole("size of LocalResponseNorm", size)
        self.alpha, self.beta, self.k = float(alpha), float(beta), float(k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"

    def forward(self, x: Tensor) -> Tensor:
        return local_response_norm(x, self.size, self.size * self.alpha, self.beta, self.k)
