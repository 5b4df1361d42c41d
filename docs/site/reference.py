"""Writes the pages of the reference: which public names stand where; mkdocstrings fills them."""

import functools
import importlib
import inspect
from collections.abc import Iterator
from typing import Any, NamedTuple

import docstring

FURTHER = ("ansatz.data.augmentation", "ansatz.outcomes")  # public, not in dir(ansatz)
SPLIT_ABOVE = 60  # names; a package with more has a page per source file


class Page(NamedTuple):
    """A page of the reference, relative to the folder of the site's pages."""

    path: str
    title: str
    text: str


class Name(NamedTuple):
    """A public name: the package that lists it, and the object."""

    package: str
    name: str
    member: Any

    @property
    def full(self) -> str:
        """The dotted name."""
        return f"{self.package}.{self.name}"

    @property
    def target(self) -> str:
        """The name that mkdocstrings finds in the sources: it does not run lazy imports."""
        listed = inspect.getsource(importlib.import_module(self.package))
        home = f"{self.member.__module__}.{self.name}"
        return self.full if f" as {self.name}" in listed or home == self.full else home

    @property
    def file(self) -> str:
        """The stem of the source file."""
        return str(self.member.__module__).rpartition(".")[2]


@functools.cache
def packages() -> dict[str, list[Name]]:
    """Lists the public classes and functions of each package."""
    import ansatz

    modules = [name for name in dir(ansatz) if inspect.ismodule(getattr(ansatz, name))]
    listed = ["ansatz", *(f"ansatz.{name}" for name in modules), *FURTHER]
    return {package: list(_names(package)) for package in listed}


def _names(package: str) -> Iterator[Name]:
    module = importlib.import_module(package)
    for name in dir(module):
        member = getattr(module, name)
        called = inspect.isclass(member) or inspect.isfunction(member)
        home = str(getattr(member, "__module__", ""))
        here = hasattr(module, "__path__") or home == package
        if called and here and home.startswith("ansatz") and not name.startswith("_"):
            yield Name(package, name, member)


@functools.cache
def places() -> dict[str, str]:
    """Maps full names, by package and by source module, to anchors of the reference."""
    names = [name for listed in packages().values() for name in listed]
    own = {name.full: name.target for name in names}
    return {f"{n.member.__module__}.{n.name}": n.target for n in reversed(names)} | own


def pages() -> list[Page]:
    """Writes every page of the reference."""
    rows = ["| package | contents | names |", "| --- | --- | --- |"]
    found: list[Page] = []
    for package, names in packages().items():
        doc = inspect.getdoc(importlib.import_module(package)) or ""
        short = package.removeprefix("ansatz.")
        rows.append(f"| [{package}]({short}.md) | {docstring.first_sentence(doc)} | {len(names)} |")
        parts = {"": names}
        if len(names) > SPLIT_ABOVE:
            files = sorted({name.file for name in names})
            parts = {file: [n for n in names if n.file == file] for file in files}
        table = ["| name | |", "| --- | --- |", *map(_row, names)] if names else []
        head = [
            f"# {package}",
            docstring.markdown(doc.partition("\nExample:")[0]),
            "\n".join(table),
        ]
        own = [_entry(name) for name in parts.get("", [])]
        found.append(Page(f"reference/{short}.md", package, "\n\n".join([*head, *own])))
        for file in filter(None, parts):
            text = "\n\n".join([f"# {package}.{file}", *map(_entry, parts[file])])
            found.append(Page(f"reference/{short}/{file}.md", file, text))
    lead = "Every public name: what it does, its formula, arguments, shapes, example and paper."
    index = "\n".join(["# Reference", "", lead, "", *rows])
    return [Page("reference/index.md", "Reference", index), *found]


def _row(name: Name) -> str:
    summary = docstring.first_sentence(name.member.__doc__ or "")
    return f"| [`{name.name}`][{name.target}] | {summary} |"


def _entry(name: Name) -> str:
    """The directive that mkdocstrings fills, and the methods that other public classes describe."""
    public, hidden = _inherited(name)
    options = "    options:\n      inherited_members: true\n" if hidden else ""
    lines = [] if hidden else [f"Inherited from `{base}`: {', '.join(methods)}."
                               for base, methods in public.items()]  # fmt: skip
    return "\n\n".join([f"::: {name.target}\n{options}", *lines])


def _inherited(name: Name) -> tuple[dict[str, list[str]], bool]:
    """Methods of public base classes, as links; and whether a base without a page has some."""
    found: dict[str, list[str]] = {}
    hidden = False
    for base in getattr(name.member, "__mro__", ())[1:]:
        if not base.__module__.startswith("ansatz"):
            continue
        place = places().get(f"{base.__module__}.{base.__name__}")
        methods = [m for m, value in vars(base).items() if not m.startswith("_") and value.__doc__
                   and m not in vars(name.member) and callable(value)]  # fmt: skip
        hidden = hidden or (place is None and bool(methods))
        if place and methods:
            found[base.__name__] = [f"[`{m}`][{place}.{m}]" for m in methods]
    return found, hidden
