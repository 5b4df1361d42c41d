"""The log-likelihood of rows under several chains, and its slope by the numbers it depends on.

Legend: C chains, N rows, Z numbers of a row (raw ones, then learned constants).
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.likelihoods.likelihood import Likelihood
from ansatz.likelihoods.normal import Normal
from ansatz.linear.row_loss import row_gradient, row_loss
from ansatz.training.fast.likelihood import closed_form, normal_constant_score

Array = NDArray[np.float64]
RowScore = Callable[[Array], tuple[Array, Array]]  # (C, N, Z) -> (C, N) and (C, N, Z)


def row_score(likelihood: Likelihood, outputs: int, y: Tensor) -> RowScore:
    """Minus the log-likelihood of each row and its slope by z.

    Written out for the likelihoods that :func:`~ansatz.training.fast.likelihood.closed_form` knows,
    by autograd for others.

    Args:
        likelihood: in float64, started at its constant model.
        outputs: raw numbers of a row; what follows them are the likelihood's parameters.
        y: ``(N, ...)`` outcomes.
    """
    learned = list(likelihood.parameters())
    if type(likelihood) is Normal and likelihood.dispersion.kind == "constant":
        return _normal(likelihood, y.double().numpy())
    written = None if learned else closed_form(likelihood)
    if written is None or (type(likelihood) is Normal and likelihood.beta):
        return _by_autograd(likelihood, outputs, y)
    outcome = y.double().numpy() if not y.dtype.is_floating_point else y.numpy()
    if y.dtype == torch.int64:
        outcome = y.numpy()
    several: dict[int, Any] = {}

    def score(z: Array) -> tuple[Array, Array]:
        if len(z) not in several:
            several[len(z)] = np.ascontiguousarray(
                np.broadcast_to(outcome, (len(z), *outcome.shape))
            )
        terms, slope = written(z, several[len(z)])
        return terms, slope

    return score


def _normal(likelihood: Normal, y: Array) -> RowScore:
    head = likelihood.dispersion

    def score(z: Array) -> tuple[Array, Array]:
        constant = torch.from_numpy(np.ascontiguousarray(z[:, :1, 1]))  # the same in all rows
        own = SimpleNamespace(unit=head.unit, floor=head.floor, constant=constant)
        return normal_constant_score(own)(z[..., :1], np.broadcast_to(y, z.shape[:2]))

    return score


def _by_autograd(likelihood: Likelihood, outputs: int, y: Tensor) -> RowScore:
    loss, _ = row_loss(likelihood, outputs)
    several: dict[int, Tensor] = {}

    def score(z: Array) -> tuple[Array, Array]:
        chains, rows, size = z.shape
        if chains not in several:
            several[chains] = y.repeat(chains, *(1,) * (y.ndim - 1))
        flat = torch.from_numpy(np.ascontiguousarray(z)).reshape(-1, size)
        terms, slope = row_gradient(loss, flat, several[chains])
        return terms.reshape(chains, rows).numpy(), slope.reshape(chains, rows, size).numpy()

    return score
