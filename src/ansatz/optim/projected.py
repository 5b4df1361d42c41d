"""Gradient steps that stay in a ball."""

import math
from typing import Any, Literal

import torch
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.optim.descent import Descent


class ProjectedGradient(Descent):
    r"""Projected gradient descent, or ascent: a step, then the nearest point of the ball.

    .. math:: \theta \leftarrow \Pi_B\big(\theta \mp \eta \nabla h(\theta)\big), \qquad
        B = \{ \theta : \| \theta - \theta_0 \| \le r \}

    with the minus for descent and the plus for ascent. In the Euclidean norm
    :math:`\Pi_B(\theta) = \theta_0 + \min(1, r / \|\theta - \theta_0\|) (\theta - \theta_0)`, over
    all parameters of a group together; in the largest absolute value each entry is clamped to
    :math:`[\theta_{0i} - r, \theta_{0i} + r]`. Ascent of a loss in its input, around an example, is
    the PGD attack; descent around the initial weights bounds how far training can go.

    Args:
        parameters: what to train, or groups of it, each with a ball of its own.
        lr: :math:`\eta`.
        radius: :math:`r`.
        norm: ``"l2"`` or ``"inf"``.
        around: ``"start"``, where the parameters are at the first step, or the ``"origin"``.
        maximize: ascend instead of descend.

    Example:
        >>> import torch
        >>> from ansatz.optim import ProjectedGradient
        >>> theta = torch.nn.Parameter(torch.zeros(2))
        >>> ascent = ProjectedGradient([theta], lr=1.0, radius=1.0, maximize=True)
        >>> theta.grad = torch.tensor([3.0, 4.0])
        >>> ascent.step()
        >>> theta.data
        tensor([0.6000, 0.8000])

    References:
        Bertsekas (1999), Nonlinear Programming, section 2.3.
        Madry et al. (2018), Towards deep learning models resistant to adversarial attacks, eq. 2.
        https://arxiv.org/abs/1706.06083
    """

    def __init__(
        self,
        parameters: Any,
        lr: float = 1e-3,
        *,
        radius: float = 10.0,
        norm: Literal["l2", "inf"] = "l2",
        around: Literal["start", "origin"] = "start",
        maximize: bool = False,
    ) -> None:
        if not 0 < radius < math.inf:
            raise UsageError(f"radius of projected_gradient must be positive, got {radius}.")
        if norm not in ("l2", "inf") or around not in ("start", "origin"):
            raise UsageError(
                "projected_gradient takes norm='l2' or 'inf' and around='start' or 'origin', got "
                f"{norm!r} and {around!r}."
            )
        options = {"radius": radius, "norm": norm, "around": around, "maximize": maximize}
        super().__init__(parameters, {"lr": lr, **options})

    def _move(self, parameter: Tensor, g: Tensor, group: dict[str, Any]) -> None:
        if group["around"] == "start":
            self.state[parameter].setdefault("start", parameter.detach().clone())
        parameter.add_(g, alpha=group["lr"] if group["maximize"] else -group["lr"])

    def _finish(self, group: dict[str, Any]) -> None:
        """Projects all parameters of a group."""
        moved = [p for p in group["params"] if p.grad is not None]
        apart = [p - s for p in moved if (s := self._center(p)) is not None]
        radius = group["radius"]
        if group["norm"] == "inf":
            apart = [each.clamp(-radius, radius) for each in apart]
        else:
            length = math.sqrt(sum(float(each.double().square().sum()) for each in apart))
            if length <= radius:
                return
            apart = [each * (radius / length) for each in apart]
        for parameter, each in zip(moved, apart, strict=True):
            parameter.copy_(self._center(parameter) + each)

    def _center(self, parameter: Tensor) -> Tensor:
        start: Tensor | None = self.state[parameter].get("start")
        return torch.zeros_like(parameter) if start is None else start
