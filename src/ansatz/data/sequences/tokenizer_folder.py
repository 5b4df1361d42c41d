"""Tokenizers of Hugging Face's folders, built with the library that they were made by."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansatz.data.sequences.tokens import Tokens, library
from ansatz.errors import ModelError
from ansatz.storage.disk import read_bytes
from ansatz.storage.json_file import read_json, shorten

LIMIT_BYTES = 64 * 2**20


def read_tokenizer(folder: str | Path) -> Tokens:
    """The tokenizer of a folder, with the special tokens around a text.

    It is that of ``tokenizer.json``; else of ``vocab.txt``, the WordPiece of BERT; else of
    ``vocab.json`` and ``merges.txt``, the byte-level pairs of GPT-2. ``tokenizer_config.json``
    says whether letters are made small. Padding and truncation that a file asks for are left out:
    a batch is padded to its longest text.

    Args:
        folder: of a model.
    """
    folder = Path(folder)
    config = _config(folder)
    if (folder / "tokenizer.json").is_file():
        text = _text(folder / "tokenizer.json")
        made = _made(folder / "tokenizer.json", lambda: library().Tokenizer.from_str(text))
    elif (folder / "vocab.txt").is_file():
        made = _word_piece(folder / "vocab.txt", config)
    elif (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
        made = _byte_pairs(folder, config)
    else:
        raise ModelError(
            f"{folder.name}: no tokenizer.json, no vocab.txt, and no vocab.json with merges.txt."
        )
    made.no_padding()
    made.no_truncation()
    return Tokens(made.to_str())


def _config(folder: Path) -> Mapping[str, Any]:
    path = folder / "tokenizer_config.json"
    found = read_json(path) if path.is_file() else {}
    if not isinstance(found, Mapping):
        raise ModelError(f"{folder.name}: tokenizer_config.json is not an object.")
    return found


def _word_piece(path: Path, config: Mapping[str, Any]) -> Any:
    """BERT's parts of words: the longest that fits, from left to right."""
    kinds = library()
    words = _text(path).split("\n")
    vocabulary = {word.rstrip("\r"): code for code, word in enumerate(words) if word.rstrip("\r")}
    special = [_word(config, f"{name}_token", f"[{name.upper()}]") for name in _SPECIAL]
    unknown, cls, sep, _, _ = special
    absent = [word for word in (unknown, cls, sep) if word not in vocabulary]
    if absent:
        raise ModelError(f"{path}: it lacks the special token {shorten(absent[0])}.")
    made = kinds.Tokenizer(
        kinds.models.WordPiece(vocabulary, unk_token=unknown, max_input_chars_per_word=100)
    )
    made.normalizer = kinds.normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=bool(config.get("tokenize_chinese_chars", True)),
        strip_accents=config.get("strip_accents"),
        lowercase=bool(config.get("do_lower_case", True)),
    )
    made.pre_tokenizer = kinds.pre_tokenizers.BertPreTokenizer()
    made.post_processor = kinds.processors.BertProcessing(
        (sep, vocabulary[sep]), (cls, vocabulary[cls])
    )
    made.add_special_tokens([word for word in special if word in vocabulary])
    return made


_SPECIAL = ("unk", "cls", "sep", "pad", "mask")


def _byte_pairs(folder: Path, config: Mapping[str, Any]) -> Any:
    """GPT-2's tokens: pairs of bytes joined in the order of the merges; no special tokens."""
    kinds = library()
    vocabulary = read_json(folder / "vocab.json")
    codes = vocabulary.values() if isinstance(vocabulary, Mapping) else [None]
    if not all(isinstance(code, int) for code in codes):
        raise ModelError(f"{folder.name}: vocab.json must map tokens to codes.")
    lines = [line for line in _text(folder / "merges.txt").splitlines() if line.strip()]
    merges = [tuple(line.split(" ")) for line in lines if not line.startswith("#version")]
    if not all(len(pair) == 2 for pair in merges):
        raise ModelError(f"{folder.name}: a line of merges.txt is not a pair of tokens.")
    made = _made(
        folder / "merges.txt",
        lambda: kinds.Tokenizer(kinds.models.BPE(dict(vocabulary), merges)),
    )
    made.pre_tokenizer = kinds.pre_tokenizers.ByteLevel(
        add_prefix_space=bool(config.get("add_prefix_space", False))
    )
    made.decoder = kinds.decoders.ByteLevel()
    end = _word(config, "eos_token", "<|endoftext|>")
    if end in vocabulary:
        made.add_special_tokens([end])
    return made


def _word(config: Mapping[str, Any], field: str, default: str) -> str:
    """A special token, which is a text, or an object with its content."""
    given = config.get(field, default)
    given = given.get("content", default) if isinstance(given, Mapping) else given
    return given if isinstance(given, str) else default


def _text(path: Path) -> str:
    content = read_bytes(path, limit_bytes=LIMIT_BYTES)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: not UTF-8 at byte {error.start}.") from None


def _made(path: Path, make: Any) -> Any:
    try:
        return make()
    except Exception as error:  # the library raises plain exceptions
        raise ModelError(f"{path}: not a tokenizer: {shorten(str(error))}.") from None
