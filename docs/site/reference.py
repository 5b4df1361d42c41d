"""The reference: a page for each public package, made from the docstrings of its names."""

import importlib
import inspect
import re
from typing import Any, NamedTuple

import docstring
from formulas import Formulas

NESTED = ("ansatz.data.augmentation",)  # packages inside a package that users call by their name
SPLIT_ABOVE = 60  # names; a package with more has a page per source file


class Page(NamedTuple):
    """A page to be written, relative to the folder of the site's pages."""

    path: str
    title: str
    text: str


class Name(NamedTuple):
    """A public name: where it is listed and what it is."""

    package: str
    name: str
    member: Any

    @property
    def anchor(self) -> str:
        """The place of the name on its page."""
        return f"{self.package}.{self.name}".lower()


def packages() -> dict[str, list[Name]]:
    """The public names of each package; those of ``ansatz`` itself are its first example's."""
    import ansatz

    found = {"ansatz": [n for n in dir(ansatz) if not _is_module(getattr(ansatz, n))]}
    found |= {f"ansatz.{n}": [] for n in dir(ansatz) if _is_module(getattr(ansatz, n))}
    found |= {package: [] for package in NESTED}
    return {package: list(_names(package)) for package in found}


def _names(package: str) -> list[Name]:
    module = importlib.import_module(package)
    listed = [name for name in dir(module) if not name.startswith("_")]
    found = []
    for name in listed:
        member = getattr(module, name)
        ours = str(getattr(member, "__module__", "")).startswith("ansatz")
        if (inspect.isclass(member) or inspect.isfunction(member)) and ours:
            if hasattr(module, "__path__") or member.__module__ == package:
                found.append(Name(package, name, member))
    return found


def _is_module(member: object) -> bool:
    return inspect.ismodule(member)


def places() -> dict[str, str]:
    """The page of each name, by its full name; source modules lead to it as well."""
    found: dict[str, str] = {}
    for package, names in packages().items():
        split = len(names) > SPLIT_ABOVE
        for name in names:
            page = _page(package, _file(name) if split else "")
            found[f"{package}.{name.name}"] = page
            found.setdefault(f"{name.member.__module__}.{name.name}", page)
    return found


def _page(package: str, file: str) -> str:
    short = package.removeprefix("ansatz.")
    return f"reference/{short}/{file}.md" if file else f"reference/{short}.md"


def _file(name: Name) -> str:
    return str(name.member.__module__).rpartition(".")[2]


def pages(formulas: dict[str, Formulas]) -> list[Page]:
    """Every page of the reference; ``formulas`` takes those of each page."""
    where = places()
    found = [Page("reference/index.md", "Reference", _contents(formulas))]
    for package, names in packages().items():
        path = _page(package, "")
        kept = formulas.setdefault(path, Formulas())
        writer = _writer(kept, path, where)
        head = [f"# {package}", docstring.markdown(_doc(importlib.import_module(package)), writer)]
        if len(names) <= SPLIT_ABOVE:
            body = [_listing(names, path, where, writer), *(_entry(n, writer) for n in names)]
            found.append(Page(path, package, "\n\n".join([*head, *body])))
            continue
        found.append(
            Page(path, package, "\n\n".join([*head, _listing(names, path, where, writer)]))
        )
        for file in sorted({_file(name) for name in names}):
            own = [name for name in names if _file(name) == file]
            sub = _page(package, file)
            kept = formulas.setdefault(sub, Formulas())
            told = _writer(kept, sub, where)
            lead = docstring.markdown(_doc(importlib.import_module(own[0].member.__module__)), told)
            entries = [_entry(name, told) for name in own]
            found.append(Page(sub, file, "\n\n".join([f"# {package}.{file}", lead, *entries])))
    return found


def _contents(formulas: dict[str, Formulas]) -> str:
    rows = ["| package | what it holds | names |", "| --- | --- | --- |"]
    kept = formulas.setdefault("reference/index.md", Formulas())
    writer = _writer(kept, "reference/index.md", {})
    for package, names in packages().items():
        said = docstring.first_sentence(_doc(importlib.import_module(package)), writer)
        short = package.removeprefix("ansatz.")
        rows.append(f"| [{package}]({short}.md) | {said} | {len(names)} |")
    lead = "Every public name, with its formula, its arguments, shapes, an example and references."
    return "\n".join(["# Reference", "", lead, "", *rows])


