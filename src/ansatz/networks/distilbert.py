"""DistilBERT: BERT without segments and pooler, usually with half of its blocks."""

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, relu

from ansatz.layers.attention import attention, join_heads, require_heads, split_heads
from ansatz.layers.dense import drop
from ansatz.layers.limits import require_whole
from ansatz.layers.lora import adapt
from ansatz.networks.token_inputs import (
    Pooling,
    embedding,
    mean_state,
    read_tokens,
    require_codes,
    require_pooling,
    small_linear,
)
from ansatz.spec import Inputs


class _Block(nn.Module):
    def __init__(
        self,
        width: int,
        heads: int,
        hidden: int,
        dropout: float,
        generator: torch.Generator | None,
    ) -> None:
        super().__init__()
        self.heads, self.p = require_heads("distilbert", width, heads), dropout
        names = ("q_lin", "k_lin", "v_lin", "out_lin")
        self.attention = nn.ModuleDict({n: small_linear(width, width, generator) for n in names})
        self.sa_layer_norm = nn.LayerNorm(width, 1e-12)
        self.ffn = nn.ModuleDict(
            {
                "lin1": small_linear(width, hidden, generator),
                "lin2": small_linear(hidden, width, generator),
            }
        )
        self.output_layer_norm = nn.LayerNorm(width, 1e-12)
        self.drop = drop(dropout)

    def forward(self, x: Tensor, keys: Tensor | None) -> Tensor:
        q, k, v = (
            split_heads(self.attention[name](x), self.heads)
            for name in ("q_lin", "k_lin", "v_lin")
        )  # fmt: skip
        y = attention(q, k, v, keys, dropout=self.p if self.training else 0.0)
        x = self.sa_layer_norm(x + self.attention["out_lin"](join_heads(y)))
        return self.output_layer_norm(x + self.drop(self.ffn["lin2"](gelu(self.ffn["lin1"](x)))))


class DistilBERT(nn.Module):
    r"""A smaller BERT, with the names and the computation of Hugging Face's DistilBERT.

    .. math:: y = W \,\mathrm{ReLU}(W_p h_1 + b_p) + b

    With ``each=True`` the state of each token is mapped by itself, y_t = W h_t + b.

    Args:
        inputs: ``InputSpec.sequence(vocabulary=V, length=T)``; 512 positions without a length.
        outputs: :math:`P`.
        width: :math:`D`, numbers of a token.
        depth: blocks.
        heads: attentions of a block.
        hidden: units of a block's network; 4 D when not given.
        dropout: probability that a number is dropped while training.
        each: one answer for each token.
        pooling: what one answer is read from: ``"first"``, the first token, or ``"mean"``, the
            mean state of the present tokens, without a map in between.
        rank: of low-rank changes of the maps of queries and values, all that is then trained
            besides the last map, see :class:`~ansatz.layers.LoRA`; 0 for none.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - values: ``(B, T)`` int64; mask: ``(B, T)`` bool, True where a token is present.
        - returns: ``(B, P)``, or ``(B, P, T)`` with ``each=True``.

    Example:
        >>> import torch
        >>> from ansatz.networks import DistilBERT
        >>> from ansatz.spec import InputSpec
        >>> model = DistilBERT(InputSpec.sequence(vocabulary=50, length=16), 2, width=8, heads=2)
        >>> model(torch.ones(3, 5, dtype=torch.long)).shape
        torch.Size([3, 2])

    References:
        Sanh et al. (2019), DistilBERT. https://arxiv.org/abs/1910.01108
    """

    optional: tuple[str, ...] = (
        "vocab_transform",
        "vocab_layer_norm",
        "vocab_projector",
        "qa_outputs",
    )

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        width: int = 128,
        depth: int = 2,
        heads: int = 4,
        hidden: int | None = None,
        dropout: float = 0.0,
        each: bool = False,
        pooling: Pooling = "first",
        rank: int = 0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.vocabulary, self.length = read_tokens("distilbert", inputs)
        require_whole("depth of distilbert", depth, high=1_000)
        self.each, hidden = each, hidden or 4 * width
        self.pooled = each or require_pooling("distilbert", pooling) == "mean"  # by no map
        blocks = [_Block(width, heads, hidden, dropout, generator) for _ in range(depth)]
        self.distilbert = nn.ModuleDict(
            {
                "embeddings": nn.ModuleDict(
                    {
                        "word_embeddings": embedding(
                            self.vocabulary, width, generator, padding=True
                        ),
                        "position_embeddings": embedding(self.length, width, generator),
                        "LayerNorm": nn.LayerNorm(width, 1e-12),
                    }
                ),
                "transformer": nn.ModuleDict({"layer": nn.ModuleList(blocks)}),
            }
        )
        self.drop = drop(dropout)
        if not self.pooled:
            self.pre_classifier = small_linear(width, width, generator)
        self.heads = ("classifier",) if self.pooled else ("pre_classifier", "classifier")
        if self.pooled:
            self.optional = (*self.optional, "pre_classifier")
        self.classifier = small_linear(width, outputs, generator)
        adapt(self, ("q_lin", "v_lin"), rank, generator=generator)

    def layer_groups(self) -> list[list[nn.Module]]:
        """Its layers from x to the outcome: embeddings, blocks, last maps."""
        layer = self.distilbert["transformer"]["layer"]  # type: ignore[index]
        head = [self.get_submodule(name) for name in self.heads]
        return [[self.distilbert["embeddings"]], *([m] for m in layer.children()), head]

    def hidden_states(self, values: Tensor, mask: Tensor | None = None) -> Tensor:
        """The states after the last block, ``(B, T, D)``."""
        require_codes("distilbert", self.vocabulary, self.length, values)
        parts: nn.ModuleDict = self.distilbert["embeddings"]  # type: ignore[assignment]
        places = torch.arange(values.shape[1], device=values.device)
        x = parts["word_embeddings"](values) + parts["position_embeddings"](places)
        x = self.drop(parts["LayerNorm"](x))
        keys = None if mask is None else mask[:, None, None]
        for block in self.distilbert["transformer"]["layer"]:  # type: ignore[index]
            x = block(x, keys)
        return x

    def forward(self, values: Tensor, mask: Tensor | None = None) -> Tensor:
        h = self.hidden_states(values, mask)
        if self.each:
            return self.classifier(self.drop(h)).transpose(1, 2)
        if self.pooled:
            return self.classifier(self.drop(mean_state(h, mask)))
        return self.classifier(self.drop(relu(self.pre_classifier(h[:, 0]))))
