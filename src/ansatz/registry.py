"""Registries: the names of the members of a family, in Python and on the command line."""

import difflib
import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ansatz.errors import AnsatzError, UsageError


class Entry(NamedTuple):
    """One row of ``ansatz list``."""

    name: str
    summary: str
    reference: str


def load(place: str) -> Any:
    """Imports what ``"module:Attribute"`` names."""
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)


class Registry:
    """The names of a family, each with its object, which is imported on first use.

    Args:
        kind: the family's noun in the singular, for error messages ("likelihood").
        members: name -> ``"module:Attribute"``, or the object itself.
        aliases: other names of members, which no list shows.

    A name may be written in capitals, with ``-`` or without ``_``: ``LogNormal``, ``log-normal``.
    """

    def __init__(
        self,
        kind: str,
        members: Mapping[str, str | Callable[..., Any]],
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        self.kind = kind
        self._members: dict[str, str | Callable[..., Any]] = dict(members)
        self._aliases = {_plain(alias): name for alias, name in (aliases or {}).items()}

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._members)

    def canonical(self, name: Any) -> Any:
        """The name of a member as the registry spells it; an unknown one stays as it is."""
        if name in self._members or not isinstance(name, str):
            return name
        key = _plain(name)
        return next((n for n in self._members if _plain(n) == key), self._aliases.get(key, name))

    def __contains__(self, name: object) -> bool:
        return self.canonical(name) in self._members

    def get(self, name: str) -> Any:
        """The object called ``name``; a wrong name is an error that suggests the nearest one."""
        name = self.canonical(name)
        member = self._members.get(name) if isinstance(name, str) else None
        if member is None:
            raise UsageError(self._unknown(str(name)))
        if isinstance(member, str):
            member = self._members[name] = load(member)
        return member

    def create(self, name: str, *args: Any, **options: Any) -> Any:
        """Calls the object called ``name``; an unknown option is an error that lists the known.

        What the object refuses in its options is an error of usage as well.
        """
        member = self.get(name)
        try:
            inspect.signature(member).bind(*args, **options)
        except TypeError as error:
            raise UsageError(f"{self.kind} '{name}': {error}. {_options(member)}") from None
        try:
            return member(*args, **options)
        except AnsatzError:
            raise
        except ValueError as error:  # an option that its own constructor refuses
            raise UsageError(str(error)) from error
        except TypeError as error:
            raise UsageError(f"{self.kind} '{name}': {error}.") from error

    def register(self, name: str, member: Callable[..., Any]) -> None:
        """Adds a name of the user's own. It refuses a name that is taken."""
        if name in self:
            raise UsageError(f"{self.kind} '{name}' is taken; choose another name.")
        self._members[name] = member

    def remove(self, name: str) -> None:
        """Forgets a name, as a test does with its own."""
        self.get(name)
        del self._members[self.canonical(name)]

    def describe(self, name: str) -> Entry:
        """Name, first sentence and reference, read from the object's docstring."""
        name, member = self.canonical(name), self.get(name)
        text = inspect.getdoc(member) or ""
        summary = re.split(r"(?<=[.!?])\s|\n\n", text.strip(), maxsplit=1)[0]
        return Entry(name, " ".join(summary.split()), _reference(member, text))

    def _unknown(self, name: str) -> str:
        near = difflib.get_close_matches(name.lower(), self._members, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        return f"unknown {self.kind} '{name[:80]}'.{hint} Known: {', '.join(self.names())}."


def _plain(name: str) -> str:
    return re.sub(r"[-_ ]", "", name.lower())


def _options(member: Callable[..., Any]) -> str:
    parameters = inspect.signature(member).parameters.values()
    names = [p.name for p in parameters if p.kind is not p.VAR_POSITIONAL]
    return f"Its arguments: {', '.join(names)}."


def _reference(member: Any, text: str) -> str:
    """The first line under ``References:``; for torch's own classes, their page."""
    module = getattr(member, "__module__", "") or ""
    if module.startswith("torch."):
        path = ".".join(module.split(".")[:2])
        return f"https://pytorch.org/docs/stable/generated/{path}.{member.__name__}.html"
    found = re.search(r"^References:\n((?:[ \t]+\S.*\n?)+)", text, flags=re.MULTILINE)
    return " ".join(found.group(1).split()) if found else ""
