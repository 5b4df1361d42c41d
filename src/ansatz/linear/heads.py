"""Sorts raw numbers into locations, dispersions and redundant ones."""

from typing import NamedTuple

import torch
from torch import Tensor

from ansatz.likelihoods.dispersion import PositiveHead
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.linear.row_loss import RowLoss, row_gradient
from ansatz.spec import TargetSpec

CLASSES = ("categorical", "cross_entropy")  # codes without an order
CODED = (*CLASSES, "focal", "ordinal", "plackett_luce")  # y holds codes 0..K-1


def target_of(likelihood: Likelihood, y: Tensor, classes: int = 0) -> TargetSpec:
    """The shape of the outcomes of a linear model, for ``likelihood.outputs``."""
    known = 0
    if likelihood.name in CODED:
        observed = y[torch.isfinite(y)] if y.is_floating_point() else y
        seen = int(observed.max()) + 1 if observed.numel() else 0
        known = max(classes, int(getattr(likelihood, "classes", 0)), seen)
    return TargetSpec(classes=known, event=tuple(y.shape[1:]))


def dispersion_columns(likelihood: Likelihood, raw: Tensor, y: Tensor) -> tuple[int, ...]:
    """Which raw numbers are dispersions: those that a :class:`PositiveHead` turns into one."""
    heads = [h for h in likelihood.modules() if isinstance(h, PositiveHead) and h.outputs]
    if not heads:
        return ()
    if likelihood.name == "multivariate_normal":  # means, then all that makes up the covariance
        return tuple(range(y.shape[-1], raw.shape[-1]))
    values: list[Tensor] = []

    def keep(_head: object, _inputs: object, value: Tensor) -> None:
        values.append(value)

    hooks = [head.register_forward_hook(keep) for head in heads]
    raw = raw.detach().requires_grad_()
    try:
        with torch.enable_grad():
            likelihood.loss(raw, y)
    finally:
        for hook in hooks:
            hook.remove()
    found: set[int] = set()
    for value in values:
        if value.requires_grad:
            (slope,) = torch.autograd.grad(
                value.sum(), raw, allow_unused=True, retain_graph=True
            )  # calls may share a part of the graph
            found |= set() if slope is None else set(slope.abs().amax(0).nonzero()[:, 0].tolist())
    if not found:  # a head that was not called lies at the end, as the contract has it
        count = raw.shape[1]
        found = set(range(count - sum(head.outputs for head in heads), count))
    return tuple(sorted(found))


class Redundancy(NamedTuple):
    """Directions of z along which no row's loss changes, one per number that may be held."""

    columns: tuple[int, ...]  # with these held nothing is redundant
    directions: Tensor  # (R, Z), 1 at its own column and 0 at the others'


def find_redundancy(
    loss: RowLoss, y: Tensor, start: Tensor, unit: Tensor, prefer: Tensor | None = None
) -> Redundancy:
    r"""Finds the linear invariances of a loss, as a constant added to all logits of a softmax.

    A direction d is one when every gradient is orthogonal to it, wherever it is taken: d is in the
    null space of the gradients of many rows at many points around the start and around 0.
    """
    size = len(start)
    rows = torch.linspace(0, len(y) - 1, min(len(y), 256)).long()
    generator = torch.Generator().manual_seed(0)
    found = []
    for turn in range(2 * max(2, 2 * size // len(rows) + 1)):
        noise = torch.randn(len(rows), size, generator=generator, dtype=torch.float64)
        # Around 0 too: a score at its limit has no gradient left, but is not redundant.
        point = start + 0.5 * unit * noise if turn % 2 else unit * noise
        gradient = row_gradient(loss, point, y[rows])[1] * unit
        gradient = gradient[torch.isfinite(gradient).all(1)]
        # Of length 1, so that no outlier drowns the others; a square of 1e-170 would underflow.
        gradient = gradient / gradient.abs().amax(1, keepdim=True).clamp(min=1e-300)
        found.append(gradient / gradient.norm(dim=1, keepdim=True).clamp(min=1e-300))
    gradients = torch.cat([*found, torch.zeros(size, size, dtype=torch.float64)])
    length = gradients.norm(dim=0)
    length = torch.where(length > 1e-12 * length.max(), length, torch.inf)
    _, values, vectors = torch.linalg.svd(gradients / length, full_matrices=False)
    # In columns of length 1; a direction of z is one of theirs over the length.
    null = vectors[values < 1e-8 * values[0].clamp(min=1e-300)]
    null = null / torch.where(length.isinf(), 1.0, length)
    null = null / null.abs().amax(1, keepdim=True)
    order = torch.arange(size) if prefer is None else prefer.argsort(descending=True, stable=True)
    return _reduced(null, order, unit)


def _reduced(null: Tensor, order: Tensor, unit: Tensor) -> Redundancy:
    """Gauss-Jordan: each direction gets a column of its own, taken in this order."""
    columns: list[int] = []
    null = null * unit
    for column in order.tolist():
        done = len(columns)
        if done == len(null):
            break
        pivot = done + int(null[done:, column].abs().argmax())
        if float(null[pivot, column].abs()) < 1e-6 * float(unit[column]):
            continue
        null[[done, pivot]] = null[[pivot, done]]
        null[done] /= null[done, column].clone()
        for other in range(len(null)):
            if other != done:
                null[other] -= null[other, column].clone() * null[done]
        columns.append(column)
    null[null.abs() < 1e-7] = 0
    null = torch.where((null - null.round()).abs() < 1e-7, null.round(), null)
    return Redundancy(tuple(columns), null)
