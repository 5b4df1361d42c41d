"""From pairs to a network's inputs: those of the source, and the codes of the text."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz import structures
from ansatz.data import Column
from ansatz.data.batch import Ragged, pad
from ansatz.data.sequences.pairs import Pairs
from ansatz.data.sequences.sequences import Texts
from ansatz.data.sequences.tokens import Tokens
from ansatz.errors import DataError
from ansatz.fitting.problem import structure_of_rows
from ansatz.spec import InputSpec

VOCABULARY = 4_000


class PairEncoder:
    """The inputs of the source beside the codes of the text, at most ``length`` of them.

    Texts that are read and texts that are written share their tokens. The vocabulary has one code
    more than the tokens: the boundary of a text.
    """

    dtype = torch.float32

    def __init__(self, structure: str, source: Any, tokens: Tokens, length: int) -> None:
        self.structure, self.source, self.tokens, self.length = structure, source, tokens, length

    @property
    def spec(self) -> InputSpec:
        """What is read and what is written."""
        target = InputSpec.sequence(vocabulary=self.tokens.size + 1, length=self.length)
        spec = self.source.spec
        if spec.vocabulary:  # the same tokens, and the boundary
            spec = InputSpec.sequence(vocabulary=target.vocabulary, length=spec.size[0])
        return InputSpec.joined(source=spec, target=target)

    @property
    def notes(self) -> list[str]:
        """Those of the source."""
        found: list[str] = self.source.notes
        return found

    @property
    def columns(self) -> list[Column]:
        """None: neither words nor pixels are columns."""
        return []

    def codes(self, rows: Pairs) -> Ragged:
        """The codes of each text; none where it is not known."""
        if rows.targets is None:
            return Ragged(torch.zeros(0, dtype=torch.int64), torch.zeros(len(rows) + 1).long())
        found = self.tokens.encode(rows.targets.texts.tolist())
        kept = found.offsets.diff().clamp(max=self.length)
        ends = torch.cat([kept.new_zeros(1), kept.cumsum(0)])
        places = torch.arange(int(ends[-1])) - ends[:-1].repeat_interleave(kept)
        starts = found.offsets[:-1].repeat_interleave(kept)
        return Ragged(found.values[starts + places], ends)

    def frequencies(self, rows: Pairs) -> Tensor:
        """The log-frequency of each token in the texts, one more added to each count, ``(V,)``."""
        found, boundary = self.codes(rows), self.tokens.size
        counts = torch.bincount(found.values, minlength=boundary + 1).double() + 1
        counts[boundary] += len(rows)
        counts[0] = 0  # padding is never written
        return (counts / counts.sum()).log()

    def read(self, rows: Pairs, *, notes: list[str] | None = None) -> tuple[Tensor, ...]:
        """The inputs of the source alone."""
        found = self.source.inputs(rows.source, notes=notes)
        return tuple(t.to(self.dtype) if t.is_floating_point() else t for t in found)

    def inputs(self, rows: Pairs, *, notes: list[str] | None = None) -> tuple[Tensor, ...]:
        """The inputs of the source, then codes and mask of the text."""
        return (*self.read(rows, notes=notes), *pad(self.codes(rows)))

    def texts(self, codes: Tensor, mask: Tensor) -> list[str]:
        """Codes as texts."""
        return [self.tokens.text(row[seen].tolist()) for row, seen in zip(codes, mask, strict=True)]

    def state(self) -> dict[str, Any]:
        """All of it as JSON."""
        shared = getattr(self.source, "tokens", None) is self.tokens
        return {
            "structure": self.structure,
            "source": self.source.state(),
            "tokenizer": None if shared else self.tokens.state(),
            "length": self.length,
        }


def fit_encoder(
    rows: Pairs, weight: NDArray[np.float64], recipe: Any, options: Mapping[str, Any]
) -> PairEncoder:
    """An encoder of training pairs: joint tokens where texts are translated."""
    if rows.targets is None or not any(text.strip() for text in rows.targets.texts):
        raise DataError("no pair has a text to train on.")
    name, targets = structure_of_rows(rows.source), rows.targets.texts.tolist()
    texts = rows.source.texts.tolist() if isinstance(rows.source, Texts) else []
    kind, size = options.get("tokens") or "bpe", options.get("vocabulary") or VOCABULARY
    tokens = Tokens.learn([*texts, *targets], kind=kind, vocabulary=size)
    own = {**options, "tokens_made": tokens} if texts else options
    source = structures.create(name).encoder(rows.source, weight, recipe, own)
    most = int(tokens.encode(targets).offsets.diff().max())
    return PairEncoder(name, source, tokens, max(8, most * 3 // 2))


def load_encoder(state: Mapping[str, Any]) -> PairEncoder:
    """The encoder of a saved model."""
    source = structures.create(state["structure"]).load_encoder(state["source"])
    own = state["tokenizer"]
    tokens = source.tokens if own is None else Tokens(json.dumps(own))
    return PairEncoder(state["structure"], source, tokens, int(state["length"]))
