"""From the words of the command line to the values of options."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansatz.errors import ModelError, UsageError


def words(text: str) -> list[str]:
    """Splits "A,B" at the commas; a name that holds a comma is quoted as in a CSV file.

    Example:
        >>> from ansatz.fitting.options.parsing import words
        >>> words('price,"size, m2"')
        ['price', 'size, m2']
    """
    import csv

    row = next(csv.reader([text], skipinitialspace=True), [])
    return [word.strip() for word in row]


def separator(text: str) -> str:
    r"""Reads a delimiter; a tab may be typed as a word.

    Example:
        >>> from ansatz.fitting.options.parsing import separator
        >>> separator("tab"), separator(";")
        ('\t', ';')
    """
    return "\t" if text in ("\\t", "tab") else text


def sides(text: str) -> list[int]:
    """Reads whole numbers from 1 on, with ``x`` or commas between them.

    Example:
        >>> from ansatz.fitting.options.parsing import sides
        >>> sides("48,64"), sides("48x64")
        ([48, 64], [48, 64])
    """
    try:
        found = [int(word) for word in re.split("[x,]", text.lower())]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise UsageError(f"--size takes whole numbers like 48x64, got '{text}'.")
    return found


def number_or_colour(text: str) -> int | str:
    """Reads a whole number, or a colour as ``#rrggbb``.

    Example:
        >>> from ansatz.fitting.options.parsing import number_or_colour
        >>> number_or_colour("255"), number_or_colour("#00FF00")
        (255, '#00ff00')
    """
    if re.fullmatch("#[0-9a-f]{6}", text.lower()):
        return text.lower()
    try:
        return int(text)
    except ValueError:
        raise UsageError(
            f"--unlabelled takes a number, or a colour '#000000', got '{text}'."
        ) from None


def number_or_word(text: str) -> int | str:
    """Reads a whole number where the text is one.

    Example:
        >>> from ansatz.fitting.options.parsing import number_or_word
        >>> number_or_word("3"), number_or_word("last")
        (3, 'last')
    """
    return int(text) if text.isdigit() else text


def read_roles(pairs: Sequence[str]) -> dict[str, str]:
    """Reads COL=ROLE words.

    Example:
        >>> from ansatz.fitting.options.parsing import read_roles
        >>> read_roles(["zip=categorical"])
        {'zip': 'categorical'}
    """
    found = {}
    for pair in pairs:
        key, equals, value = pair.rpartition("=")
        if not key or not equals:
            raise UsageError(f"expected --role COL=ROLE, got '{pair}'.")
        found[key] = value
    return found


def read_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """Reads KEY=VALUE words whose values are JSON.

    Example:
        >>> from ansatz.fitting.options.parsing import read_settings
        >>> read_settings(["widths=[64,64]", "activation=relu"])
        {'widths': [64, 64], 'activation': 'relu'}
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise UsageError(f"expected --set KEY=VALUE, got '{pair}'.")
        found[key] = _json_value(value)
    return found


def refuse_weights_file(column: str) -> None:
    """Refuses a file of weights where a column of weights is meant.

    Example:
        >>> from ansatz.fitting.options.parsing import refuse_weights_file
        >>> refuse_weights_file("resnet18.pth")
        Traceback (most recent call last):
        ...
        ansatz.errors.UsageError: --weights names a column; to begin with a file: --pretrained ...
    """
    if Path(column).suffix.lower() in (".safetensors", ".pth", ".pt"):
        raise UsageError(f"--weights names a column; to begin with a file: --pretrained {column}.")


def require_weights(path: str) -> None:
    """Refuses a file of weights that is not there.

    Example:
        >>> from ansatz.fitting.options.parsing import require_weights
        >>> require_weights("gone.pth")
        Traceback (most recent call last):
        ...
        ansatz.errors.ModelError: gone.pth: no such file of weights. Check its name.
    """
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
