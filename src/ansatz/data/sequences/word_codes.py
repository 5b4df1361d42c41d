"""Words as several codes each: the word, its shape, its first and last letters."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

UNKNOWN = 1  # code 0 is the padding
LEAST = 2  # times that a word is seen, to have a code of its own
_SHAPES = ((re.compile(r"[a-z]"), "x"), (re.compile(r"[A-Z]"), "X"), (re.compile(r"[0-9]"), "d"))
_RUN = re.compile(r"(.)\1{2,}")


def shape_of(word: str) -> str:
    """The shape of a word: letters as x and X, digits as d, longer runs as two.

    Example:
        >>> from ansatz.data.sequences.word_codes import shape_of
        >>> shape_of("McDonald's"), shape_of("2024-11")
        ("XxXxx'x", 'dd-dd')
    """
    for pattern, letter in _SHAPES:
        word = pattern.sub(letter, word)
    return _RUN.sub(r"\1\1", word)[:12]


def parts_of(word: str) -> list[str]:
    """What is coded of a word: itself, in lower case, its shape, its ends and beginnings."""
    low = word.lower()
    ends = [low[-k:] for k in (1, 2, 3, 4)]
    return [word, low, shape_of(word), *ends, *(low[:k] for k in (1, 2, 3))]


PARTS = len(parts_of("a"))


class WordCodes:
    """A map from words to codes: of the word, and of letters that unseen words share with it.

    A part that fewer than two training words have is unknown; so are words not seen in training,
    which endings, beginnings and shape describe.

    Args:
        levels: the known values of each part of a word, in the order of their codes from 2 on.

    Example:
        >>> from ansatz.data.sequences.word_codes import WordCodes
        >>> codes = WordCodes.learn(["walking", "talking", "walking"])
        >>> codes.encode(["balking"])[0].tolist()[:7]
        [1, 1, 2, 2, 2, 2, 2]
    """

    def __init__(self, levels: Sequence[Sequence[str]]) -> None:
        self.levels = [list(each) for each in levels]
        self._places = [
            {text: code for code, text in enumerate(each, UNKNOWN + 1)} for each in self.levels
        ]

    @classmethod
    def learn(cls, words: Iterable[str], most: int = 30_000) -> "WordCodes":
        """The parts of training words, the ``most`` frequent ones of each kind."""
        counts: list[Counter[str]] = [Counter() for _ in range(PARTS)]
        for word, count in Counter(words).items():
            for counter, part in zip(counts, parts_of(word), strict=True):
                counter[part] += count
        kept = [[p for p, count in each.most_common(most) if count >= LEAST] for each in counts]
        return cls(kept)

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """The number of codes of each part."""
        return tuple(len(each) + UNKNOWN + 1 for each in self.levels)

    def encode(self, words: Any) -> torch.Tensor:
        """The codes of each word, ``(W, C)``."""
        listed, inverse = np.unique(np.asarray(words, dtype=str), return_inverse=True)
        found: NDArray[np.int64] = np.array(
            [
                [places.get(p, UNKNOWN) for places, p in zip(self._places, parts, strict=True)]
                for parts in map(parts_of, listed.tolist())
            ],
            dtype=np.int64,
        ).reshape(-1, PARTS)
        return torch.from_numpy(found[inverse.reshape(-1)])
