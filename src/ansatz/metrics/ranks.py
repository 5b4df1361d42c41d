"""Ranks of the right answers among all, ties averaged: reciprocal ranks and hits."""

from collections.abc import Sequence

import torch
from torch import Tensor


def answer_ranks(scores: Tensor, answer: Tensor, known: Tensor | None = None) -> Tensor:
    r"""The rank of each answer among the scores of its row, 1 for the best.

    .. math:: 1 + \sum_{j \notin K} [s_j > s_a] + \tfrac12 \sum_{j \notin K, j \ne a} [s_j = s_a]

    over all but the known other answers K (the filtered rank). Ties count half: a model that
    scores all alike has the rank (n + 1) / 2, whatever the order of the scores.

    Args:
        scores: ``(B, E)``.
        answer: ``(B,)`` places of the answers.
        known: ``(M, 2)`` rows and places of known answers, which are left out.

    Example:
        >>> import torch
        >>> from ansatz.metrics import answer_ranks
        >>> answer_ranks(torch.tensor([[3.0, 1.0, 1.0, 0.0]]), torch.tensor([1]))
        tensor([2.5000], dtype=torch.float64)

    References:
        Bordes et al. (2013), Translating embeddings, section 4.1, for filtered ranks; Sun et al.
        (2020), A re-evaluation of knowledge graph completion methods, for ties.
        https://arxiv.org/abs/1911.03903
    """
    own = scores.gather(1, answer.unsqueeze(1))  # (B, 1)
    counted = torch.ones_like(scores, dtype=torch.bool)
    if known is not None and len(known):
        counted[known[:, 0], known[:, 1]] = False
    counted.scatter_(1, answer.unsqueeze(1), value=False)
    above = ((scores > own) & counted).sum(1)
    tied = ((scores == own) & counted).sum(1)
    return 1 + above.double() + tied.double() / 2


def rank_metrics(
    ranks: Tensor, weight: Tensor | None = None, at: Sequence[int] = (1, 3, 10)
) -> dict[str, float]:
    """The mean reciprocal rank, and the share of ranks up to each of ``at``.

    Example:
        >>> import torch
        >>> from ansatz.metrics import rank_metrics
        >>> rank_metrics(torch.tensor([1.0, 2.0, 4.0, 20.0]), at=(1, 10))
        {'mrr': 0.45, 'hits@1': 0.25, 'hits@10': 0.75}
    """
    ranks = ranks.double()
    mass = torch.ones_like(ranks) if weight is None else weight.to(ranks)
    share = mass / mass.sum()
    found = {"mrr": float((share * ranks.reciprocal()).sum())}
    return found | {f"hits@{k}": float(share[ranks <= k].sum()) for k in at}
