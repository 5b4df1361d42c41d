r"""Initialisation schemes: random weights at scales that keep signals through depth.

With n inputs and m outputs (``fan_in``, ``fan_out``) a layer multiplies the mean square of its
signal by :math:`n \sigma^2`, and each scheme sets the standard deviation :math:`\sigma` of the
weights by what should be kept. A normal distribution and a uniform one on :math:`\pm\sqrt{3}\sigma`
of equal variance do the same. Every function fills ``weight`` in place and returns it.
"""

import math

import torch
from torch import Tensor, nn

Generator = torch.Generator | None


def _fans(weight: Tensor) -> tuple[int, int]:
    if weight.ndim < 2:
        raise ValueError(f"fans need a weight of 2 or more axes, got shape {tuple(weight.shape)}.")
    field = math.prod(weight.shape[2:])  # the receptive field of a convolution
    return weight.shape[1] * field, weight.shape[0] * field


def draw_normal(tensor: Tensor, sd: float, generator: Generator = None) -> Tensor:
    """Fills ``tensor`` with independent N(0, sd^2) numbers.

    On the meta device there is nothing to fill, and torch would load seconds of code to do so.
    """
    if tensor.is_meta:
        return tensor
    with torch.no_grad():
        return tensor.normal_(0.0, sd, generator=generator)


def draw_uniform(tensor: Tensor, sd: float, generator: Generator = None) -> Tensor:
    """Fills ``tensor`` with independent numbers of U[-a, a], a = sqrt(3) sd."""
    if tensor.is_meta:
        return tensor
    bound = math.sqrt(3.0) * sd  # U[-a, a] has variance a^2 / 3
    with torch.no_grad():
        return tensor.uniform_(-bound, bound, generator=generator)


def zeros(weight: Tensor, *, generator: Generator = None, gain: float = 1.0) -> Tensor:
    """All zero: right for an output layer, while hidden units that start equal stay equal."""
    return nn.init.zeros_(weight)


def constant(weight: Tensor, *, generator: Generator = None, gain: float = 1.0) -> Tensor:
    """All equal to ``gain``."""
    return nn.init.constant_(weight, gain)


def normal(weight: Tensor, *, generator: Generator = None, gain: float = 1.0) -> Tensor:
    """N(0, gain^2) whatever the width: with gain 1, signals grow by sqrt(n) per layer."""
    return draw_normal(weight, gain, generator)


def uniform(weight: Tensor, *, generator: Generator = None, gain: float = 1.0) -> Tensor:
    """U[-sqrt(3) gain, sqrt(3) gain]: the variance of ``normal``, without its tails."""
    return draw_uniform(weight, gain, generator)


def lecun_normal(weight: Tensor, *, generator: Generator = None, gain: float = 1.0) -> Tensor:
    """N(0, 1/n): keeps Var(Wx) = Var(x). The partner of SELU.

    References:
        LeCun, Bottou, Orr & Müller (1998), Efficient BackProp, section 4.6.
    """
    return draw_normal(weight, gain / math.sqrt(max(_fans(weight)[0], 1)), generator)


def lecun_uniform(weight: Tensor, *, generator: Generator = None, gain: float = 1.0) -> Tensor:
    """U[-sqrt(3/n), sqrt(3/n)]: the variance of ``lecun_normal``.

    References:
        LeCun, Bottou, Orr & Müller (1998), Efficient BackProp, section 4.6.
    """
    return draw_uniform(weight, gain / math.sqrt(max(_fans(weight)[0], 1)), generator)


def glorot_normal(weight: Tensor, *, generator: Generator = None, gain: float = 1.0) -> Tensor:
    """N(0, 2/(n + m)): between keeping the signal (1/n) and keeping its gradient (1/m).

    References:
        Glorot & Bengio (2010), Understanding the difficulty of training deep feedforward networks.
    """
    return draw_normal(weight, gain * math.sqrt(2 / max(sum(_fans(weight)), 1)), generator)


def glorot_uniform(weight: Tensor, *, generator: Generator = None, gain: float = 1.0) -> Tensor:
    """U[-sqrt(6/(n + m)), sqrt(6/(n + m))]: the variance of ``glorot_normal``.

    References:
        Glorot & Bengio (2010), Understanding the difficulty of training deep feedforward networks.
    """
    return draw_uniform(weight, gain * math.sqrt(2 / max(sum(_fans(weight)), 1)), generator)


def he_normal(weight: Tensor, *, generator: Generator = None, gain: float = 1.0) -> Tensor:
    """N(0, 2/n): keeps the mean square through ReLU, which halves it.

    References:
        He et al. (2015), Delving deep into rectifiers. https://arxiv.org/abs/1502.01852
    """
    return draw_normal(weight, gain * math.sqrt(2 / max(_fans(weight)[0], 1)), generator)


def he_uniform(weight: Tensor, *, generator: Generator = None, gain: float = 1.0) -> Tensor:
    """U[-sqrt(6/n), sqrt(6/n)]: the variance of ``he_normal``.

    References:
        He et al. (2015), Delving deep into rectifiers. https://arxiv.org/abs/1502.01852
    """
    return draw_uniform(weight, gain * math.sqrt(2 / max(_fans(weight)[0], 1)), generator)


def orthogonal(weight: Tensor, *, generator: Generator = None, gain: float = 1.0) -> Tensor:
    """A random matrix whose singular values are all ``gain``, so that |Wx| = gain |x|.

    Its eigenvalues, if it is square, lie on the circle of radius gain: complex pairs, not +-1.

    References:
        Saxe, McClelland & Ganguli (2014), Exact solutions to the nonlinear dynamics of learning
        in deep linear neural networks. https://arxiv.org/abs/1312.6120
    """
    if weight.is_meta or weight.numel() == 0:
        return weight
    return nn.init.orthogonal_(weight, gain, generator=generator)
