"""A fit as data: what ``--config`` reads and ``--print-config`` writes."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from ansatz.errors import UsageError
from ansatz.fitting import FitOptions, Request
from ansatz.fitting.options import FitCommand, declared
from ansatz.fitting.request import defaults, validated

_OWN_TARGET = ("", ".npz", ".npy", ".nii", ".gz")  # endings of what may be images
_LARGEST = 1 << 20  # bytes; a configuration is written by hand


class FitConfig(NamedTuple):
    """Everything that ``ansatz fit`` was asked for."""

    request: Request
    processes: int = 1

    def to_dict(self) -> dict[str, Any]:
        """All options by name, those that were not given with their defaults."""
        table = declared(FitCommand)
        everything = {**defaults(FitCommand), **self.request.given, "processes": self.processes}
        shown = {n: v for n, v in everything.items() if table[n].option.panel is not None}
        return {"data": self.request.data, **shown}


def read_config(path: Path) -> dict[str, Any]:
    """The mapping in a TOML or JSON file; it can hold data only, and names no Python object."""
    import tomllib

    try:
        if path.stat().st_size > _LARGEST:
            raise UsageError(f"--config {path}: larger than 1 MB; this is no configuration.")
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"--config {path}: expected UTF-8 text.") from None
    except OSError as error:
        raise UsageError(f"--config {path}: {error.strerror}.") from None
    try:
        is_json = path.suffix.lower() == ".json"
        content = json.loads(text, object_pairs_hook=_once) if is_json else tomllib.loads(text)
    except RecursionError:
        raise UsageError(f"--config {path}: nested too deeply.") from None
    except ValueError as error:  # both parsers' errors are ValueErrors that say the line
        raise UsageError(f"--config {path}: {error}") from None
    if not isinstance(content, dict):
        raise UsageError(f"--config {path}: expected a table of keys and values.")
    return content


def merged(content: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Puts what the command line gives in place of a file's content; mappings are joined."""
    found = dict(content)
    for name, value in given.items():
        joined = isinstance(value, dict) and isinstance(found.get(name), dict)
        if value is not None:
            found[name] = {**found[name], **value} if joined else value
    return found


def make_config(given: Mapping[str, Any], source: str) -> FitConfig:
    """Checks the keys and values of a fit; the first that is wrong is named."""
    options = {"progress": "auto", **given}
    data = options.pop("data", None)
    if data is None:
        raise UsageError(f"{source}: DATA is missing.")
    if not isinstance(data, str) or not data:
        raise UsageError(f"{source}: data: expected a text, got {str(data)[:80]!r}.")
    found = validated(options, FitCommand, source)
    processes = found.pop("processes", 1)
    require_target(found, data, source)
    return FitConfig(Request(data, cast(FitOptions, found)), processes)


def require_target(given: Mapping[str, Any], data: str, source: str) -> None:
    """Refuses a fit that says no target of data that do not know their own."""
    says_target = any(given.get(name) for name in ("target", "lower", "masks"))
    if not says_target and not has_own_target(data):
        raise UsageError(f"{source}: --target COLUMN is missing.")


def has_own_target(data: str) -> bool:
    """Whether data may know their own target, as folders of images and image sets do."""
    return Path(data).suffix.lower() in _OWN_TARGET


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key '{twice}' appears twice")
    return found