def _writer(kept: Formulas, path: str, where: dict[str, str]) -> docstring.Writer:
    def link(target: str) -> str:
        short = target.rpartition(".")[2]
        full = target if target in where else next(
            (name for name in where if name.endswith(f".{target}")), ""
        )  # fmt: skip
        return (
            f"[`{short}`]({_relative(where[full], path)}#{_anchor(full, where)})"
            if full
            else f"`{short}`"
        )

    return docstring.Writer(kept.display, kept.inline, link)


def _anchor(full: str, where: dict[str, str]) -> str:
    """A name is listed by its package, whatever file it is written in."""
    name = full.rpartition(".")[2]
    page = where[full]
    same = [f for f in where if where[f] == page and f.rpartition(".")[2] == name]
    return min(same, key=lambda f: f.count(".")).lower()


def _relative(target: str, page: str) -> str:
    up = page.count("/")
    return "../" * up + target


def _listing(names: list[Name], path: str, where: dict[str, str], writer: docstring.Writer) -> str:
    rows = ["| name | |", "| --- | --- |"]
    for name in names:
        page = where[f"{name.package}.{name.name}"]
        target = f"#{name.anchor}" if page == path else f"{_relative(page, path)}#{name.anchor}"
        said = docstring.first_sentence(_doc(name.member), writer)
        rows.append(f"| [`{name.name}`]({target}) | {said} |")
    return "\n".join(rows) if names else ""


def _entry(name: Name, writer: docstring.Writer) -> str:
    kind = "class" if inspect.isclass(name.member) else "function"
    parts = [
        f"## {kind} `{name.name}` {{ #{name.anchor} }}",
        f"```python\n{name.name}{_signature(name.member)}\n```",
        docstring.markdown(_doc(name.member), writer),
    ]
    if kind == "class":
        parts += [_method(name, method, writer) for method in _methods(name.member)]
    return "\n\n".join(parts)


def _methods(kind: type) -> list[tuple[str, Any]]:
    """Public methods and properties that the class itself defines and describes."""
    found = []
    for name, member in vars(kind).items():
        called = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        known = inspect.isfunction(called) or isinstance(called, property)
        if not name.startswith("_") and known and inspect.getdoc(called):
            found.append((name, called))
    return found


def _method(name: Name, method: tuple[str, Any], writer: docstring.Writer) -> str:
    called, member = method
    head = f"### `{name.name}.{called}` {{ #{name.anchor}.{called.lower()} }}"
    said = docstring.markdown(_doc(member), writer)
    if isinstance(member, property):
        return f"{head}\n\n{said}"
    return f"{head}\n\n```python\n{called}{_signature(member)}\n```\n\n{said}"


def _doc(member: object) -> str:
    return inspect.getdoc(member) or ""


def _signature(member: Any) -> str:
    """The arguments, a line each where one line would be too long."""
    try:
        signature = inspect.signature(member)
    except (TypeError, ValueError):
        return "(...)"
    own = [p for p in signature.parameters.values() if p.name != "self"]
    text = str(signature.replace(parameters=own))
    text = re.sub(r"\b(?:ansatz|torch|numpy|pandas|collections|typing|pathlib)(?:\.\w+)*\.(?=\w)",
                  "", text)  # fmt: skip
    text = re.sub(r"<function (\w+) at 0x[0-9a-f]+>", r"\1", text)
    if len(text) <= 80:
        return text
    marks, lines = {p.name: p for p in own}, []
    star = False
    for parameter in marks.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            lines.append("*,")
            star = True
        star = star or parameter.kind is parameter.VAR_POSITIONAL
        lines.append(f"{_short(str(parameter))},")
    given = signature.return_annotation
    back = (
        "" if given is inspect.Signature.empty else f" -> {_short(inspect.formatannotation(given))}"
    )
    return "(\n    " + "\n    ".join(lines) + f"\n){back}"


def _short(text: str) -> str:
    text = re.sub(r"\b(?:ansatz|torch|numpy|pandas|collections|typing|pathlib)(?:\.\w+)*\.(?=\w)",
                  "", text)  # fmt: skip
    return re.sub(r"<function (\w+) at 0x[0-9a-f]+>", r"\1", text)
