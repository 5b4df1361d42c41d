"""A data set explained: rows, columns, target, source, licence, and the command that fits it."""

from typing import Any

from ansatz.cli.claims import titled, wrapped
from ansatz.cli.formula import plain_text
from ansatz.cli.output import printable


def dataset_document(name: str) -> dict[str, Any]:
    """The document of ``ansatz data show NAME --json``."""
    from ansatz.data import describe

    found = describe(name)
    return {"kind": "data set", **found._asdict(), "fit": f"ansatz fit {name}"}


def dataset_page(name: str) -> str:
    """The page of ``ansatz data show NAME``."""
    from ansatz.data import describe

    found = describe(name)
    parts = [f"{name} (data set)", wrapped(plain_text(found.summary))]
    if found.note:
        parts.append(wrapped(plain_text(found.note)))
    rows = "" if found.rows is None else f"{found.rows:,}"
    parts += [
        titled("Examples" if found.images else "Rows", rows),
        titled("Target", _target(found.question)),
        titled("Columns", wrapped(", ".join(found.columns))),
        titled("Source", wrapped(found.source)),
        titled("Licence", wrapped(found.license)),
        titled("Fit it", f"ansatz fit {name}\nansatz.fit({name!r})"),
        titled("Load it", f"ansatz.data.load({name!r})"),
        titled("Reference", wrapped(found.reference)),
    ]
    text = "\n\n".join(part for part in parts if part.strip())
    return "\n".join(printable(line) for line in text.splitlines())


def _target(question: dict[str, Any]) -> str:
    """The target, and the other options that the data set brings."""
    from ansatz.fitting.options import FitCommand, declared

    flags = declared(FitCommand)
    words = ", ".join(question.get("target", ()))
    for option, value in question.items():
        if option == "options":
            words += "".join(f"; --set {key}={each}".lower() for key, each in value.items())
        elif option != "target":
            listed = ",".join(map(str, value)) if isinstance(value, list) else value
            words += f"; {flags[option].option.flag(option)} {listed}"
    return words.removeprefix("; ")
