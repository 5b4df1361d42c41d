"""Words of the command line that name something: KEY=VALUE, and the folder beside a file."""

import json
from pathlib import Path
from typing import Any, Literal

from ansatz.errors import UsageError


def pairs_of(what: Literal["roles", "options"], pairs: list[str]) -> dict[str, Any]:
    """A mapping from COL=ROLE words, or from KEY=VALUE words whose values are JSON.

    Example:
        >>> from ansatz.cli.pairs import pairs_of
        >>> pairs_of("options", ["widths=[64,64]", "activation=relu"])
        {'widths': [64, 64], 'activation': 'relu'}
    """
    flag = "--role COL=ROLE" if what == "roles" else "--set KEY=VALUE"
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.rpartition("=") if what == "roles" else pair.partition("=")
        if not key or not equals:
            raise UsageError(f"expected {flag}, got '{pair}'.")
        found[key] = value if what == "roles" else _json_value(value)
    return found


def stem(data: str) -> str:
    """houses.csv.gz -> houses; a folder and a data set's name are their own stem.

    Example:
        >>> from ansatz.cli.pairs import stem
        >>> stem("data/houses.csv.gz")
        'houses'
    """
    return Path(data).absolute().name.split(".")[0] or "data"


def _json_value(text: str) -> Any:
    """JSON where it is JSON, else the text itself: activation=relu needs no quotes."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except ValueError:
        return text


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON number")
