"""A claim as ``ansatz show`` explains it."""

import textwrap
from typing import TYPE_CHECKING, Any

from ansatz.cli.formula import plain_formula, plain_text
from ansatz.cli.terminal import printable

if TYPE_CHECKING:
    from ansatz.claims import Claim

_WIDTH = 88


def claim_page(claim: "Claim") -> str:
    """What ``ansatz show`` prints of a claim."""
    from ansatz.claims.catalog import catalog

    rows = {row.id: row for row in catalog()}
    sources = [f"{each:5} {rows[each].item}" for each in claim.sources if each in rows]
    parts = [
        f"{claim.id} (claim)",
        wrapped(claim.title),
        wrapped(claim.statement),
        textwrap.indent(plain_formula(claim.formula), "    "),
        _titled("Measured", wrapped(plain_text(claim.measure.__doc__ or ""))),
        *(_titled(f"Common slip {each.id}", _slip(each)) for each in claim.errata),
        _titled("Parameters", "\n".join(_parameters(claim))),
        _titled("Catalog", "\n".join(sources)),
        _titled("Reference", wrapped(claim.reference)),
        _titled("Run", _commands(claim)),
    ]
    text = "\n\n".join(part for part in parts if part.strip())
    return "\n".join(printable(line) for line in text.splitlines())


def claim_document(claim: "Claim") -> dict[str, Any]:
    """What ``ansatz show --json`` prints of a claim."""
    return {
        "name": claim.id,
        "kind": "claim",
        "summary": claim.title,
        "statement": claim.statement,
        "formulas": [claim.formula],
        "sources": list(claim.sources),
        "errata": [each._asdict() for each in claim.errata],
        "parameters": {"quick": claim.parameters("quick"), "full": claim.parameters("full")},
        "figure": claim.draw is not None,
        "reference": claim.reference,
        "example": f"ansatz verify {claim.id}",
    }


def _slip(erratum: Any) -> str:
    return f"printed: {erratum.printed}\ncorrect: {erratum.correct}"


def _parameters(claim: "Claim") -> list[str]:
    quick, full = claim.parameters("quick"), claim.parameters("full")
    width = max(map(len, quick), default=0)
    return [
        f"{name:{width}}  {value!r}" + (f"  (full: {full[name]!r})" if full[name] != value else "")
        for name, value in quick.items()
    ]


def _commands(claim: "Claim") -> str:
    lines = [f"ansatz verify {claim.id}"]
    if claim.draw is not None:
        lines[0] += f" --figure {claim.id}.png"
    return "\n".join([*lines, f'ansatz.claims.run("{claim.id}")'])


def wrapped(text: str) -> str:
    """A paragraph in lines that a page can hold."""
    return textwrap.fill(
        " ".join(text.split()), _WIDTH, break_long_words=False, break_on_hyphens=False
    )


def _titled(title: str, text: str) -> str:
    return f"{title}\n{textwrap.indent(text, '  ')}" if text.strip() else ""
