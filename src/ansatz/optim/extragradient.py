"""Extragradient: look ahead, then step with the gradient found there."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ansatz.errors import UsageError


class Extragradient(torch.optim.Optimizer):
    r"""The extragradient method, for games :math:`\min_\theta \max_\phi \ell(\theta, \phi)`.

    .. math::
        \theta_{t+\frac12} = \theta_t - \eta \nabla_\theta \ell(\theta_t, \phi_t), \qquad
        \phi_{t+\frac12} = \phi_t + \eta \nabla_\phi \ell(\theta_t, \phi_t), \\
        \theta_{t+1} = \theta_t - \eta \nabla_\theta \ell(\theta_{t+\frac12}, \phi_{t+\frac12}),
        \qquad
        \phi_{t+1} = \phi_t + \eta \nabla_\phi \ell(\theta_{t+\frac12}, \phi_{t+\frac12})

    *Both* players are at the half point when the second gradient is taken. (Notes that look ahead
    in each player's own variable only have a method that still diverges on
    :math:`\ell = \theta\phi`.) Players that ascend are groups with ``maximize=True``.

    Use it as ``loss().backward(); extrapolate(); zero_grad(); loss().backward(); step()``, or give
    ``step`` a closure that recomputes the gradients, and it does both halves.

    Args:
        parameters: what to train, or groups of it.
        lr: :math:`\eta`.
        maximize: ascend instead of descend (an option of each group).

    Example:
        >>> import torch
        >>> from ansatz.optim import Extragradient
        >>> a, b = (torch.nn.Parameter(torch.ones(())) for _ in range(2))
        >>> game = Extragradient([{"params": [a]}, {"params": [b], "maximize": True}], lr=0.1)
        >>> def closure():
        ...     game.zero_grad()
        ...     (loss := a * b).backward()
        ...     return loss
        >>> _ = game.step(closure)  # from the half point (0.9, 1.1)
        >>> round(a.item(), 4), round(b.item(), 4)
        (0.89, 1.09)

    References:
        Korpelevich (1976), The extragradient method for finding saddle points.
        Gidel et al. (2019), A variational inequality perspective on GANs, algorithm 2.
        https://arxiv.org/abs/1802.10551
    """

    needs_closure = True

    def __init__(self, parameters: Any, lr: float = 1e-3, *, maximize: bool = False) -> None:
        super().__init__(parameters, {"lr": lr, "maximize": maximize})

    @torch.no_grad()
    def extrapolate(self) -> None:
        """Remembers where the parameters are and moves them to the half point."""
        for group, parameter in self._moving():
            self.state[parameter]["origin"] = parameter.detach().clone()
            _move(parameter, group)

    @torch.no_grad()
    def step(self, closure: Callable[[], Tensor] | None = None) -> Any:  # type: ignore[override]
        """From the remembered point, by the gradients of the half point."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
            self.extrapolate()
            try:
                with torch.enable_grad():
                    closure()
            except BaseException:
                self._return()
                raise
        self._return()
        for group, parameter in self._moving():
            _move(parameter, group)
        return loss

    def _return(self) -> None:
        """Puts the parameters back to where the look ahead began."""
        looked_ahead = [item for item in self.state.items() if "origin" in item[1]]
        if not looked_ahead:
            raise UsageError("Extragradient.step needs extrapolate() before it, or a closure.")
        for parameter, state in looked_ahead:
            parameter.copy_(state.pop("origin"))

    def _moving(self) -> list[tuple[dict[str, Any], Tensor]]:
        return [(g, p) for g in self.param_groups for p in g["params"] if p.grad is not None]


def _move(parameter: Tensor, group: dict[str, Any]) -> None:
    assert parameter.grad is not None
    parameter.add_(parameter.grad, alpha=group["lr"] if group["maximize"] else -group["lr"])
