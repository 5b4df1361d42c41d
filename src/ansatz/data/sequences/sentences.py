"""Examples that are sentences: words in an order, cut by whoever wrote them down."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.data.batch import Ragged
from ansatz.data.keys import mix, text_keys
from ansatz.errors import DataError
from ansatz.seeds import derive
from ansatz.spec import InputSpec


class Sentences:
    """N sentences, each a list of words.

    Args:
        words: all of them, one sentence behind the other.
        offsets: ``(N + 1,)``; sentence i is ``words[offsets[i]:offsets[i + 1]]``.

    Example:
        >>> from ansatz.data.sequences.sentences import Sentences
        >>> Sentences.of([["a", "film"], ["it", "was", "fine"]])[[1]].words.tolist()
        ['it', 'was', 'fine']
    """

    spec = InputSpec.sequence(cardinalities=(2,))  # codes of padding and of an unknown word
    has_features = True

    def __init__(self, words: NDArray[Any], offsets: Any) -> None:
        self.words, self.offsets = words, torch.as_tensor(offsets)

    @classmethod
    def of(cls, lists: Any) -> "Sentences":
        """Sentences from lists of words."""
        for place, each in enumerate(lists):
            odd = [word for word in each if not isinstance(word, str)]
            if isinstance(each, str) or odd:
                what = each if isinstance(each, str) else odd[0]
                raise DataError(
                    f"sentence {place + 1}: expected a list of words, got {what!r:.40} "
                    f"({type(what).__name__})."
                )
        words = np.array([*chain.from_iterable(lists), None], dtype=object)[:-1]
        return cls(words, np.cumsum([0, *map(len, lists)], dtype=np.int64))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: Any) -> "Sentences":
        rows = index if isinstance(index, slice) else torch.as_tensor(index)
        if isinstance(rows, torch.Tensor) and rows.dtype == torch.bool:
            rows = rows.nonzero().squeeze(1)
        places = Ragged(torch.arange(len(self.words)), self.offsets).take_rows(rows)
        return Sentences(self.words[places.values.numpy()], places.offsets)

    @property
    def lists(self) -> list[list[str]]:
        """The words of each sentence."""
        return [part.tolist() for part in np.split(self.words, self.offsets[1:-1].numpy())]

    def content_keys(self, seed: int = 0) -> NDArray[np.uint64]:
        """A hash of each sentence."""
        salt = np.uint64(derive(seed, "sentence"))
        joined = ["\0".join(words) for words in self.lists] if len(self) else []
        found: NDArray[np.uint64] = mix(text_keys(joined) ^ salt)
        return found

    def describe(self) -> dict[str, Any]:
        """One feature, the word."""
        return {"names": None, "count": 1, "columns": None}


def are_sentences(X: Any) -> bool:
    """Tests whether X is a list of lists of words."""
    if not isinstance(X, Sequence) or isinstance(X, str) or not X:
        return False
    first = next((each for each in X if len(each)), X[0]) if _have_length(X) else None
    return isinstance(first, list | tuple) and bool(first) and isinstance(first[0], str)


def _have_length(X: Any) -> bool:
    return all(hasattr(each, "__len__") for each in X)
