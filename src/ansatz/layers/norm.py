"""Normalisation of a layer's pre-activations, by name; the modules are torch's own."""

from typing import Literal, get_args

from torch import nn

from ansatz.errors import UsageError
from ansatz.layers.registry import norms

Norm = Literal["batch", "layer", "rms", "weight"]


def normalize(linear: nn.Linear, norm: Norm | None) -> nn.Module:
    r"""What to apply after ``linear`` so that its outputs are normalised.

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
