"""Turns the reStructuredText of our docstrings into Markdown for mkdocstrings."""

import inspect
import re
from typing import Any

import griffe
import reference
from formulas import FORMULAS

_MATH_BLOCK = re.compile(r"^([ \t]*)\.\. math::(.*?)(?=\n[ \t]*\n|\n\1\S|\Z)", re.M | re.S)
_MATH = re.compile(r":math:`([^`]+)`", re.DOTALL)
_ROLE = re.compile(r":(?:class|func|meth|mod|data|attr|exc):`~?([\w.]+)`")
_CODE = re.compile(r"``(.+?)``", re.DOTALL)
_URL = re.compile(r"(?<![<(\[])(https?://[^\s<>]+?)(?=[.,;)]*(?:\s|$))")
_OWN_SECTION = re.compile(r"^(Shapes|References):\n((?:[ \t]+.*(?:\n|\Z)|\n)+)", re.M)


class PlainDocstrings(griffe.Extension):
    """Rewrites every docstring before mkdocstrings parses it."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Replaces the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value)


def markdown(docstring: str) -> str:
    """Formulas become tokens, roles become links; ``Example:`` gets the name that Google has."""
    text = inspect.cleandoc(docstring)
    text = re.sub(r"^Example:$", "Examples:", text, flags=re.M)
    text = _OWN_SECTION.sub(lambda m: f"**{m[1]}:**\n\n{inspect.cleandoc(m[2])}\n\n", text)
    text = _MATH_BLOCK.sub(lambda m: f"\n{m[1]}{FORMULAS.display(m[2])}\n", text)
    paragraphs = re.split(r"(\n[ \t]*\n)", text)
    return "".join(part if ">>>" in part else _words(part) for part in paragraphs)


def first_sentence(docstring: str) -> str:
    """The summary line of a docstring, as Markdown for a table."""
    return _words(" ".join(inspect.cleandoc(docstring).split("\n\n")[0].split()))


def _words(text: str) -> str:
    code: list[str] = []

    def keep(markup: str) -> str:
        code.append(markup)
        return f"zzCODE{len(code) - 1}zz"

    text = _MATH.sub(lambda m: keep(FORMULAS.inline(m[1])), text)
    text = _CODE.sub(lambda m: keep(f"`{m[1]}`"), text)
    text = _ROLE.sub(lambda m: keep(_link(m[1])), text)
    text = _URL.sub(lambda m: keep(f"<{m[1]}>"), text)
    text = re.sub(r"([<\[\]|]|(?<=\w)\*)", r"\\\1", text)
    for k, markup in enumerate(code):
        text = text.replace(f"zzCODE{k}zz", markup)
    return text


def _link(name: str) -> str:
    """A link where the reference has the name, else the name as code."""
    short = name.rpartition(".")[2]
    places = reference.places()
    full = next((known for known in places if f".{known}".endswith(f".{name}")), "")
    return f"[`{short}`][{places[full]}]" if full else f"`{short}`"
