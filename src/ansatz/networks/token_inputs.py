"""The inputs of networks on sequences: tokens or numbers, and the mask of present steps."""

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.init import affine
from ansatz.layers.schemes import draw_normal
from ansatz.spec import Inputs, InputSpec

Pooling = Literal["first", "mean"]
LENGTH = 512  # positions of a network whose inputs have no known length


def read_tokens(owner: str, inputs: Inputs) -> tuple[int, int]:
    """The vocabulary and the greatest length of sequences of tokens."""
    spec = read_steps(owner, inputs)
    if not spec.vocabulary:
        raise UsageError(
            f"{owner} takes tokens, got sequences of numbers; say "
            "InputSpec.sequence(vocabulary=...), or take transformer."
        )
    return spec.vocabulary, (spec.size or (LENGTH,))[0]


def read_steps(owner: str, inputs: Inputs) -> InputSpec:
    """The spec of sequences; other inputs are refused."""
    spec = InputSpec.of(inputs)
    if spec.structure != "sequence":
        raise UsageError(
            f"{owner} takes sequences, got inputs of structure '{spec.structure}'; say "
            "InputSpec.sequence(features=...) or InputSpec.sequence(vocabulary=...)."
        )
    if spec.cardinalities:
        raise UsageError(
            f"{owner} takes one code a step; steps of several codes are for lstm, gru and the like."
        )
    return spec


def require_codes(owner: str, vocabulary: int, length: int, values: Tensor) -> None:
    """Refuses what is not ``(B, T)`` codes of tokens, up to ``length`` of them."""
    if values.ndim != 2 or values.is_floating_point():
        kind = str(values.dtype).removeprefix("torch.")
        raise UsageError(
            f"{owner} needs codes of shape (B, T) in int64, got {tuple(values.shape)} in {kind}."
        )
    if values.shape[1] > length:
        raise UsageError(
            f"{owner} has positions for {length} tokens, got {values.shape[1]}; shorten the texts."
        )
    if torch.compiler.is_exporting() or values.is_meta or not values.numel():
        return
    low, high = (int(end) for end in values.aminmax())
    if low < 0 or high >= vocabulary:
        raise UsageError(
            f"{owner} has a vocabulary of {vocabulary} tokens, got the code "
            f"{low if low < 0 else high}."
        )


def embedding(
    count: int, width: int, generator: torch.Generator | None, *, padding: bool = False
) -> nn.Embedding:
    """Vectors drawn from N(0, 0.02²), as GPT and BERT begin; that of the padding is 0."""
    weight = draw_normal(torch.empty(count, width), 0.02, generator)
    if padding and not weight.is_meta:
        weight[0] = 0
    return nn.Embedding(count, width, padding_idx=0 if padding else None, _weight=weight)


def small_linear(
    in_features: int,
    out_features: int,
    generator: torch.Generator | None,
    *,
    bias: float | None = 0.0,
) -> nn.Linear:
    """A linear map drawn from N(0, 0.02²), as GPT and BERT begin."""
    return affine(
        in_features, out_features, init="normal", gain=0.02, bias=bias, generator=generator
    )


def require_pooling(owner: str, pooling: str) -> str:
    """``pooling``, if it is one."""
    if pooling not in get_args(Pooling):
        known = ", ".join(get_args(Pooling))
        raise UsageError(f"pooling of {owner} must be one of {known}, got {pooling!r}.")
    return pooling


def mean_state(h: Tensor, mask: Tensor | None) -> Tensor:
    """The mean of the states ``(B, T, D)`` of the present tokens, ``(B, D)``."""
    if mask is None:
        return h.mean(1)
    present = mask.unsqueeze(-1)
    return torch.where(present, h, 0).sum(1) / present.sum(1).clamp(min=1)
