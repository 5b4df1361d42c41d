"""JSON files: read strictly, written in one canonical form."""

import collections
import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from ansatz.errors import ModelError, UsageError
from ansatz.storage.disk import read_bytes, write_file

LIMIT_BYTES = 64 * 2**20
MAX_DEPTH = 64

# Strings, closed or not (so that one pass is always linear), and brackets outside of them.
_STRING = r'"(?:[^"\\]++|\\.)*+"?'
_TOKEN = re.compile(_STRING + r"|[\[\]{}]", flags=re.DOTALL)
_COLON = re.compile(r"[ \t\r\n]*:")


class _DuplicateKey(ValueError):
    pass


class _NotFinite(ValueError):
    pass


def read_json(
    source: str | Path | bytes,
    *,
    limit_bytes: int = LIMIT_BYTES,
    max_depth: int = MAX_DEPTH,
    name: str | None = None,
) -> Any:
    """Reads a JSON file from anyone; whatever is wrong with it is a :class:`ModelError`.

    Stricter than Python's parser, which keeps the last of two equal keys, takes ``NaN`` and can be
    driven into unbounded recursion. Here the text is UTF-8, keys are unique, numbers are finite,
    size and depth are bounded before anything is parsed.
    """
    if isinstance(source, bytes):
        name, content = name or "JSON", source
        if len(content) > limit_bytes:
            raise ModelError(f"{name}: {len(content)} bytes, at most {limit_bytes} are read")
    else:
        name = name or Path(source).name
        content = read_bytes(source, limit_bytes=limit_bytes, name=name)
    return _parse(content, max_depth, name)


def encode_json(value: Any) -> bytes:
    """Encodes a value as canonical JSON: sorted keys, UTF-8, finite numbers, exact floats."""
    try:
        text = json.dumps(value, sort_keys=True, allow_nan=False, ensure_ascii=False, indent=1)
        return (text + "\n").encode()
    except (TypeError, ValueError, RecursionError) as error:  # UnicodeEncodeError is a ValueError
        raise UsageError(f"cannot be written as JSON: {error}") from None


def write_json(path: str | Path, value: Any, *, overwrite: bool = False) -> Path:
    """Writes :func:`encode_json` of a value, whole or not at all."""
    return write_file(path, encode_json(value), overwrite=overwrite)


def _parse(content: bytes, max_depth: int, name: str) -> Any:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ModelError(f"{name}, line {line}: not UTF-8 text") from None
    _check_depth(text, max_depth, name)
    try:
        value = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite
        )
        # A lone half of a surrogate pair ("\ud800") is a string that nobody can print or write.
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise ModelError(f"{name}, line {error.lineno}: not JSON: {error.msg}") from None
    except _DuplicateKey as error:
        line = _duplicate_line(text)
        raise ModelError(f"{name}, line {line}: the key {error} appears twice") from None
    except _NotFinite as error:
        line = _word_line(text, str(error))
        raise ModelError(f"{name}, line {line}: {error} is not a finite number") from None
    except UnicodeEncodeError:
        raise ModelError(f"{name}: a string holds half a surrogate pair") from None
    except (ValueError, RecursionError) as error:  # an integer of more than 4300 digits
        raise ModelError(f"{name}: {error}") from None
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = collections.Counter(key for key, _ in pairs)
        raise _DuplicateKey(shorten(counts.most_common(1)[0][0]))
    return found


def _refuse(constant: str) -> NoReturn:
    raise _NotFinite(constant)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):  # 1e999
        raise _NotFinite(digits[:40])
    return number


def _check_depth(text: str, max_depth: int, name: str) -> None:
    if text.count("[") + text.count("{") <= max_depth:
        return
    depth = 0
    for token, position in _tokens(text):
        depth += (token in "[{") - (token in "]}")
        if depth > max_depth:
            raise ModelError(
                f"{name}, line {_line(text, position)}: nested deeper than {max_depth} levels"
            )


def _duplicate_line(text: str) -> int:
    """Where the second of two equal keys stands; only asked for when there is one."""
    levels: list[set[str]] = [set()]
    for token, position in _tokens(text):
        if token in "[{":
            levels.append(set())
        elif token in "]}":
            levels.pop()
        elif _COLON.match(text, position + len(token)):
            key = json.loads(token)
            if key in levels[-1]:
                return _line(text, position)
            levels[-1].add(key)
    return 1


def _word_line(text: str, word: str) -> int:
    """Where a number or constant first stands outside of strings."""
    pattern = re.compile(f"{_STRING}|({re.escape(word)})", flags=re.DOTALL)
    return next((_line(text, m.start()) for m in pattern.finditer(text) if m[1]), 1)


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    return ((match.group(), match.start()) for match in _TOKEN.finditer(text))


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def shorten(name: object) -> str:
    r"""Quotes a name from a file as one short printable line."""
    text = ascii(name) if os.name == "nt" else repr(name)
    return text if len(text) <= 80 else f"{text[:76]}...{text[-1]}"


_LONG = 10_000  # numbers; more are data, not options


def plain(value: Any) -> Any:
    """Turns a value into plain JSON; an object becomes its repr."""
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return [plain(item) for item in sorted(value, key=repr)]
    if hasattr(value, "tolist") and hasattr(value, "size"):  # arrays, and columns of frames
        return plain(value.tolist()) if value.size <= _LONG else f"array of shape {value.shape}"
    if isinstance(value, Sequence):
        return [plain(item) for item in value]
    return repr(value)
