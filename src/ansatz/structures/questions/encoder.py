"""From questions and their contexts to codes of words: [CLS] question [SEP] context."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ansatz.data import Column
from ansatz.data.batch import Ragged, pad
from ansatz.data.sequences.questions import Questions, words_of
from ansatz.errors import DataError
from ansatz.spec import InputSpec

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
MOST = 30_000  # different words


class QuestionEncoder:
    """The codes of words; 0 is padding, 1 an unknown word."""

    dtype = torch.float64

    def __init__(self, words: list[str], length: int) -> None:
        self.words, self.length = words, length
        self.codes = {word: code for code, word in enumerate(words)}

    @classmethod
    def fit(cls, rows: Questions, vocabulary: int | None) -> "QuestionEncoder":
        """The most frequent words of training questions and contexts."""
        texts = [*rows.questions, *dict.fromkeys(rows.contexts)]
        counts = Counter(word for text in texts for word in words_of(text).words)
        kept = counts.most_common((vocabulary or MOST) - len(SPECIAL))
        made = cls([*SPECIAL, *(word for word, _ in kept)], 1)
        made.length = 2 * int(made.ragged(rows)[0].offsets.diff().max())
        return made

    @property
    def spec(self) -> InputSpec:
        """Number of codes and most steps."""
        return InputSpec.sequence(vocabulary=len(self.words), length=self.length)

    @property
    def notes(self) -> list[str]:
        """None."""
        return []

    @property
    def columns(self) -> list[Column]:
        """None: words are not columns."""
        return []

    def ragged(self, rows: Questions) -> tuple[Ragged, Ragged]:
        """Codes of each example, and which of them are words of the context."""
        codes: list[int] = []
        context: list[bool] = []
        ends = [0]
        for question, text in zip(rows.questions, rows.contexts, strict=True):
            asked = [self.codes.get(word, 1) for word in words_of(question).words]
            read = [self.codes.get(word, 1) for word in words_of(text).words]
            if not read:
                raise DataError(f"the context of the question {question[:60]!r} holds no word.")
            codes += [2, *asked, 3, *read]
            context += [False] * (len(asked) + 2) + [True] * len(read)
            ends.append(len(codes))
        offsets = torch.tensor(ends)
        return Ragged(torch.tensor(codes), offsets), Ragged(torch.tensor(context), offsets)

    def inputs(
        self, rows: Questions, *, notes: list[str] | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Codes, mask, and the marks of the context."""
        codes, context = self.ragged(rows)
        values, mask = pad(codes)
        return values, mask, pad(context).values

    def state(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {"words": self.words, "length": self.length}


def load_encoder(state: Mapping[str, Any]) -> QuestionEncoder:
    """The encoder of a saved model."""
    return QuestionEncoder([str(word) for word in state["words"]], int(state["length"]))
