"""The claims by name: one file each, found by listing the folders of this package."""

import difflib
import fnmatch
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch

from ansatz.claims.claim import Claim, Scale
from ansatz.claims.finding import Finding
from ansatz.errors import UsageError
from ansatz.registry import Registry


def _files() -> Iterator[tuple[str, str, str]]:
    """(name, area, file) of every claim: ``connectionism/xor.py`` holds the claim ``xor``."""
    for file in sorted(Path(__file__).parent.glob("*/*.py")):
        if not file.name.startswith("_"):
            yield file.stem.replace("_", "-"), file.parent.name, file.stem


registry = Registry(
    "claim", {name: f"ansatz.claims.{area}.{stem}:claim" for name, area, stem in _files()}
)
names = registry.names


def get(name: str) -> Claim:
    """Returns the claim called ``name``.

    Example:
        >>> from ansatz import claims
        >>> claims.get("xor").sources
        ('M009', 'E67')
    """
    found: Claim = registry.get(name)
    return found


def run(name: str, scale: Scale = "quick", *, seed: int = 0, **parameters: Any) -> Finding:
    """Runs one claim.

    Args:
        name: as ``ansatz list claims`` spells it.
        scale: ``"quick"`` takes seconds, ``"full"`` up to a minute.
        seed: of the claim's random numbers.
        parameters: values other than those of the scale.

    Example:
        >>> from ansatz import claims
        >>> claims.run("xor").holds
        True
    """
    return get(name).run(scale, torch.Generator().manual_seed(seed), **parameters)


def areas() -> dict[str, list[str]]:
    """Lists the names of the claims by area: each area is a folder."""
    found: dict[str, list[str]] = {}
    for name, area, _ in _files():
        found.setdefault(area, []).append(name)
    return found


def select(words: Iterable[str]) -> list[str]:
    """Finds the claims that the words mean; without words, all claims.

    Args:
        words: names (``"xor"``), areas (``"connectionism"``), patterns (``"hopfield-*"``) and rows
            of the catalog (``"M009"``, ``"E17"``).
    """
    found = [name for word in words for name in _matching(word)]
    return list(dict.fromkeys(found)) or names()


def _matching(word: str) -> list[str]:
    known = names()
    if word in known:
        return [word]
    by_area = areas()
    if word in by_area:
        return by_area[word]
    if re.fullmatch(r"[ME]\d+", word):
        matching = [name for name in known if word in get(name).sources]
        what = f"no claim has the row {word} of the catalog. Rows without a claim: --coverage"
    else:
        matching = fnmatch.filter(known, word)
        what = f"no claim and no area is called '{word[:80]}'."
        near = difflib.get_close_matches(word, [*known, *by_area], n=1)
        what += f" Did you mean '{near[0]}'?" if near else " To see the names: ansatz list claims"
    if not matching:
        raise UsageError(what)
    return matching
