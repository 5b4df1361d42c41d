"""Examples that are passages of token streams: what follows is to be predicted."""

import hashlib
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data.batch import UNLABELLED, Padded
from ansatz.data.keys import mix
from ansatz.data.sequences.tokens import Tokens
from ansatz.seeds import derive
from ansatz.spec import InputSpec

PARTS = ("train", "validation", "test")


class Run(NamedTuple):
    """Neighbouring passages of one document, as places of the stream."""

    begin: int  # of the document
    start: int  # of the first token to predict
    stop: int
    first: int  # number of the first passage


class Passages:
    """N passages of documents, each a run of tokens to predict from those before it.

    A document is a code 0, its tokens and, where there are several documents, a code 0 again. A
    token is predicted from at most ``context`` codes before it, none of them of another document.

    Args:
        codes: of all documents, one behind the other.
        places: ``(N, 3)``: where the document of a passage begins, its first and past its last
            token.
        part: of each passage: 0 trains, 1 is validation, 2 test.
        tokens: the map from text to codes.
        context: codes that a network reads at once.

    Example:
        >>> from ansatz.data.sequences.passages import passages
        >>> from ansatz.data.sequences.tokens import Tokens
        >>> tokens = Tokens.learn(["to be"], kind="char")
        >>> rows = passages([[("to be", 0)]], tokens, context=4)
        >>> len(rows), rows.targets().shape
        (5, torch.Size([5, 1]))
    """

    has_features = True

    def __init__(
        self, codes: Tensor, places: Tensor, part: Tensor, tokens: Tokens, context: int
    ) -> None:
        self.codes, self.places, self.part = codes, places, part
        self.tokens, self.context = tokens, context

    @property
    def spec(self) -> InputSpec:
        """Number of codes, and how many are read at once."""
        return InputSpec.sequence(vocabulary=self.tokens.size, length=self.context)

    @property
    def stride(self) -> int:
        """The most tokens of a passage."""
        return self.stride_of(self.context)

    @staticmethod
    def stride_of(context: int) -> int:
        """Tokens of a passage: a quarter of the context, so that three quarters precede it."""
        return max(1, context // 4)

    @property
    def window(self) -> int:
        """Tokens that a network predicts at once in training."""
        return self.context

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: Any) -> "Passages":
        rows = index if isinstance(index, slice) else torch.as_tensor(index)
        if not isinstance(rows, slice) and rows.dtype == torch.bool:
            rows = rows.nonzero().squeeze(1)
        kind = type(self)
        return kind(self.codes, self.places[rows], self.part[rows], self.tokens, self.context)

    def content_keys(self, seed: int = 0) -> NDArray[np.uint64]:
        """A hash of the tokens of each passage and of those before it."""
        codes, found = self.codes.numpy(), []
        for begin, _, stop in self.places.tolist():
            low = max(begin, stop - 1 - self.context)
            found.append(hashlib.blake2b(codes[low:stop].tobytes(), digest_size=8).digest())
        salt = np.uint64(derive(seed, "passage"))
        keys: NDArray[np.uint64] = mix(np.frombuffer(b"".join(found), dtype=np.uint64) ^ salt)
        return keys

    def describe(self) -> dict[str, Any]:
        """One feature, the text so far."""
        return {"names": None, "count": 1, "columns": None}

    def targets(self) -> Tensor:
        """The codes of each passage, ``(N, stride)``, -1 past its end."""
        start, stop = self.places[:, 1:2], self.places[:, 2:3]
        place = start + torch.arange(self.stride)
        codes = self.codes[place.clamp(max=len(self.codes) - 1)]
        return torch.where(place < stop, codes, UNLABELLED)

    def inputs(self) -> tuple[Padded, Tensor]:
        """The codes that each passage is predicted from, and where its answers are, ``(N, S)``."""
        begin, start, stop = self.places.unbind(1)
        low = torch.maximum(begin, stop - 1 - self.context)
        values = read_codes(self.codes, low, stop - 1 - low)
        answers = (start - 1 - low).unsqueeze(1) + torch.arange(self.stride)
        return values, answers.clamp(max=values.mask.shape[1] - 1)

    def batch(
        self, low: Tensor, length: Tensor, draw: torch.Generator | None
    ) -> tuple[Padded, Tensor]:
        """Inputs and targets of windows of ``length`` tokens from ``low`` on, -1 past their end."""
        inputs = read_codes(self.codes, low - 1, length)
        target = read_codes(self.codes, low, length).values
        return inputs, torch.where(inputs.mask, target, UNLABELLED)

    def runs(self) -> list[Run]:
        """The passages joined where one goes on where another ends."""
        found: list[Run] = []
        for number, (begin, start, stop) in enumerate(self.places.tolist()):
            if found and found[-1].begin == begin and found[-1].stop == start:
                found[-1] = found[-1]._replace(stop=stop)
            else:
                found.append(Run(begin, start, stop, number))
        return found


def read_codes(codes: Tensor, low: Tensor, length: Tensor) -> Padded:
    """``length`` codes from ``low`` on for each row, filled up with 0."""
    steps = torch.arange(max(1, int(length.max())) if len(length) else 1)
    mask = steps < length.unsqueeze(1)
    place = (low.unsqueeze(1) + steps).clamp(max=len(codes) - 1)
    return Padded(torch.where(mask, codes[place], 0), mask)


def passages(
    documents: list[list[tuple[str, int]]],
    tokens: Tokens,
    context: int,
    kind: type[Passages] = Passages,
) -> Passages:
    """Cuts documents into passages.

    Args:
        documents: the parts of each document, with the part that they belong to.
        tokens: the map from text to codes.
        context: codes that a network reads at once.
        kind: of passages.
    """
    pieces = [(number, *piece) for number, each in enumerate(documents) for piece in each]
    found = tokens.encode([text for _, text, _ in pieces])
    offsets, several = found.offsets.tolist(), len(documents) > 1
    codes: list[Tensor] = []
    places: list[tuple[int, int, int]] = []
    parts: list[int] = []
    at, begin, stride, zero = 0, 0, kind.stride_of(context), torch.zeros(1, dtype=torch.long)
    for k, (number, _, part) in enumerate(pieces):
        if not k or pieces[k - 1][0] != number:
            codes.append(zero)
            begin, at = at, at + 1
        run = [found.values[offsets[k] : offsets[k + 1]]]
        if several and (k + 1 == len(pieces) or pieces[k + 1][0] != number):
            run.append(zero)
        codes += run
        stop = at + sum(map(len, run))
        for start in range(at, stop, stride):
            places.append((begin, start, min(start + stride, stop)))
            parts.append(part)
        at = stop
    table = torch.tensor(places, dtype=torch.long).reshape(-1, 3)
    return kind(torch.cat(codes), table, torch.tensor(parts), tokens, context)
