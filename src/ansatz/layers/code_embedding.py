"""Steps that have several codes each, as one vector."""

import torch
from torch import Tensor, nn

from ansatz.layers.schemes import draw_normal


class CodeEmbedding(nn.Module):
    r"""The sum of the embeddings of a step's codes.

    .. math:: h_t = \sum_{c=1}^C m_{tc} \, E_c[k_{tc}], \qquad
        m_{tc} \sim \mathrm{Bernoulli}(1 - p) / (1 - p) \text{ in training}

    A whole code is dropped, so that none is relied on alone: without the code of the word, its
    letters must do, as they must for words that training has not shown.

    Args:
        cardinalities: the number of codes of each kind.
        width: numbers of a vector.
        dropout: the probability p that a code is left out in training.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - codes: ``(B, T, C)`` int64.
        - returns: ``(B, T, width)``.

    Example:
        >>> import torch
        >>> from ansatz.layers.code_embedding import CodeEmbedding
        >>> CodeEmbedding((9, 4), 8)(torch.tensor([[[3, 1], [8, 2]]])).shape
        torch.Size([1, 2, 8])
    """

    first: Tensor

    def __init__(
        self,
        cardinalities: tuple[int, ...],
        width: int,
        *,
        dropout: float = 0.1,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        ends = torch.tensor(cardinalities, device="cpu").cumsum(0)
        count, scale = int(ends[-1]), len(cardinalities) ** -0.5
        start = draw_normal(torch.empty(count, width), scale, generator)
        self.embedding = nn.Embedding(count, width, _weight=start)
        places = torch.cat([ends.new_zeros(1), ends[:-1]])
        self.register_buffer("first", places, persistent=False)
        self.dropout = dropout

    def forward(self, codes: Tensor) -> Tensor:
        vectors = self.embedding(codes + self.first)  # (B, T, C, width)
        if not self.training or not self.dropout:
            return vectors.sum(2)
        kept = torch.rand(codes.shape, device=codes.device) >= self.dropout
        share = kept.to(vectors.dtype) / (1 - self.dropout)
        return (share.unsqueeze(2) @ vectors).squeeze(2)
