"""Texts as token codes: words, characters, bytes or learned parts of words."""

import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch

from ansatz.data.batch import Ragged
from ansatz.errors import UsageError

Kind = Literal["word", "char", "byte", "bpe", "wordpiece"]
KINDS: tuple[Kind, ...] = ("word", "char", "byte", "bpe", "wordpiece")
SPECIAL = ["[PAD]", "[UNK]"]  # codes 0 and 1


class Tokens:
    """A map from texts to token codes; code 0 is padding, 1 an unknown token.

    Args:
        record: the content of a ``tokenizer.json``.

    Example:
        >>> from ansatz.data.sequences.tokens import Tokens
        >>> tokens = Tokens.learn(["a film", "a play"], kind="word")
        >>> tokens.split("a new play")
        ['a', '[UNK]', 'play']
    """

    def __init__(self, record: str) -> None:
        self.tokenizer = library().Tokenizer.from_str(record)

    @classmethod
    def learn(
        cls, texts: Sequence[str], *, kind: str | None = None, vocabulary: int = 30_000
    ) -> "Tokens":
        """Trains on texts; without a kind, letters without spaces are characters, else words."""
        kind = kind or default_kind(texts)
        if kind not in KINDS:
            raise UsageError(f"tokens are one of {', '.join(KINDS)}, got '{kind}'.")
        kinds = library()
        tokenizer, trainer = _untrained(kinds, kind, vocabulary)
        tokenizer.train_from_iterator(texts, trainer)
        return cls(tokenizer.to_str())

    @cached_property
    def unknown(self) -> int | None:
        """The code of an unknown token; None where every text has tokens."""
        word = getattr(self.tokenizer.model, "unk_token", None)
        return None if word is None else self.tokenizer.token_to_id(word)

    @cached_property
    def frame(self) -> tuple[list[int], list[int]]:
        """The special codes before and behind every text."""
        found = self.tokenizer.encode("a")
        mask = found.special_tokens_mask
        inside = [k for k, special in enumerate(mask) if not special] or [len(mask)]
        return found.ids[: inside[0]], found.ids[inside[-1] + 1 :]

    @property
    def size(self) -> int:
        """The number of codes."""
        return int(self.tokenizer.get_vocab_size())

    @property
    def names(self) -> list[str]:
        """The tokens in the order of their codes."""
        found = self.tokenizer.get_vocab()
        return sorted(found, key=found.__getitem__)

    def encode(self, texts: Sequence[str]) -> Ragged:
        """The codes of each text."""
        codes = [found.ids for found in self.tokenizer.encode_batch_fast(list(texts))]
        lengths = np.array([0, *map(len, codes)], dtype=np.int64)
        flat = np.concatenate([np.asarray(each, dtype=np.int64) for each in [[], *codes]])
        return Ragged(torch.from_numpy(flat), torch.from_numpy(lengths.cumsum()))

    def split(self, text: str) -> list[str]:
        """The tokens of one text."""
        return list(self.tokenizer.encode(text).tokens)

    def text(self, codes: Sequence[int]) -> str:
        """The text of some codes: parts of words are joined, words stand between spaces."""
        names = [str(self.tokenizer.id_to_token(code)) for code in codes if code]
        kind = type(self.tokenizer.model).__name__
        if kind == "BPE":
            return str(library().decoders.ByteLevel().decode(names)).strip()
        if kind == "WordPiece":
            return str(library().decoders.WordPiece().decode(names))
        between = "" if all(len(name) == 1 or name == SPECIAL[1] for name in names) else " "
        return between.join(names)

    def state(self) -> Any:
        """The content of a ``tokenizer.json``."""
        return json.loads(self.tokenizer.to_str())


def default_kind(texts: Sequence[str]) -> Kind:
    """Characters where no text has a space and most are longer than a word; else words."""
    some = [text for text in texts[:1000] if text]
    spaces = any(letter.isspace() for text in some for letter in text.strip())
    return "char" if some and not spaces and np.median([len(t) for t in some]) > 20 else "word"


def _untrained(library: Any, kind: str, size: int) -> tuple[Any, Any]:
    models, before, training = library.models, library.pre_tokenizers, library.trainers
    spell = library.normalizers
    words = before.Sequence(
        [
            before.WhitespaceSplit(),
            before.Split(library.Regex(r"\w+(?:'\w+)?|[^\w\s]+"), "isolated"),
        ]
    )
    clean = spell.Sequence([spell.NFC(), spell.Replace("\0", " ")])
    small = spell.Sequence([clean, spell.Lowercase()])
    options: dict[str, Any] = {"special_tokens": SPECIAL, "show_progress": False}
    unknown = SPECIAL[1]
    if kind == "wordpiece":
        made = library.Tokenizer(models.WordPiece(unk_token=unknown, max_input_chars_per_word=100))
        trainer = training.WordPieceTrainer(vocab_size=size, **options)
        made.normalizer, made.pre_tokenizer = small, words
    elif kind in ("bpe", "byte"):
        made = library.Tokenizer(models.BPE())
        made.normalizer, made.pre_tokenizer = clean, before.ByteLevel(add_prefix_space=False)
        alphabet = before.ByteLevel.alphabet()
        most = len(alphabet) + len(SPECIAL) if kind == "byte" else size
        trainer = training.BpeTrainer(vocab_size=most, initial_alphabet=alphabet, **options)
    else:
        made = library.Tokenizer(models.WordLevel(unk_token=unknown))
        trainer = training.WordLevelTrainer(vocab_size=size, **options)
        made.normalizer = small if kind == "word" else clean
        every = before.Split(library.Regex(r"[\s\S]"), "isolated")
        made.pre_tokenizer = words if kind == "word" else every
    return made, trainer


def library() -> Any:
    """The package tokenizers, or the way to install it."""
    try:
        import tokenizers
    except ImportError:
        raise UsageError(
            "texts need the package tokenizers: pip install 'ansatz-learn[text]'."
        ) from None
    return tokenizers
