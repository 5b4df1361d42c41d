"""With --json, standard output is one JSON document and nothing else."""

import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def plain(value: Any) -> Any:
    """``value`` as strict JSON can say it: nan and infinities are null, arrays are lists."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):  # numpy and torch, without importing them
        return plain(value.tolist())
    return str(value)


def text_of(value: Any) -> str:
    r"""The document as text. A lone surrogate from a file's name is spelled out."""
    text = json.dumps(plain(value), allow_nan=False, ensure_ascii=False, indent=2)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def print_document(value: Any) -> None:
    """Writes the document to standard output."""
    sys.stdout.write(text_of(value) + "\n")
