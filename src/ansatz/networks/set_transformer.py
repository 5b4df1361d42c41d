"""The set transformer: attention among elements by way of a few inducing points."""

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.dense import drop
from ansatz.layers.init import affine
from ansatz.layers.ragged import rows_of, segment_softmax, segment_sum
from ansatz.layers.schemes import draw_normal
from ansatz.networks.set_inputs import SetInputs, read_set
from ansatz.spec import Inputs


class _Block(nn.Module):
    """The part of an attention block behind its weights: projections, residual, norm, MLP."""

    def __init__(self, width: int, heads: int, generator: torch.Generator | None) -> None:
        super().__init__()
        self.width, self.heads = width, heads
        made = [affine(width, width, init="glorot_normal", generator=generator) for _ in range(4)]
        self.query, self.key, self.value, self.out = made
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up = affine(width, 2 * width, generator=generator)
        self.down = affine(2 * width, width, generator=generator)

    def split(self, x: Tensor) -> Tensor:
        """``(..., D)`` to ``(..., heads, D / heads)``."""
        return x.unflatten(-1, (self.heads, -1))

    def finish(self, query: Tensor, found: Tensor) -> Tensor:
        """Residual, norm and the map of each vector."""
        h = self.first(query + self.out(found.flatten(-2)))
        y: Tensor = self.second(h + self.down(nn.functional.silu(self.up(h))))
        return y


class PooledAttention(_Block):
    r"""m learned queries that each set answers: attention over its elements.

    .. math:: \operatorname{PMA}_m(X) = \operatorname{MAB}(S, X)

    with S ``(m, D)``. An empty set answers as if its values were 0.

    Args:
        width: :math:`D`.
        queries: :math:`m`.
        heads: of the attention.
        generator: of the weights.

    Shapes:
        - x: ``(E, D)``; offsets ``(B + 1,)``; returns ``(B, m, D)``.
    """

    def __init__(
        self, width: int, queries: int, heads: int, generator: torch.Generator | None = None
    ) -> None:
        super().__init__(width, heads, generator)
        self.points = nn.Parameter(draw_normal(torch.empty(queries, width), 1.0, generator))

    def forward(self, x: Tensor, offsets: Tensor) -> Tensor:
        q = self.split(self.query(self.points))  # (m, h, d)
        k, v = self.split(self.key(x)), self.split(self.value(x))  # (E, h, d)
        scores = torch.einsum("mhd,ehd->emh", q, k) * k.shape[-1] ** -0.5
        weight = segment_softmax(scores, offsets)  # (E, m, h)
        found = segment_sum(weight.unsqueeze(-1) * v.unsqueeze(1), offsets)  # (B, m, h, d)
        return self.finish(self.points.expand(len(offsets) - 1, -1, -1), found)


class InducedAttention(nn.Module):
    r"""Elements that attend to each other by way of m inducing points, in O(n m).

    .. math:: \operatorname{ISAB}(X) = \operatorname{MAB}(X, \operatorname{MAB}(I, X))

    Args:
        width: :math:`D`.
        points: :math:`m`.
        heads: of the attention.
        generator: of the weights.

    Shapes:
        - x: ``(E, D)``; offsets ``(B + 1,)``; returns ``(E, D)``.
    """

    def __init__(
        self, width: int, points: int, heads: int, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.induce = PooledAttention(width, points, heads, generator)
        self.answer = _Block(width, heads, generator)

    def forward(self, x: Tensor, offsets: Tensor) -> Tensor:
        block = self.answer
        points = self.induce(x, offsets)  # (B, m, D)
        row = rows_of(offsets, len(x))
        q = block.split(block.query(x))  # (E, h, d)
        k = block.split(block.key(points))[row]  # (E, m, h, d)
        v = block.split(block.value(points))[row]
        weight = (torch.einsum("ehd,emhd->emh", q, k) * q.shape[-1] ** -0.5).softmax(1)
        answer: Tensor = block.finish(x, torch.einsum("emh,emhd->ehd", weight, v))
        return answer


class SetTransformer(nn.Module):
    r"""Elements attend to each other, and a learned query to all of them.

    .. math:: f(X) = \rho\big(\operatorname{PMA}_1(\operatorname{ISAB}^L(A X)),\ \log(1 + n),\ u
        \big)

    with :math:`\rho` affine. For outcomes of elements :math:`\rho` takes the element's own vector
    as well. Interactions between elements, which a sum of :math:`\varphi(x_i)` must encode in its
    width, are one attention away here; it costs more per element.

    Args:
        inputs: ``InputSpec.set(D, ...)``, or the number of features of an element.
        outputs: :math:`P`.
        width: of the elements' vectors.
        depth: :math:`L`, number of blocks.
        heads: of each attention.
        points: inducing points of each block.
        dropout: of the pooled vector, in training.
        output_scale: factor on the initial weights of the last map.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - as those of :class:`DeepSets`.

    Example:
        >>> import torch
        >>> from ansatz.networks import SetTransformer
        >>> SetTransformer(3, 2)(torch.randn(5, 3), torch.tensor([0, 2, 5])).shape
        torch.Size([2, 2])

    References:
        Lee et al. (2019), Set transformer, section 3. https://arxiv.org/abs/1810.00825
    """

    heads: tuple[str, ...] = ("output",)

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        width: int = 64,
        depth: int = 2,
        heads: int = 4,
        points: int = 16,
        dropout: float = 0.1,
        output_scale: float = 0.1,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        spec = read_set("set_transformer", inputs)
        if heads < 1 or width % heads:
            raise UsageError(f"width {width} of set_transformer must be a multiple of heads.")
        if depth < 0 or points < 1:
            raise UsageError("set_transformer needs depth >= 0 and points >= 1.")
        self.each = spec.rows == "elements"
        self.inputs = SetInputs("set_transformer", spec, generator=generator)
        self.embed = affine(self.inputs.out_features, width, generator=generator)
        self.blocks = nn.ModuleList(
            InducedAttention(width, points, heads, generator) for _ in range(depth)
        )
        self.pool = PooledAttention(width, 1, heads, generator)
        self.dropout = drop(dropout)
        size = (2 if self.each else 1) * width + self.inputs.beside
        self.output = affine(size, outputs, gain=output_scale, generator=generator)

    def begin(self, values: Tensor, offsets: Tensor, *others: Tensor, slopes: Tensor) -> None:
        """Shows the sizes of the training sets."""
        self.inputs.observe(offsets)

    def forward(
        self,
        values: Tensor,
        offsets: Tensor,
        codes: Tensor | None = None,
        beside: Tensor | None = None,
        chosen: Tensor | None = None,
    ) -> Tensor:
        x, offsets, own, _ = self.inputs(values, offsets, codes, beside)
        h = self.embed(x)
        for block in self.blocks:
            h = block(h, offsets)
        pooled = torch.cat([self.pool(h, offsets)[:, 0], own], 1)
        if self.each:
            pooled = torch.cat([h, pooled[rows_of(offsets, len(h))]], 1)
            pooled = pooled if chosen is None else pooled[chosen]
        answer: Tensor = self.output(self.dropout(pooled))
        return answer
