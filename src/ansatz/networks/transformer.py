"""A small transformer encoder for sequences of tokens or of numbers."""

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.init import affine
from ansatz.layers.limits import require_whole
from ansatz.layers.positions import LearnedPositions, SinusoidalPositions
from ansatz.layers.transformer_block import Order, TransformerBlock
from ansatz.networks.grid_layers import readout
from ansatz.networks.token_inputs import LENGTH, embedding, read_steps, require_codes
from ansatz.spec import Inputs

Positions = Literal["sinusoidal", "learned", "rotary", "none"]


class Transformer(nn.Module):
    r"""Blocks of attention between the steps, then a mean over the present steps and a linear map.

    .. math:: y = W \,\mathrm{LN}\Bigl(\frac{1}{|M|} \sum_{t \in M} h_t\Bigr) + b, \qquad
        h = \mathrm{blocks}(x + \mathrm{PE})

    With ``each=True`` every step has an answer of its own, W LN(h_t) + b.

    Args:
        inputs: ``InputSpec.sequence(features=D)`` or ``InputSpec.sequence(vocabulary=V)``.
        outputs: :math:`P`.
        width: numbers of a step inside.
        depth: blocks.
        heads: attentions of a block.
        positions: ``"sinusoidal"``, ``"learned"``, ``"rotary"`` or ``"none"``, which cannot see
            the order.
        norm: ``"pre"`` or ``"post"``, see :class:`~ansatz.layers.TransformerBlock`.
        causal: a step sees itself and earlier steps only.
        dropout: probability that a number is dropped while training.
        each: one answer for each step.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - values: ``(B, T, D)`` numbers, or ``(B, T)`` int64 codes.
        - mask: ``(B, T)`` bool, True where a step is present; others may hold nan.
        - returns: ``(B, P)``, or ``(B, P, T)`` with ``each=True``.

    Example:
        >>> import torch
        >>> from ansatz.networks import Transformer
        >>> from ansatz.spec import InputSpec
        >>> Transformer(InputSpec.sequence(features=3), 2, width=8)(torch.randn(4, 6, 3)).shape
        torch.Size([4, 2])

    References:
        Vaswani et al. (2017), Attention is all you need. https://arxiv.org/abs/1706.03762
    """

    heads = ("head",)

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        width: int = 64,
        depth: int = 2,
        heads: int = 4,
        positions: Positions = "sinusoidal",
        norm: Order = "pre",
        causal: bool = False,
        dropout: float = 0.0,
        each: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.spec, self.each = read_steps("transformer", inputs), each
        if positions not in get_args(Positions):
            known = ", ".join(get_args(Positions))
            raise UsageError(f"positions of transformer must be one of {known}, got {positions!r}.")
        require_whole("depth of transformer", depth, high=1_000)
        self.entrance: nn.Module
        if self.spec.vocabulary:
            self.entrance = embedding(self.spec.vocabulary, width, generator, padding=True)
        else:
            self.entrance = affine(
                self.spec.features, width, init="lecun_normal", generator=generator
            )
        self.positions: nn.Module = nn.Identity()
        if positions == "sinusoidal":
            self.positions = SinusoidalPositions(width)
        elif positions == "learned":
            length = (self.spec.size or (LENGTH,))[0]
            self.positions = LearnedPositions(length, width, generator=generator)
        self.blocks = nn.ModuleList(
            TransformerBlock(
                width,
                heads,
                norm=norm,
                causal=causal,
                rotary=positions == "rotary",
                dropout=dropout,
                generator=generator,
            )
            for _ in range(depth)
        )
        self.norm = nn.LayerNorm(width)
        self.head = readout(width, outputs, generator)

    def layer_groups(self) -> list[list[nn.Module]]:
        """Its layers from x to the outcome: entrance, blocks, norm, last map."""
        blocks: list[list[nn.Module]] = [[block] for block in self.blocks]
        return [[self.entrance, self.positions], *blocks, [self.norm], [self.head]]

    def forward(self, values: Tensor, mask: Tensor | None = None) -> Tensor:
        self._require(values)
        present = None if mask is None else mask.unsqueeze(-1)  # (B, T, 1)
        if present is not None:
            values = torch.where(mask if self.spec.vocabulary else present, values, 0)  # type: ignore[arg-type]
        h = self.positions(self.entrance(values))  # (B, T, width)
        for block in self.blocks:
            h = block(h, mask)
        if self.each:
            return self.head(self.norm(h)).transpose(1, 2)  # (B, P, T)
        if present is None:
            return self.head(self.norm(h.mean(1)))
        count = present.sum(1).clamp(min=1)
        return self.head(self.norm(torch.where(present, h, 0).sum(1) / count))

    def _require(self, values: Tensor) -> None:
        if self.spec.vocabulary:
            require_codes("transformer", self.spec.vocabulary, values.shape[-1], values)
        elif values.ndim != 3 or values.shape[-1] != self.spec.features:
            raise UsageError(
                f"transformer needs x of shape (B, T, {self.spec.features}), "
                f"got {tuple(values.shape)}."
            )
