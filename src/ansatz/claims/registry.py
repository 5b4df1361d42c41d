"""The claims by name: one file each, found by listing the folders of this package."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from ansatz.claims.claim import Claim, Scale
from ansatz.claims.finding import Finding
from ansatz.registry import Registry


def _files() -> Iterator[tuple[str, str]]:
    """(id, where it is) of every claim: ``connectionism/xor.py`` holds the claim ``xor``."""
    for file in sorted(Path(__file__).parent.glob("*/*.py")):
        if not file.name.startswith("_"):
            name = file.stem.replace("_", "-")
            yield name, f"ansatz.claims.{file.parent.name}.{file.stem}:claim"


registry = Registry("claim", dict(_files()))
names = registry.names


def get(name: str) -> Claim:
    """The claim called ``name``.

    Example:
        >>> from ansatz import claims
        >>> claims.get("xor").sources
        ('M009',)
    """
    found: Claim = registry.get(name)
    return found


def run(name: str, scale: Scale = "quick", *, seed: int = 0, **parameters: Any) -> Finding:
    """Runs one claim.

    Args:
        name: as ``ansatz list claims`` spells it.
        scale: ``"quick"`` for seconds, ``"full"`` for as much as a figure deserves.
        seed: of everything random in it.
        parameters: values other than those of the scale.

    Example:
        >>> from ansatz import claims
        >>> claims.run("xor").holds
        True
    """
    return get(name).run(scale, torch.Generator().manual_seed(seed), **parameters)
