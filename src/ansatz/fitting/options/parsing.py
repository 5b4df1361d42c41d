"""From the words of the command line to the values of options."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansatz.errors import ModelError, UsageError


def words(text: str) -> list[str]:
    """Splits "A,B" at the commas; a name that holds a comma is quoted as in a CSV file."""
    import csv

    row = next(csv.reader([text], skipinitialspace=True), [])
    return [word.strip() for word in row]


def separator(text: str) -> str:
    r"""Reads a delimiter; a tab may be typed as a word."""
    return "\t" if text in ("\\t", "tab") else text


def sides(text: str) -> list[int]:
    """Reads whole numbers from 1 on, with ``x`` or commas between them."""
    try:
        found = [int(word) for word in re.split("[x,]", text.lower())]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise UsageError(f"--size takes whole numbers like 48x64, got '{text}'.")
    return found


def number_or_colour(text: str) -> int | str:
    """Reads a whole number, or a colour as ``#rrggbb``."""
    if re.fullmatch("#[0-9a-f]{6}", text.lower()):
        return text.lower()
    try:
        return int(text)
    except ValueError:
        raise UsageError(
            f"--unlabelled takes a number, or a colour '#000000', got '{text}'."
        ) from None


def number_or_word(text: str) -> int | str:
    """Reads a whole number where the text is one."""
    return int(text) if text.isdigit() else text


def read_roles(pairs: Sequence[str]) -> dict[str, str]:
    """Reads COL=ROLE words."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.rpartition("=")
        if not key or not equals:
            raise UsageError(f"expected --role COL=ROLE, got '{pair}'.")
        found[key] = value
    return found


def read_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """Reads KEY=VALUE words whose values are JSON."""
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise UsageError(f"expected --set KEY=VALUE, got '{pair}'.")
        found[key] = _json_value(value)
    return found


def refuse_weights_file(column: str) -> None:
    """Refuses a file of weights where a column of weights is meant."""
    if Path(column).suffix.lower() in (".safetensors", ".pth", ".pt"):
        raise UsageError(f"--weights names a column; to begin with a file: --pretrained {column}.")


def require_weights(path: str) -> None:
    """Refuses a file of weights that is not there."""
    if not Path(path).is_file():
        raise ModelError(f"{path}: no such file of weights. Check its name.")


def _json_value(text: str) -> Any:
    """JSON where it is JSON, else the text itself: activation=relu needs no quotes."""
    import json

    try:
        return json.loads(text, parse_constant=_no_constant)
    except ValueError:
        return text


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a JSON number")
