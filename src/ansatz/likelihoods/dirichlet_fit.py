"""The maximum-likelihood Dirichlet distribution of a sample of compositions."""

import torch
from torch import Tensor

from ansatz.likelihoods.digamma import digamma_gap
from ansatz.likelihoods.inverse import find_root
from ansatz.likelihoods.likelihood import weighted_mean, weighted_sd


def fit_dirichlet(y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    r"""The logits of the means and 1/phi of the constant model; 1/phi is 0 where all rows agree.

    .. math:: \psi(\phi) - \psi(a_k) = -\overline{\log y_k}, \qquad \phi = \sum_k a_k

    The log-likelihood is concave in a, and its Hessian a diagonal plus a constant, so that Newton's
    step costs no matrix (Minka). It starts from the moments.

    Shapes:
        - y: ``(B, K)``, weight ``(B,)``.
        - returns: ``(K,)``, adding up to 0, and ``()``.

    References:
        Minka (2000), Estimating a Dirichlet distribution, section 1.
        https://tminka.github.io/papers/dirichlet/
    """
    dtype, y, weight = y.dtype, y.double(), weight.double()
    log_y = weighted_mean(y.log(), weight)
    mean, variance = weighted_mean(y, weight), weighted_sd(y, weight) ** 2
    if float(variance.sum()) < 1e-20:
        logits = mean.log()
        return (logits - logits.mean()).to(dtype), torch.zeros((), dtype=dtype, device=y.device)
    a = mean * ((mean * (1 - mean)).sum() / variance.sum() - 1).clamp(min=1e-3)
    for _ in range(200):
        phi = a.sum()
        gradient = digamma_gap(a, phi - a) + log_y
        each, both = torch.special.polygamma(1, a), torch.special.polygamma(1, phi)
        share = both * (gradient / each).sum() / (1 - (both / each).sum())
        step = (gradient + share) / each / a
        a = a * step.clamp(-1.5, 3).exp()  # in logarithms, which keeps the shapes positive
        if float(step.abs().max()) < 1e-13:
            break
    logits = a.log()
    return (logits - logits.mean()).to(dtype), (1 / a.sum()).to(dtype)


def fit_dirichlet_mean(y: Tensor, weight: Tensor, dispersion: Tensor) -> Tensor:
    r"""The logits of the means of the constant model with a known 1/phi.

    .. math:: \psi(a_k) = \overline{\log y_k} + \lambda, \qquad \sum_k a_k = \phi

    solved for :math:`\lambda`, between the values that give every a_k at most or at least phi / K.

    References:
        Minka (2000), Estimating a Dirichlet distribution, section 4.
    """
    dtype, y, weight = y.dtype, y.double(), weight.double()
    log_y, phi = weighted_mean(y.log(), weight), 1 / dispersion.double()
    even = torch.digamma(phi / len(log_y)) - log_y

    def excess(shift: Tensor) -> tuple[Tensor, Tensor]:
        a = _inverse_digamma(log_y + shift.unsqueeze(-1))
        slope = (1 / torch.special.polygamma(1, a)).sum(-1)
        return a.sum(-1).log() - phi.log(), slope / a.sum(-1)

    low, high = even.min().reshape(1), even.max().reshape(1)
    shift = find_root(excess, low, high, (low + high) / 2, tolerance=1e-14)
    logits = _inverse_digamma(log_y + shift).log()
    return (logits - logits.mean()).to(dtype)


def _inverse_digamma(value: Tensor) -> Tensor:
    """The a > 0 with psi(a) = value: Minka's start and Newton's method in log a."""
    a = torch.where(value >= -2.22, value.exp() + 0.5, -1 / (value - torch.digamma(torch.ones(()))))
    for _ in range(8):
        step = (torch.digamma(a) - value) / (a * torch.special.polygamma(1, a))
        a = a * (-step).clamp(-2, 2).exp()
    return a
