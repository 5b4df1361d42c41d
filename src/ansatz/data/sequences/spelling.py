"""From tokens back to text, and the bytes of each token."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ansatz.data.sequences.tokens import SPECIAL, Tokens


def text_of(tokens: Tokens, codes: Sequence[int]) -> str:
    """The text of codes; words are joined by spaces, code 0 is the end of a document.

    Example:
        >>> from ansatz.data.sequences.spelling import text_of
        >>> from ansatz.data.sequences.tokens import Tokens
        >>> tokens = Tokens.learn(["to be"], kind="char")
        >>> text_of(tokens, tokens.encode(["be to"]).values.tolist())
        'be to'
    """
    names = tokens.names
    found = [names[code] if code not in (0, 1) else "\N{REPLACEMENT CHARACTER}" for code in codes]
    kind = style(tokens)
    if kind == "bytes":
        from tokenizers import decoders

        return str(decoders.ByteLevel().decode(found))
    if kind == "pieces":
        return " ".join(found).replace(" ##", "")
    return ("" if kind == "characters" else " ").join(found)


def style(tokens: Tokens) -> str:
    """What tokens are: bytes, characters, words or parts of words."""
    state: Any = tokens.state()
    before = state["pre_tokenizer"] or {}
    if "ByteLevel" in (before.get("type"), *(e["type"] for e in before.get("pretokenizers", ()))):
        return "bytes"
    if state["model"]["type"] == "WordPiece":
        return "pieces"
    return "characters" if before.get("type") == "Split" else "words"


def bytes_of(tokens: Tokens) -> Tensor | None:
    """The bytes of each token in UTF-8; None where tokens do not keep the text.

    An unknown token counts as one byte, the end of a document as none.
    """
    kind = style(tokens)
    if kind not in ("bytes", "characters"):
        return None
    names = tokens.names
    sizes = [len(name) if kind == "bytes" else len(name.encode()) for name in names]
    sizes[: len(SPECIAL)] = [0, 1]
    return torch.tensor(sizes, dtype=torch.float64)
