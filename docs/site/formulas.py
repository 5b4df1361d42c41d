"""Turns formulas into MathML when the site is built: browsers draw it without a script."""

import re

from latex2mathml.converter import convert

_FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(?:.+?)(?<!`)\1(?!`)", re.DOTALL)
_DISPLAY = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
_INLINE = re.compile(r"(?<![\\$\w])\$(?=[^\s$])([^$\n]+?)(?<=[^\s\\])\$(?![\w$])")
_TOKEN = re.compile(r"(?:<p>)?zzFORMULA(\d+)zz(?:</p>)?")


class Formulas:
    """Takes formulas out of a page before Markdown sees them, and puts MathML in their place."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def display(self, tex: str) -> str:
        """Stores a formula on a line of its own and returns its token."""
        parts = [mathml(part, "inline") for part in lines(tex)]
        wide = [part.replace("<math ", '<math displaystyle="true" ', 1) for part in parts]
        return self._keep(f'<div class="formula">{" ".join(wide)}</div>')

    def inline(self, tex: str) -> str:
        """Stores a formula within a line and returns its token."""
        return self._keep(mathml(tex, "inline"))

    def hide(self, markdown: str) -> str:
        """Replaces ``$$...$$`` and ``$...$`` by tokens and leaves code as it is."""
        code: list[str] = []

        def put_aside(match: re.Match[str]) -> str:
            code.append(match.group())
            return f"zzCODE{len(code) - 1}zz"

        text = _SPAN.sub(put_aside, _FENCE.sub(put_aside, markdown))
        text = _DISPLAY.sub(lambda m: self.display(m[1]), text)
        text = _INLINE.sub(lambda m: self.inline(m[1]), text)
        for k in range(len(code) - 1, -1, -1):  # a span may hold a fence
            text = text.replace(f"zzCODE{k}zz", code[k])
        return text

    def show(self, html: str) -> str:
        """Replaces the tokens by MathML."""
        return _TOKEN.sub(self._back, html)

    def _keep(self, html: str) -> str:
        self.found.append(html)
        return f"zzFORMULA{len(self.found) - 1}zz"

    def _back(self, match: re.Match[str]) -> str:
        html = self.found[int(match[1])]
        block = html.startswith("<div")
        before = "<p>" if match.group().startswith("<p>") and not block else ""
        after = "</p>" if match.group().endswith("</p>") and not block else ""
        return f"{before}{html}{after}"


def lines(tex: str) -> list[str]:
    r"""Splits a long formula at its ``\qquad``, so that its parts can stand on several lines."""
    found, depth = [""], 0
    for token in re.split(r"(\\qquad|\\quad|\\left|\\right|[{}])", tex):
        depth += (token in ("{", r"\left")) - (token in ("}", r"\right"))
        if token in (r"\qquad", r"\quad") and depth == 0:
            found.append("")
        else:
            found[-1] += token
    return [part for part in found if part.strip()]


def mathml(tex: str, display: str) -> str:
    """Converts one formula; raises ValueError with the formula that the converter does not know."""
    source = " ".join(tex.split())
    try:
        found = convert(_plain(source), display=display)
    except Exception as error:
        raise ValueError(f"formula {source!r}: {type(error).__name__} {error}") from None
    return str(found).replace("\n", " ")


def _plain(tex: str) -> str:
    """Replaces commands that the converter lacks by commands that it has."""
    tex = re.sub(r"\\(?:big|Big|bigg|Bigg)[lrm]?\s*(?=[(\[|)\]/]|\\[{}|]|\\[lr])", "", tex)
    tex = re.sub(r"\\operatorname\*?", r"\\mathrm", tex)
    tex = re.sub(r"\\arg(?![a-zA-Z])", r"\\mathrm{arg}\\,", tex)
    return re.sub(r"\\tfrac", r"\\frac", tex)


FORMULAS = Formulas()  # of all pages: the hooks and the reference share it
