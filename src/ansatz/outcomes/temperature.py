"""One number that makes class probabilities as sure as they may be."""

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor


def find_temperature(logits: Tensor, y: Tensor, weight: Tensor) -> float:
    r"""The temperature T of the best log score of softmax(logits / T).

    .. math:: \hat T = \arg\max_T \sum_i w_i \log \mathrm{softmax}(z_i / T)_{y_i}

    A T above 1 takes confidence back. The logits must come from models that did not learn from
    the rows they are judged on, or T comes out too small.

    Args:
        logits: ``(N, K)``.
        y: ``(N,)`` class codes.
        weight: ``(N,)``.

    References:
        Guo et al. (2017), On calibration of modern neural networks.
        https://arxiv.org/abs/1706.04599
    """
    finite = logits.clamp(min=torch.finfo(logits.dtype).min / 1e4)

    def loss(log_temperature: float) -> float:
        log_p = torch.log_softmax(finite * torch.exp(torch.tensor(-log_temperature)), -1)
        return -float(weight @ log_p.gather(-1, y.unsqueeze(-1)).squeeze(-1))

    best = minimize_scalar(loss, bounds=(-3.0, 3.0), method="bounded")
    return float(torch.exp(torch.tensor(best.x, dtype=torch.float64)))
