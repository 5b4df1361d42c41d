"""The beta distribution of the constant model, by maximum likelihood."""

import torch
from torch import Tensor

from ansatz.likelihoods.digamma import digamma_gap
from ansatz.likelihoods.likelihood import weighted_mean, weighted_sd


def fit_beta(y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """The maximum-likelihood logit(mu) and 1/phi of the constant model; 1/phi is 0 for equal y.

    psi(a + b) - psi(a) = -mean(log y) and psi(a + b) - psi(b) = -mean(log(1 - y)): the
    log-likelihood is concave in (a, b), and Newton's method starts from the moments.

    Shapes:
        - y: ``(B,)`` or ``(B, K)``, strictly between 0 and 1; weight ``(B,)``.
        - returns: ``()`` or ``(K,)`` each.
    """
    dtype, y, weight = y.dtype, y.double(), weight.double()
    log_x, log_y = weighted_mean(y.log(), weight), weighted_mean(torch.log1p(-y), weight)
    mean, variance = weighted_mean(y, weight), weighted_sd(y, weight) ** 2
    equal = variance < 1e-20 * (mean * (1 - mean)) ** 2
    phi = mean * (1 - mean) / torch.where(equal, 1.0, variance) - 1
    phi = torch.where(equal, 1.0, phi.clamp(min=1e-3))
    a, b = mean * phi, (1 - mean) * phi
    for _ in range(100):
        first, second = digamma_gap(a, b) + log_x, digamma_gap(b, a) + log_y
        both, one, two = (torch.special.polygamma(1, v) for v in (a + b, a, b))
        # The negative Hessian is diag(one, two) - both; its inverse times the gradient:
        share = both * (first / one + second / two) / (1 - both / one - both / two)
        step_a, step_b = (first + share) / one / a, (second + share) / two / b
        # In logarithms where that keeps the shapes positive; near the end both are the same.
        a, b = a * step_a.clamp(-1.5, 3).exp(), b * step_b.clamp(-1.5, 3).exp()
        if bool(((step_a.abs() < 1e-13) & (step_b.abs() < 1e-13))[~equal].all()):
            break
    logit = torch.where(equal, torch.logit(mean), a.log() - b.log())
    return logit.to(dtype), torch.where(equal, 0, 1 / (a + b)).to(dtype)


def fit_beta_mean(y: Tensor, weight: Tensor, dispersion: Tensor) -> Tensor:
    """The maximum-likelihood logit(mu) of the constant model with a known 1/phi.

    psi(mu phi) - psi((1 - mu) phi) = mean(logit(y)), which rises with mu: Newton's method in a
    bracket.
    """
    target = weighted_mean(torch.logit(y.double()), weight.double())
    phi = 1 / dispersion.double()
    eta, low, high = target.clamp(-40, 40), target * 0 - 60.0, target * 0 + 60.0
    for _ in range(100):
        a, b = phi * torch.sigmoid(eta), phi * torch.sigmoid(-eta)
        gap = torch.digamma(a) - torch.digamma(b) - target
        slope = (
            a
            * torch.sigmoid(-eta)
            * (torch.special.polygamma(1, a) + torch.special.polygamma(1, b))
        )
        low, high = torch.where(gap < 0, eta, low), torch.where(gap < 0, high, eta)
        new = eta - gap / slope
        new = torch.where((new >= low) & (new <= high), new, (low + high) / 2)
        done = bool(((new - eta).abs() <= 1e-15 * (1 + eta.abs())).all())
        eta = new
        if done:
            break
    return eta.to(y.dtype)
