"""Frozen random features, whose inner products approximate a kernel."""

import math
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from ansatz.layers.limits import require_positive, require_whole
from ansatz.layers.schemes import draw_normal, draw_uniform

Kind = Literal["cosine", "relu"]


class RandomFeatures(nn.Module):
    r"""M random features whose inner product tends to a kernel.

    .. math:: \phi(x) = \sqrt{2/M} \, h(W x / s + c), \qquad W_{ij} \sim N(0, 1),
              \qquad \phi(x)^T \phi(x') = k(x, x') + O(M^{-1/2})

    - ``"cosine"``: h = cos, c uniform on :math:`[-\pi, \pi)`; k is the RBF kernel
      :math:`\exp(-\|x - x'\|^2 / 2 s^2)`.
    - ``"relu"``: h = ReLU, c ~ N(0, 1); k is the arc-cosine kernel of order 1,
      :math:`\|u\| \|u'\| (\sin t + (\pi - t) \cos t) / \pi`, with t the angle between u = (x/s, 1)
      and u'.

    Args:
        in_features: :math:`D`.
        features: :math:`M`.
        kind: which of the two.
        bandwidth: :math:`s`; when not given :math:`\sqrt D`, so that two typical rows of
            standardised columns have RBF similarity 1/e.
        generator: where W and c are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(..., D)``; returns ``(..., M)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import RandomFeatures
        >>> features = RandomFeatures(3, 1000)(torch.zeros(1, 3))
        >>> bool((features @ features.T - 1).abs() < 0.2)
        True

    References:
        Rahimi & Recht (2007), Random features for large-scale kernel machines.
        Cho & Saul (2009), Kernel methods for deep learning, eq. 6.
    """

    weight: Tensor
    phase: Tensor

    def __init__(
        self,
        in_features: int,
        features: int,
        *,
        kind: Kind = "cosine",
        bandwidth: float | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if kind not in get_args(Kind):
            raise ValueError(f"kind of RandomFeatures must be 'cosine' or 'relu', got {kind!r}.")
        if bandwidth is None:
            bandwidth = math.sqrt(max(in_features, 1))
        require_whole("features of RandomFeatures", features, high=2**24)
        require_positive("bandwidth of RandomFeatures", bandwidth)
        self.kind, self.bandwidth = kind, bandwidth
        self.in_features, self.out_features = in_features, features
        W = draw_normal(torch.empty(features, in_features), 1 / bandwidth, generator)
        if kind == "cosine":
            # U[-pi, pi), which has standard deviation pi / sqrt(3); the cosine sees no difference.
            c = draw_uniform(torch.empty(features), math.pi / math.sqrt(3), generator)
        else:
            c = draw_normal(torch.empty(features), 1.0, generator)
        self.register_buffer("weight", W)
        self.register_buffer("phase", c)

    def forward(self, x: Tensor) -> Tensor:
        z = nn.functional.linear(x, self.weight, self.phase)
        h = z.cos() if self.kind == "cosine" else z.relu()
        return math.sqrt(2 / self.out_features) * h
