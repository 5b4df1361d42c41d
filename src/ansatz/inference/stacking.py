"""How much each of several models counts, by the rows that none of them learned from."""

import math

import torch
from torch import Tensor

from ansatz.seeds import generator


def stack_weights(log_scores: Tensor, weight: Tensor | None = None) -> Tensor:
    r"""The weights of the mixture with the best log score.

    .. math:: \hat\pi = \arg\max_\pi \sum_i w_i \log \sum_g \pi_g\, p_g(y_i) + \sum_g \log \pi_g

    on the simplex, by EM: concave, so that there is one maximum. The last sum, as if each model had
    been right about one row more, keeps every weight above 0.

    Args:
        log_scores: ``(N, G)``, the log score of each row by each model, out of fold.
        weight: ``(N,)`` frequency weights.

    Returns:
        ``(G,)``, adding up to 1.

    Example:
        >>> import torch
        >>> from ansatz.inference.stacking import stack_weights
        >>> scores = torch.tensor([[0.0, -3.0], [0.0, -3.0], [-3.0, 0.0], [0.0, -3.0]])
        >>> bool(stack_weights(scores)[0] > 0.5)
        True

    References:
        Yao et al. (2018), Using stacking to average Bayesian predictive distributions.
        https://doi.org/10.1214/17-BA1091
    """
    scores = log_scores.double()
    count = scores.shape[1]
    if weight is None:
        weight = torch.ones(len(scores), dtype=torch.float64)
    weight = weight.double().unsqueeze(1)
    log_pi = torch.full((count,), -math.log(count), dtype=torch.float64)
    for _ in range(1_000):
        responsibility = torch.softmax(scores + log_pi, 1)
        mass = (weight * responsibility).sum(0) + 1
        fresh = (mass / mass.sum()).log()
        if float((fresh - log_pi).abs().max()) < 1e-8:
            break
        log_pi = fresh
    return log_pi.exp()


def probability_of_best(scores: Tensor, group: Tensor, seed: int = 0, draws: int = 2_000) -> Tensor:
    """How probable it is that each group has the best mean score, by the Bayesian bootstrap.

    For models that were evaluated on different rows, which no mixture weight can be fitted to: a
    clear winner takes nearly all, groups that are alike share.

    Args:
        scores: ``(N,)`` log scores, each of one row by one model.
        group: ``(N,)``, which group the model belongs to, 0..G-1.
        seed: of the draws.
        draws: how many.

    Returns:
        ``(G,)``, adding up to 1.

    Example:
        >>> import torch
        >>> from ansatz.inference.stacking import probability_of_best
        >>> scores = torch.tensor([0.0, 0.1, -0.1, 5.0, 5.1, 4.9])
        >>> probability_of_best(scores, torch.tensor([0, 0, 0, 1, 1, 1]))
        tensor([0., 1.], dtype=torch.float64)

    References:
        Yao et al. (2018), Using stacking to average Bayesian predictive distributions, section 3.4.
        https://doi.org/10.1214/17-BA1091
    """
    source = generator(seed, "bootstrap")
    means = []
    for number in range(int(group.max()) + 1):
        mine = scores[group == number].double()
        weight = torch.empty(draws, len(mine), dtype=torch.float64).exponential_(generator=source)
        means.append((weight @ mine) / weight.sum(1))
    best = torch.stack(means, 1).argmax(1)
    return torch.bincount(best, minlength=len(means)).double() / draws
