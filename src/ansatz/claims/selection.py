"""Which claims a word means: a name, an area, a pattern, or a row of the course."""

import difflib
import fnmatch
import re
from collections.abc import Iterable
from pathlib import Path

from ansatz.claims.registry import get, names
from ansatz.errors import UsageError


def areas() -> dict[str, list[str]]:
    """The names of the claims by area: each area is a folder.

    Example:
        >>> from ansatz import claims
        >>> "xor" in claims.areas()["connectionism"]
        True
    """
    found: dict[str, list[str]] = {}
    for file in sorted(Path(__file__).parent.glob("*/*.py")):
        if not file.name.startswith("_"):
            found.setdefault(file.parent.name, []).append(file.stem.replace("_", "-"))
    return found


def select(words: Iterable[str]) -> list[str]:
    """The claims that are meant; all if nothing is said.

    Args:
        words: names (``"xor"``), areas (``"connectionism"``), patterns (``"hopfield-*"``) and rows
            of the course (``"M009"``, ``"E17"``).

    Example:
        >>> from ansatz import claims
        >>> claims.select(["xo?", "M009"])
        ['xor']
    """
    found = [name for word in words for name in _meant(word)]
    return list(dict.fromkeys(found)) or names()


def _meant(word: str) -> list[str]:
    known = names()
    if word in known:
        return [word]
    by_area = areas()
    if word in by_area:
        return by_area[word]
    if re.fullmatch(r"[ME]\d+", word):
        matching = [name for name in known if word in get(name).sources]
        what = f"no claim has the row {word} of the course yet. Those without: --coverage"
    else:
        matching = fnmatch.filter(known, word)
        what = f"no claim and no area is called '{word[:80]}'."
        near = difflib.get_close_matches(word, [*known, *by_area], n=1)
        what += f" Did you mean '{near[0]}'?" if near else " To see the names: ansatz list claims"
    if not matching:
        raise UsageError(what)
    return matching
