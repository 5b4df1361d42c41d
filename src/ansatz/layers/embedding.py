"""Categories as learned vectors."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from ansatz.errors import DataError
from ansatz.layers.limits import require_whole
from ansatz.layers.schemes import draw_normal


class CategoryEmbedding(nn.Module):
    r"""Each level of each categorical column is a learned vector.

    Column c with n levels has a table of n + 1 rows: code 0 is the unknown level, whose vector
    starts at zero (no information) and is learned if unknown values occur in training; codes
    1..n are the levels. A level's vector starts with :math:`N(0, 1/K_c)` entries, of norm about
    1, as its one-hot code would have.

    Args:
        cardinalities: n for each column.
        dim: :math:`K_c`, the same for all columns; when not given
            :math:`\min(50, \mathrm{round}(1.6\, n^{0.56}))`, a rule of thumb.
        init: ``"zeros"`` starts the levels too at zero.
        generator: where the vectors are drawn from; torch's global one when not given.

    Shapes:
        - codes: ``(B, C)`` whole numbers.
        - returns: ``(B, sum of K_c)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import CategoryEmbedding
        >>> CategoryEmbedding([3, 100], dim=4)(torch.tensor([[0, 100]]))[0, :4]
        tensor([0., 0., 0., 0.], grad_fn=<SliceBackward0>)

    References:
        Guo & Berkhahn (2016), Entity embeddings of categorical variables.
        https://arxiv.org/abs/1604.06737
    """

    def __init__(
        self,
        cardinalities: Sequence[int],
        *,
        dim: int | None = None,
        init: Literal["normal", "zeros"] = "normal",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        for n in cardinalities:
            require_whole("cardinality of a column", n, low=0, high=2**31)
        if dim is not None:
            require_whole("dim of CategoryEmbedding", dim)
        self.cardinalities = tuple(cardinalities)
        dims = [rule_of_thumb(n) if dim is None else dim for n in cardinalities]
        self.out_features = sum(dims)
        self.tables = nn.ModuleList(
            _table(n + 1, k, init, generator) for n, k in zip(cardinalities, dims, strict=True)
        )

    def forward(self, codes: Tensor) -> Tensor:
        if codes.ndim != 2 or codes.shape[1] != len(self.tables):
            raise ValueError(
                f"codes must have shape (B, {len(self.tables)}), got {tuple(codes.shape)}."
            )
        try:
            parts = [table(codes[:, c]) for c, table in enumerate(self.tables)]
        except IndexError:  # torch's own says neither which code nor which column
            raise DataError(self._out_of_range(codes)) from None
        return torch.cat(parts, -1)

    def _out_of_range(self, codes: Tensor) -> str:
        top = torch.tensor(self.cardinalities, device=codes.device)
        row, column = ((codes < 0) | (codes > top)).nonzero()[0].tolist()
        return (
            f"codes of column {column} must be in 0..{self.cardinalities[column]}, "
            f"got {codes[row, column].item()} in row {row}; code an unseen level as 0."
        )


def _table(rows: int, dim: int, init: str, generator: torch.Generator | None) -> nn.Embedding:
    vectors = torch.zeros(rows, dim)
    if init == "normal":
        draw_normal(vectors[1:], dim**-0.5, generator)
    return nn.Embedding.from_pretrained(vectors, freeze=False)


def rule_of_thumb(cardinality: int) -> int:
    """Numbers that a column with so many levels is embedded in."""
    return max(1, min(50, round(1.6 * cardinality**0.56)))
