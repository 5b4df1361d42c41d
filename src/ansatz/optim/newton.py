"""Newton's method for models small enough for their Hessian."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ansatz.errors import UsageError

LARGEST = 5000  # parameters: the Hessian then takes 200 MB in float64, its eigenvectors as much


def gradient_and_hessian(loss: Tensor, parameters: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Computes gradient ``(n,)`` and Hessian ``(n, n)`` of a scalar in all parameters.

    Example:
        >>> import torch
        >>> from ansatz.optim import gradient_and_hessian
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> gradient_and_hessian(x[0] ** 2 * x[1], [x])[1]
        tensor([[4., 2.],
                [2., 0.]])
    """
    gradient = _flat_gradient(loss, parameters, graph=True)
    if not gradient.requires_grad:  # a loss that is linear in the parameters
        return gradient, gradient.new_zeros(len(gradient), len(gradient))
    rows = [_flat_gradient(entry, parameters, graph=False) for entry in gradient]
    hessian = torch.stack(rows)
    return gradient.detach(), 0.5 * (hessian + hessian.T)


class Newton(torch.optim.Optimizer):
    r"""Newton's method: steps to the minimum of the local quadratic.

    .. math:: \theta \leftarrow \theta - s\, Q\, (|\Lambda| + \lambda)^{+} Q^\top \nabla h, \qquad
              \nabla^2 h = Q \Lambda Q^\top

    With all curvatures positive and :math:`\lambda = 0` this is
    :math:`\theta - [\nabla^2 h]^{-1} \nabla h`, which solves a quadratic in one step. Negative
    curvatures are taken by their size, so that the direction always descends and a saddle repels;
    directions without curvature (:math:`^{+}`, the pseudo-inverse) are left alone. The step s
    starts at ``lr`` and is halved until the loss falls enough (Armijo).

    For a generalised linear model with its canonical link this is iteratively reweighted least
    squares.

    Args:
        parameters: what to train; at most 5,000 numbers.
        lr: the first step tried; 1 is Newton's.
        damping: :math:`\lambda`, added to every curvature (Levenberg and Marquardt).
        halvings: how often the step may be halved; then the parameters stay as they are.

    Example:
        >>> import torch
        >>> from ansatz.optim import Newton
        >>> theta = torch.nn.Parameter(torch.tensor([5.0, -7.0]))
        >>> def loss():
        ...     return (theta[0] - 1) ** 2 + 10 * (theta[0] + theta[1]) ** 2
        >>> _ = Newton([theta]).step(loss)
        >>> theta.data
        tensor([ 1.0000, -1.0000])

    References:
        Nocedal and Wright (2006), Numerical Optimization, sections 3.3 and 3.4.
        Dauphin et al. (2014), Identifying and attacking the saddle point problem.
        https://arxiv.org/abs/1406.2572
    """

    needs_graph = True  # the closure returns the loss with its graph and calls no backward

    def __init__(
        self, parameters: Any, lr: float = 1.0, *, damping: float = 0.0, halvings: int = 30
    ) -> None:
        if not damping >= 0:
            raise UsageError(f"damping of newton must be >= 0, got {damping}.")
        super().__init__(parameters, {"lr": lr, "damping": damping, "halvings": halvings})
        if len(self.param_groups) > 1:
            raise UsageError("newton takes one group: its Hessian couples all parameters.")
        size = sum(p.numel() for p in self.param_groups[0]["params"])
        if size > LARGEST:
            raise UsageError(
                f"newton is for at most {LARGEST} parameters, got {size}. Use lbfgs or adamw."
            )

    def step(self, closure: Callable[[], Tensor] | None = None) -> Any:  # type: ignore[override]
        """One step; ``closure`` returns the loss without calling ``backward``."""
        if closure is None:
            raise UsageError("Newton.step needs a closure that returns the loss.")
        group = self.param_groups[0]
        parameters = [p for p in group["params"] if p.requires_grad]
        with torch.enable_grad():
            loss = closure()
            if not loss.isfinite():
                return loss.detach()
            gradient, hessian = gradient_and_hessian(loss, parameters)
        direction = newton_direction(gradient, hessian, group["damping"])
        slope = float(gradient @ direction)
        if not slope < 0:  # at a critical point already; nan: no direction to trust
            return loss.detach()
        self._search(closure, float(loss.detach()), parameters, direction, slope)
        return loss.detach()

    @torch.no_grad()
    def _search(
        self,
        closure: Callable[[], Tensor],
        loss: float,
        parameters: Sequence[Tensor],
        direction: Tensor,
        slope: float,
    ) -> None:
        """Halves the step until the loss falls by a share of what the slope promises."""
        group = self.param_groups[0]
        origin, size = [p.clone() for p in parameters], group["lr"]
        slack = 4 * torch.finfo(direction.dtype).eps * abs(loss)  # rounding of the loss itself
        for _ in range(group["halvings"] + 1):
            _place(parameters, origin, direction, size)
            if float(closure()) <= loss + 1e-4 * size * slope + slack:
                return
            size *= 0.5
        _place(parameters, origin, direction, 0.0)


def newton_direction(gradient: Tensor, hessian: Tensor, damping: float = 0.0) -> Tensor:
    """-(|H| + damping)^+ g, by eigenvalues."""
    values, vectors = torch.linalg.eigh(hessian)
    size = values.abs()
    flat = len(size) * torch.finfo(size.dtype).eps * size.max()  # as in numpy.linalg.matrix_rank
    inverse = torch.where(size > flat, 1 / (size + damping), 1 / damping if damping else 0.0)
    return -(vectors @ (inverse * (vectors.T @ gradient)))


def _flat_gradient(value: Tensor, parameters: Sequence[Tensor], *, graph: bool) -> Tensor:
    parts = torch.autograd.grad(
        value,
        list(parameters),
        retain_graph=True,
        create_graph=graph,
        allow_unused=True,
        materialize_grads=True,
    )
    return torch.cat([part.reshape(-1) for part in parts])


def _place(
    parameters: Sequence[Tensor], origin: Sequence[Tensor], direction: Tensor, size: float
) -> None:
    chunks = direction.split([p.numel() for p in parameters])
    for parameter, start, chunk in zip(parameters, origin, chunks, strict=True):
        parameter.copy_(start + size * chunk.view_as(start))
