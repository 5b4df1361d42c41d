"""Entropy-SGD: descent of the local entropy, which prefers wide valleys."""

import math
from typing import Any

import torch
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.optim.descent import Descent
from ansatz.seeds import generator


class EntropySGD(Descent):
    r"""Langevin dynamics around the weights, then a move to where it has been on average.

    The local entropy of the loss h at x is large in valleys that are wide:

    .. math:: F(x) = \log \int e^{-h(x') - \frac{\gamma}{2} \|x - x'\|^2} \, dx', \qquad
        -\nabla F(x) = \gamma \, (x - \langle x' \rangle)

    Its gradient is estimated by L steps of Langevin dynamics, one for each call of ``step``,

    .. math::
        x' \leftarrow x' - \eta \, [\nabla h(x') - \gamma (x - x')] + \sqrt{\eta} \, \epsilon\, z,
        \qquad \mu \leftarrow (1 - \alpha) \mu + \alpha x', \qquad z \sim N(0, 1)

    from :math:`x' = \mu = x`; after the L-th, :math:`x \leftarrow x - \rho (x - \mu)`. In between
    the parameters hold x', so that each step sees a batch of its own.

    Args:
        parameters: what to train, or groups of it.
        lr: :math:`\eta`, of the Langevin steps.
        gamma: :math:`\gamma`; a small one looks far around.
        noise: :math:`\epsilon`.
        inner: L.
        memory: :math:`\alpha` in (0, 1].
        outer: :math:`\rho`.
        seed: of the noise, a function of the seed and the number of steps: a run that is resumed
            draws the same.

    Example:
        >>> import torch
        >>> from ansatz.optim import EntropySGD
        >>> x = torch.nn.Parameter(torch.tensor([4.0]))
        >>> rule = EntropySGD([x], lr=0.5, inner=2)
        >>> for _ in range(40):
        ...     x.grad = x.detach().clone()  # of x^2 / 2
        ...     rule.step()
        >>> abs(x.item()) < 0.1
        True

    References:
        Chaudhari et al. (2017), Entropy-SGD: biasing gradient descent into wide valleys,
        algorithm 1. https://arxiv.org/abs/1611.01838
    """

    def __init__(
        self,
        parameters: Any,
        lr: float = 0.1,
        *,
        gamma: float = 0.03,
        noise: float = 1e-4,
        inner: int = 20,
        memory: float = 0.75,
        outer: float = 1.0,
        seed: int = 0,
    ) -> None:
        if not (gamma >= 0 and noise >= 0 and outer > 0 and 0 < memory <= 1 and inner >= 1):
            raise UsageError(
                "entropy_sgd needs gamma and noise from 0 on, outer above 0, memory in (0, 1] and "
                f"inner from 1 on, got {gamma}, {noise}, {outer}, {memory} and {inner}."
            )
        options = {"gamma": gamma, "noise": noise, "inner": inner, "seed": seed}
        super().__init__(parameters, {"lr": lr, **options, "memory": memory, "outer": outer})

    def _move(self, parameter: Tensor, g: Tensor, group: dict[str, Any]) -> None:
        state, rate = self.state[parameter], group["lr"]
        if not state:
            state["count"], state["drawn"] = 0, 0
            state["place"] = len(self.state)  # of its own stream of noise
            state["center"], state["mean"] = parameter.detach().clone(), parameter.detach().clone()
        center, mean = state["center"], state["mean"]
        pull = (center - parameter).mul_(group["gamma"])
        parameter.sub_(g - pull, alpha=rate)
        if group["noise"]:
            z = _normal(parameter, group["seed"], state["place"], state["drawn"])
            parameter.add_(z, alpha=math.sqrt(rate) * group["noise"])
            state["drawn"] += 1
        mean.lerp_(parameter, group["memory"])
        state["count"] += 1
        if state["count"] == group["inner"]:
            center.lerp_(mean, group["outer"])
            mean.copy_(center)
            parameter.copy_(center)
            state["count"] = 0


def _normal(like: Tensor, *key: int) -> Tensor:
    """Standard normal numbers that are a function of the key."""
    drawn = generator(key[0], "entropy_sgd", *key[1:])
    return torch.randn(like.shape, generator=drawn, dtype=like.dtype).to(like.device)
