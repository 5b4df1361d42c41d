"""Margin losses: a network maps rows of one class near each other, and others apart."""

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from ansatz.data.batch import Batch
from ansatz.errors import UsageError
from ansatz.training.objectives import Loss

Mining = Literal["all", "hardest"]


class PairMargin(nn.Module):
    r"""The contrastive loss of all pairs of rows in a batch.

    .. math:: \ell_{ij} = \begin{cases} \frac{1}{2} d_{ij}^2 & y_i = y_j \\
              \frac{1}{2} \max(0, m - d_{ij})^2 & y_i \ne y_j \end{cases}, \qquad
              d_{ij} = \lVert z_i - z_j \rVert, \quad i < j

    for embeddings z = network(x). Pairs of one class attract each other; pairs of two classes repel
    each other up to the margin m. A pair has the weight :math:`w_i w_j`.

    Args:
        margin: m > 0.
        normalize: whether embeddings are divided by their length; distances are then at most 2.

    Shapes:
        - network(*inputs): ``(B, D)``.
        - batch.target: ``(B,)`` class codes.

    Example:
        >>> import torch
        >>> from ansatz.data import Batch
        >>> from ansatz.training import PairMargin
        >>> batch = Batch.of(torch.tensor([[0.0], [0.0], [0.2]]), torch.tensor([0, 0, 1]))
        >>> loss = PairMargin(1.0, normalize=False)(torch.nn.Identity(), batch)
        >>> round((loss.total / loss.count).item(), 4)  # 0, 0.8^2 / 2, 0.8^2 / 2
        0.2133

    References:
        Hadsell, Chopra and LeCun (2006), Dimensionality reduction by learning an invariant mapping,
        eq. 4.
    """

    def __init__(self, margin: float = 1.0, *, normalize: bool = True) -> None:
        super().__init__()
        self.margin, self.normalize = _positive(margin), normalize

    def forward(self, network: nn.Module, batch: Batch) -> Loss:
        """Computes the loss of a batch, as a sum over pairs and their weight."""
        distance, y = _distances(network, batch, self.normalize)
        same = y.unsqueeze(0) == y.unsqueeze(1)  # (B, B)
        terms = torch.where(same, distance, (self.margin - distance).clamp(min=0)) ** 2 / 2
        weight = (batch.weight.unsqueeze(0) * batch.weight.unsqueeze(1)).triu(1)
        return Loss((weight * terms).sum(), weight.sum())


class TripletMargin(nn.Module):
    r"""The triplet loss: a row is nearer to its class than to others by a margin.

    .. math:: \ell_{apn} = \max(0,\; d_{ap} - d_{an} + m), \qquad
              y_a = y_p \ne y_n,\; a \ne p,\; d_{ij} = \lVert z_i - z_j \rVert

    for embeddings z = network(x). The triplets are made of the rows of a batch: all of them, or for
    each anchor a the hardest, with the farthest row of its class and the nearest of another. The
    hardest train faster, but follow wrong labels. (FaceNet has squared distances.) Batches need
    several rows per class; one without a triplet has loss 0.

    Args:
        margin: m > 0.
        mining: ``"all"`` or ``"hardest"`` triplets.
        normalize: whether embeddings are divided by their length; distances are then at most 2.

    A triplet of ``"all"`` has the weight :math:`w_a w_p w_n`, one of ``"hardest"`` that of its
    anchor.

    Shapes:
        - network(*inputs): ``(B, D)``.
        - batch.target: ``(B,)`` class codes.

    Example:
        >>> import torch
        >>> from ansatz.data import Batch
        >>> from ansatz.training import TripletMargin
        >>> batch = Batch.of(torch.tensor([[0.0], [0.1], [0.3]]), torch.tensor([0, 0, 1]))
        >>> loss = TripletMargin(0.5, normalize=False)(torch.nn.Identity(), batch)
        >>> round((loss.total / loss.count).item(), 4)  # 0.1 - 0.3 + 0.5 and 0.1 - 0.2 + 0.5
        0.35

    References:
        Schroff, Kalenichenko and Philbin (2015), FaceNet. https://arxiv.org/abs/1503.03832
        Hermans, Beyer and Leibe (2017), In defense of the triplet loss for person
        re-identification, section 2. https://arxiv.org/abs/1703.07737
    """

    def __init__(
        self, margin: float = 0.2, *, mining: Mining = "all", normalize: bool = True
    ) -> None:
        super().__init__()
        if mining not in get_args(Mining):
            raise UsageError(f"mining must be 'all' or 'hardest', got {mining!r}.")
        self.margin, self.mining, self.normalize = _positive(margin), mining, normalize

    def forward(self, network: nn.Module, batch: Batch) -> Loss:
        """Computes the loss of a batch, as a sum over triplets and their weight."""
        distance, y = _distances(network, batch, self.normalize)
        weight = batch.weight
        seen = (weight > 0).unsqueeze(0)  # (1, B)
        same = (y.unsqueeze(0) == y.unsqueeze(1)) & seen
        other, near = ~same & seen, same & ~torch.eye(len(y), dtype=torch.bool, device=y.device)
        if self.mining == "hardest":
            farthest = torch.where(near, distance, -torch.inf).amax(1)
            nearest = torch.where(other, distance, torch.inf).amin(1)
            exists = near.any(1) & other.any(1)
            gap = torch.where(exists, farthest, 0) - torch.where(exists, nearest, 0)
            mass = weight * exists
            return Loss((mass * (gap + self.margin).clamp(min=0)).sum(), mass.sum())
        gaps = distance.unsqueeze(2) - distance.unsqueeze(1) + self.margin  # (a, p, n)
        pairs, others = weight.unsqueeze(1) * weight * near, weight * other  # (a, p), (a, n)
        total = torch.einsum("ap,apn,an->", pairs, gaps.clamp(min=0), others)
        return Loss(total, (pairs.sum(1) * others.sum(1)).sum())


def _positive(margin: float) -> float:
    if not margin > 0:
        raise UsageError(f"margin must be a positive distance, got {margin}.")
    return float(margin)


def _distances(network: nn.Module, batch: Batch, normalize: bool) -> tuple[Tensor, Tensor]:
    """Distances of all pairs of embeddings, ``(B, B)``, and the class codes."""
    z, y = network(*batch.inputs), batch.target
    if not isinstance(z, Tensor) or z.ndim != 2:
        raise UsageError(f"a margin loss needs embeddings (B, D), got {tuple(z.shape)}.")
    if not isinstance(y, Tensor) or y.ndim != 1:
        raise UsageError(f"a margin loss needs a class code per row, got {tuple(y.shape)}.")
    if normalize:
        z = nn.functional.normalize(z)
    # Squares of differences, not differences of squares: near rows keep their digits.
    return torch.cdist(z, z, compute_mode="donot_use_mm_for_euclid_dist"), y
