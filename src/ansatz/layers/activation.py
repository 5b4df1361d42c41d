"""Activations that torch lacks; torch's own are listed beside them in the registry."""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

CDF = Callable[[Tensor], Tensor]


class Swish(nn.Module):
    r"""A linear unit that opens its own gate, with a slope.

    .. math:: \phi(x) = x \, \sigma(\beta x)

    :math:`\beta = 1` is SiLU, :math:`\beta = 0` is x/2, and :math:`\beta \to \infty` is ReLU.

    Args:
        beta: the slope of the gate.
        learned: True makes beta one trained parameter that starts there.

    Shapes:
        - x: any; returns the same.

    Example:
        >>> import torch
        >>> from ansatz.layers import Swish
        >>> Swish(beta=0.0)(torch.tensor([-2.0, 4.0]))
        tensor([-1.,  2.])

    References:
        Ramachandran, Zoph & Le (2017), Searching for activation functions.
        https://arxiv.org/abs/1710.05941
    """

    def __init__(self, beta: float = 1.0, *, learned: bool = False) -> None:
        super().__init__()
        self.beta = nn.Parameter(torch.tensor(float(beta))) if learned else float(beta)

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(self.beta * x)


def _laplace_cdf(x: Tensor) -> Tensor:
    tail = 0.5 * torch.exp(-x.abs())
    return torch.where(x < 0, tail, 1 - tail)


def _cauchy_cdf(x: Tensor) -> Tensor:
    # The angle of the point (-x, 1): 1/2 + atan(x) / pi would lose the digits of a small tail.
    return torch.atan2(torch.ones_like(x), -x) / torch.pi


CDFS: dict[str, CDF] = {
    "normal": torch.special.ndtr,
    "logistic": torch.sigmoid,
    "laplace": _laplace_cdf,
    "cauchy": _cauchy_cdf,
}


class SelfGated(nn.Module):
    r"""Activations that weigh x by the probability of a smaller one.

    .. math:: \phi(x) = x \, F(x), \qquad F \text{ a cumulative distribution function}

    The normal distribution gives GELU, the logistic likelihood SiLU. It is the mean of a unit that
    is kept with probability F(x).

    Args:
        cdf: the likelihood, by name, or any function that maps a tensor to its F.

    Shapes:
        - x: any; returns the same.

    Example:
        >>> import torch
        >>> from ansatz.layers import SelfGated
        >>> SelfGated("cauchy")(torch.tensor([1.0]))
        tensor([0.7500])

    References:
        Hendrycks & Gimpel (2016), Gaussian error linear units, section 2.
        https://arxiv.org/abs/1606.08415
    """

    def __init__(self, cdf: Literal["normal", "logistic", "laplace", "cauchy"] | CDF) -> None:
        super().__init__()
        if isinstance(cdf, str) and cdf not in CDFS:
            raise ValueError(f"cdf of SelfGated must be one of {', '.join(CDFS)}, got {cdf!r}.")
        self.cdf = CDFS[cdf] if isinstance(cdf, str) else cdf

    def forward(self, x: Tensor) -> Tensor:
        return x * self.cdf(x)


class Step(nn.Module):
    r"""The threshold unit of McCulloch and Pitts: on from zero upwards.

    .. math:: \phi(x) = 1 \text{ if } x \ge 0 \text{ else low}

    Its derivative is 0 wherever it exists, so no gradient trains what lies below it.

    Args:
        low: the value below zero; -1 gives the sign function with sign(0) = 1.

    Shapes:
        - x: any; returns the same.

    Example:
        >>> import torch
        >>> from ansatz.layers import Step
        >>> Step()(torch.tensor([-0.5, 0.0, 2.0]))
        tensor([0., 1., 1.])

    References:
        McCulloch & Pitts (1943), A logical calculus of the ideas immanent in nervous activity.
    """

    def __init__(self, low: float = 0.0) -> None:
        super().__init__()
        self.low = low

    def forward(self, x: Tensor) -> Tensor:
        return torch.where(x >= 0, torch.ones_like(x), torch.full_like(x, self.low))


def softmax(dim: int = -1) -> nn.Softmax:
    r"""Torch's softmax over the last axis: positive numbers that sum to 1.

    .. math:: p_i = e^{x_i} / \sum_j e^{x_j}

    torch.nn.Softmax itself has no default axis. Likelihoods work with the logits x instead, whose
    log-probabilities are stable; as an activation it makes a layer of soft choices.

    Example:
        >>> import torch
        >>> from ansatz.layers import softmax
        >>> softmax()(torch.zeros(1, 4))
        tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """
    return nn.Softmax(dim=dim)


class Erf(nn.Module):
    r"""The error function, a sigmoid whose infinitely wide layer has a kernel in closed form.

    .. math:: \phi(x) = \operatorname{erf}(x)

    Shapes:
        - x: any; returns the same.

    Example:
        >>> import torch
        >>> from ansatz.layers import Erf
        >>> Erf()(torch.tensor([0.0, 10.0]))
        tensor([0., 1.])

    References:
        Williams (1997), Computing with infinite networks.
    """

    def forward(self, x: Tensor) -> Tensor:
        return torch.erf(x)


class Sine(nn.Module):
    r"""The sine.

    .. math:: \phi(x) = \sin(\omega x)

    Args:
        frequency: :math:`\omega`.

    Shapes:
        - x: any; returns the same.

    Example:
        >>> import torch
        >>> from ansatz.layers import Sine
        >>> Sine(frequency=2.0)(torch.tensor([0.0, torch.pi / 4]))
        tensor([0., 1.])

    References:
        Sitzmann et al. (2020), Implicit neural representations with periodic activation functions.
        https://arxiv.org/abs/2006.09661
    """

    def __init__(self, frequency: float = 1.0) -> None:
        super().__init__()
        self.frequency = float(frequency)

    def forward(self, x: Tensor) -> Tensor:
        return torch.sin(self.frequency * x)
