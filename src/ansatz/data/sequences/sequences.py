"""Examples that are sequences: texts, and signals of unequal length."""

import hashlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.data.batch import Ragged
from ansatz.data.keys import mix, text_keys
from ansatz.data.sequences.sentences import Sentences, are_sentences
from ansatz.errors import DataError
from ansatz.seeds import derive
from ansatz.spec import InputSpec


class Texts:
    """N texts.

    Args:
        texts: strings; a missing one (None, nan) is an empty text.

    Example:
        >>> from ansatz.data.sequences.sequences import Texts
        >>> len(Texts(["a film", "a play"])[[0]])
        1
    """

    spec = InputSpec.sequence(vocabulary=2, length=1)  # codes of padding and of an unknown token
    has_features = True

    def __init__(self, texts: Any) -> None:
        given = np.empty(len(texts), dtype=object)
        given[:] = list(texts)
        for place, text in enumerate(given):
            if not isinstance(text, str):
                if text is not None and text == text:
                    raise DataError(
                        f"text {place + 1} is a {type(text).__name__}, not a string: {text!r:.40}."
                    )
                given[place] = ""
        self.texts: NDArray[Any] = given

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, index: Any) -> "Texts":
        return Texts(self.texts[index])

    def content_keys(self, seed: int = 0) -> NDArray[np.uint64]:
        """A hash of each text."""
        salt = np.uint64(derive(seed, "text"))
        found: NDArray[np.uint64] = mix(text_keys(self.texts.tolist()) ^ salt)
        return found

    def describe(self) -> dict[str, Any]:
        """One feature, the text."""
        return {"names": None, "count": 1, "columns": None}


class Sequences:
    """N signals of T_i steps with D numbers each, one behind the other.

    Args:
        values: ``(sum of T_i, D)`` numbers.
        offsets: ``(N + 1,)``; example i is ``values[offsets[i]:offsets[i + 1]]``.

    Example:
        >>> import numpy as np
        >>> from ansatz.data.sequences.sequences import Sequences
        >>> Sequences.of([np.zeros((3, 2)), np.ones((5, 2))]).spec.features
        2
    """

    has_features = True

    def __init__(self, values: Any, offsets: Any) -> None:
        self.ragged = Ragged(torch.as_tensor(values), torch.as_tensor(offsets))

    @classmethod
    def of(cls, signals: Any) -> "Sequences":
        """Signals from an array ``(N, T, D)`` or a list of arrays ``(T_i, D)`` or ``(T_i,)``."""
        arrays = [np.asarray(each, dtype=np.float64) for each in signals]
        arrays = [each[:, None] if each.ndim == 1 else each for each in arrays]
        width = arrays[0].shape[-1] if arrays else 0
        for place, each in enumerate(arrays):
            if each.ndim != 2 or each.shape[1] != width:
                raise DataError(
                    f"signal {place + 1} has the shape {each.shape}; expected (steps, {width}), "
                    "as the first has."
                )
            if not np.isfinite(each).all():
                raise DataError(f"signal {place + 1} holds a number that is not finite.")
        lengths = [len(each) for each in arrays]
        values = np.concatenate(arrays) if arrays else np.zeros((0, width))
        return cls(values, np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))

    @property
    def spec(self) -> InputSpec:
        """The numbers of a step."""
        return InputSpec.sequence(features=self.ragged.values.shape[1])

    @property
    def offsets(self) -> torch.Tensor:
        """Where each signal begins, and the last one ends."""
        return self.ragged.offsets

    def __len__(self) -> int:
        return self.ragged.count_rows()

    def __getitem__(self, index: Any) -> "Sequences":
        rows = index if isinstance(index, slice) else torch.as_tensor(index)
        if isinstance(rows, torch.Tensor) and rows.dtype == torch.bool:
            rows = rows.nonzero().squeeze(1)
        return Sequences(*self.ragged.take_rows(rows))

    def content_keys(self, seed: int = 0) -> NDArray[np.uint64]:
        """A hash of each signal."""
        values, ends = self.ragged.values.numpy() + 0.0, self.ragged.offsets.tolist()
        found = [
            hashlib.blake2b(np.ascontiguousarray(values[a:b]).tobytes(), digest_size=8).digest()
            for a, b in pairwise(ends)
        ]
        salt = np.uint64(derive(seed, "signal"))
        keys: NDArray[np.uint64] = mix(np.frombuffer(b"".join(found), dtype=np.uint64) ^ salt)
        return keys

    def describe(self) -> dict[str, Any]:
        """The numbers of a step."""
        return {"names": None, "count": self.ragged.values.shape[1], "columns": None}


def sequences_of(X: Any) -> Texts | Sentences | Sequences:
    """Texts, sentences or signals from what a user handed over."""
    if isinstance(X, Texts | Sequences) or hasattr(X, "offsets"):
        return X
    if are_sentences(X):
        return Sentences.of(X)
    if hasattr(X, "to_numpy"):
        X = X.to_numpy()
        X = X[:, 0] if X.ndim == 2 and X.shape[1] == 1 else X
    if isinstance(X, str):
        raise DataError("X is one text; give a list of texts.")
    first = X[0] if len(X) else ""
    if isinstance(first, str) or first is None:
        return Texts(X)
    return Sequences.of(X)


def is_texts(X: Any) -> bool:
    """Tests whether X is a list, an array or a column of strings."""
    if hasattr(X, "to_numpy") and getattr(X, "ndim", 0) == 1:
        X = X.to_numpy()
    if isinstance(X, np.ndarray):
        return X.ndim == 1 and X.dtype.kind in "OUT" and len(X) > 0 and isinstance(X[0], str)
    return isinstance(X, Sequence) and not isinstance(X, str) and bool(X) and isinstance(X[0], str)
