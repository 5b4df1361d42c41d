"""Short descriptions of objects for people: a title and facts, as text and as HTML."""

import html
from collections.abc import Sequence

Facts = Sequence[tuple[str, object]]
LIMIT = 200  # letters of a fact


def as_text(title: str, facts: Facts) -> str:
    """Writes the title, and one line for each fact that is not empty."""
    shown = _shown(facts)
    width = max((len(name) for name, _ in shown), default=0)
    return "\n".join([title, *(f"  {name:{width}}  {value}" for name, value in shown)])


def as_html(title: str, facts: Facts) -> str:
    """Writes the same as a small table for notebooks."""
    cells = "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
        f"<td style='text-align:left'>{html.escape(value)}</td></tr>"
        for name, value in _shown(facts)
    )
    return f"<div><b>{html.escape(title)}</b><table>{cells}</table></div>"


def _shown(facts: Facts) -> list[tuple[str, str]]:
    lines = [(name, " ".join(str(value).split())) for name, value in facts if value]
    return [(n, v if len(v) <= LIMIT else f"{v[: LIMIT - 1]}…") for n, v in lines]
