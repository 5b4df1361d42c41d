"""BERT: a transformer encoder on tokens."""

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

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


def _part(**modules: nn.Module) -> nn.ModuleDict:
    """Names of the checkpoint's folders; the computation is written in the block."""
    return nn.ModuleDict(modules)


class _Block(nn.Module):
    def __init__(
        self,
        width: int,
        heads: int,
        hidden: int,
        dropout: float,
        eps: float,
        generator: torch.Generator | None,
    ) -> None:
        super().__init__()
        self.heads, self.p = require_heads("bert", width, heads), dropout
        maps = {
            name: small_linear(width, width, generator) for name in ("query", "key", "value")
        }  # fmt: skip
        output = _part(
            dense=small_linear(width, width, generator), LayerNorm=nn.LayerNorm(width, eps)
        )
        self.attention = nn.ModuleDict({"self": nn.ModuleDict(maps), "output": output})
        self.intermediate = _part(dense=small_linear(width, hidden, generator))
        self.output = _part(
            dense=small_linear(hidden, width, generator), LayerNorm=nn.LayerNorm(width, eps)
        )
        self.drop = drop(dropout)

    def forward(self, x: Tensor, keys: Tensor | None) -> Tensor:
        maps, output = self.attention["self"], self.attention["output"]
        q, k, v = (
            split_heads(maps[name](x), self.heads)  # type: ignore[index]
            for name in ("query", "key", "value")
        )
        y = join_heads(attention(q, k, v, keys, dropout=self.p if self.training else 0.0))
        x = output["LayerNorm"](x + self.drop(output["dense"](y)))  # type: ignore[index]
        y = self.output["dense"](gelu(self.intermediate["dense"](x)))
        return self.output["LayerNorm"](x + self.drop(y))


class BERT(nn.Module):
    r"""A transformer encoder whose first token, [CLS], is read out.

    .. math:: y = W \tanh(W_p h_1 + b_p) + b

    Names and computation are those of Hugging Face's BertForSequenceClassification; with
    ``each=True`` those of BertForTokenClassification, which maps the state of each token.

    Args:
        inputs: ``InputSpec.sequence(vocabulary=V, length=T)``; 512 positions without a length.
        outputs: :math:`P`.
        width: :math:`D`, numbers of a token.
        depth: blocks.
        heads: attentions of a block.
        hidden: units of a block's network; 4 D when not given.
        types: kinds of segments: 2 for pairs of sentences.
        dropout: probability that a number is dropped while training.
        eps: of the norms.
        each: one answer for each token.
        pooling: what one answer is read from: ``"first"``, the first token, or ``"mean"``, the
            mean state of the present tokens, without a map in between.
        rank: of low-rank changes of the maps of queries and values, all that is then trained
            besides the last map, see :class:`~ansatz.layers.LoRA`; 0 for none.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - values: ``(B, T)`` int64; mask: ``(B, T)`` bool, True where a token is present.
        - types: ``(B, T)`` int64, the segment of each token; all 0 when not given.
        - returns: ``(B, P)``, or ``(B, P, T)`` with ``each=True``.

    Example:
        >>> import torch
        >>> from ansatz.networks import BERT
        >>> from ansatz.spec import InputSpec
        >>> model = BERT(InputSpec.sequence(vocabulary=50, length=16), 2, width=8, heads=2)
        >>> model(torch.ones(3, 5, dtype=torch.long)).shape
        torch.Size([3, 2])

    References:
        Devlin et al. (2019), BERT. https://arxiv.org/abs/1810.04805
    """

    heads = ("classifier",)
    optional: tuple[str, ...] = (
        "cls",
        "qa_outputs",
        "bert.pooler",
    )  # of a file: heads of other tasks

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        width: int = 128,
        depth: int = 4,
        heads: int = 4,
        hidden: int | None = None,
        types: int = 2,
        dropout: float = 0.0,
        eps: float = 1e-12,
        each: bool = False,
        pooling: Pooling = "first",
        rank: int = 0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.vocabulary, self.length = read_tokens("bert", inputs)
        require_whole("depth of bert", depth, high=1_000)
        self.each, hidden = each, hidden or 4 * width
        self.pooled = each or require_pooling("bert", pooling) == "mean"  # by no map
        layers = [_Block(width, heads, hidden, dropout, eps, generator) for _ in range(depth)]
        parts: dict[str, nn.Module] = {
            "embeddings": _part(
                word_embeddings=embedding(self.vocabulary, width, generator, padding=True),
                position_embeddings=embedding(self.length, width, generator),
                token_type_embeddings=embedding(types, width, generator),
                LayerNorm=nn.LayerNorm(width, eps),
            ),
            "encoder": _part(layer=nn.ModuleList(layers)),
        }
        if not self.pooled:
            self.optional = ("cls", "qa_outputs")
            parts["pooler"] = _part(dense=small_linear(width, width, generator))
        self.bert = nn.ModuleDict(parts)
        self.drop = drop(dropout)
        self.classifier = small_linear(width, outputs, generator)
        adapt(self, ("query", "value"), rank, generator=generator)

    def layer_groups(self) -> list[list[nn.Module]]:
        """Its layers from x to the outcome: embeddings, blocks, pooler, last map."""
        blocks: list[list[nn.Module]] = [[m] for m in self.bert["encoder"]["layer"].children()]  # type: ignore[index]
        pooler = [] if self.pooled else [[self.bert["pooler"]]]
        return [[self.bert["embeddings"]], *blocks, *pooler, [self.classifier]]

    def hidden_states(
        self, values: Tensor, mask: Tensor | None = None, types: Tensor | None = None
    ) -> Tensor:
        """The states after the last block, ``(B, T, D)``."""
        require_codes("bert", self.vocabulary, self.length, values)
        parts: nn.ModuleDict = self.bert["embeddings"]  # type: ignore[assignment]
        places = torch.arange(values.shape[1], device=values.device)
        types = torch.zeros_like(values) if types is None else types
        x = parts["word_embeddings"](values) + parts["token_type_embeddings"](types)
        x = self.drop(parts["LayerNorm"](x + parts["position_embeddings"](places)))
        keys = None if mask is None else mask[:, None, None]
        for block in self.bert["encoder"]["layer"]:  # type: ignore[index]
            x = block(x, keys)
        return x

    def forward(
        self, values: Tensor, mask: Tensor | None = None, types: Tensor | None = None
    ) -> Tensor:
        h = self.hidden_states(values, mask, types)
        if self.each:
            return self.classifier(self.drop(h)).transpose(1, 2)
        if self.pooled:
            return self.classifier(self.drop(mean_state(h, mask)))
        pooled = self.bert["pooler"]["dense"](h[:, 0]).tanh()  # type: ignore[index]
        return self.classifier(self.drop(pooled))
