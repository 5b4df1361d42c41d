"""Which columns of a table are for which structure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ansatz.data.columns import is_free_text
from ansatz.errors import UsageError
from ansatz.fitting.column_roles import near_columns
from ansatz.structures.registry import DEFAULT, claims

TEXTS = claims["text_column"]


@dataclass(frozen=True)
class Columns:
    """The names of the columns of each part, which is called by its structure and its place.

    Args:
        parts: ``{"sequence": ["title"], "sequence_2": ["body"], "vector": ["stars", "site"]}``.
    """

    parts: Mapping[str, list[str]]

    @classmethod
    def named(cls, options: Mapping[str, Any]) -> "Columns":
        """The columns that options name: texts, an image."""
        found: dict[str, list[str]] = {}
        for option, structure in claims.items():
            for name in _listed(options.get(option)):
                found[_free(structure, found)] = [name]
        return cls(found)

    @property
    def texts(self) -> list[str]:
        """Columns that are read as text whatever they look like."""
        return [name for part, names in self.parts.items() if part != DEFAULT for name in names]


def find_columns(features: pd.DataFrame, named: Columns, origin: str) -> Columns:
    """The columns that options name, those that hold free text, and all others together."""
    found = dict(named.parts)
    for name in (name for names in named.parts.values() for name in names):
        if name not in features.columns:
            near = near_columns(name, features)
            raise UsageError(f"{origin}: no column '{name}' to predict from. {near}")
    if not any(part.startswith(TEXTS) for part in found):
        for name in features.columns:
            if name not in named.texts and is_free_text(features[name]):
                found = {_free(TEXTS, found): [str(name)], **found}
    used = {name for names in found.values() for name in names}
    rest = [str(name) for name in features.columns if name not in used]
    return Columns({**found, DEFAULT: rest} if rest else found)


def _free(structure: str, taken: Mapping[str, Any]) -> str:
    count = sum(part.partition("_")[0] == structure for part in taken)
    return structure if not count else f"{structure}_{count + 1}"


def _listed(given: str | Sequence[str] | None) -> list[str]:
    if given is None:
        return []
    return given.split(",") if isinstance(given, str) else list(given)
