"""The inputs of networks on sequences: codes or numbers, a mask, words and pairs of words."""

import torch
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.layers.limits import require_whole
from ansatz.spec import Inputs, InputSpec


def read_sequence(owner: str, inputs: Inputs) -> InputSpec:
    """The spec of sequences; other inputs are refused."""
    spec = InputSpec.of(inputs)
    if spec.structure != "sequence":
        raise UsageError(f"{owner} takes sequences, got inputs of structure '{spec.structure}'.")
    if spec.cardinalities:
        raise UsageError(
            f"{owner} takes one code a step; steps of several codes are for lstm, gru and the like."
        )
    require_whole(f"vocabulary of {owner}", spec.vocabulary, low=0, high=2**24)
    require_whole(f"features of {owner}", spec.features, low=0, high=2**24)
    return spec


def present(values: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Values that are 0 where no step is, and the mask; None is every step."""
    if mask is None:
        return values, torch.ones(values.shape[:2], dtype=torch.bool, device=values.device)
    # where, not multiplication: padding may hold nan, and nan * 0 is nan.
    return torch.where(mask if values.ndim == 2 else mask.unsqueeze(-1), values, 0), mask


def words_and_pairs(codes: Tensor, mask: Tensor, vocabulary: int, pairs: int) -> Tensor:
    """The numbers of the words of each text, and of its pairs of neighbours by their hash.

    Args:
        codes: ``(B, T)``.
        mask: ``(B, T)``.
        vocabulary: number of codes.
        pairs: numbers that pairs share, behind those of the words; 0 for words alone.

    Returns:
        ``(B, 2 T - 1)``, 0 where there is nothing.
    """
    if not pairs or codes.shape[1] < 2:
        return codes
    first, second = codes[:, :-1], codes[:, 1:]
    hashed = ((first * 0x9E3779B1) ^ (second * 0x85EBCA6B)) >> 7
    found = torch.where(mask[:, 1:], vocabulary + hashed % pairs, 0)
    return torch.cat([codes, found], 1)


def pair_count(owner: str, vocabulary: int, asked: int | None) -> int:
    """The numbers that pairs share: by default a power of two, four for each word and more."""
    if asked is None:
        return min(2**17, 2 ** max(8, (4 * vocabulary - 1).bit_length()))
    return require_whole(f"pairs of {owner}", asked, low=0, high=2**24)
