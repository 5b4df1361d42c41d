"""ansatz tokens: the tokens that a model of texts reads."""

from pathlib import Path
from typing import Annotated

import typer

from ansatz.cli.output import print_document
from ansatz.errors import UsageError


def tokens(
    model: Annotated[Path, typer.Argument(help="The folder that ansatz fit wrote.")],
    text: Annotated[str, typer.Argument(help="A text.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show the tokens that a model cuts a text into; [UNK] was not in its training texts.

    Example:
        ansatz tokens reviews-model "a fine film"
    """
    from ansatz.cli.opening import open_model

    made = getattr(open_model(model).model_.encoder, "tokens", None)
    if made is None:
        raise UsageError(f"{model} is not a model of texts: it has no tokens.")
    found = made.split(text)
    if as_json:
        print_document({"tokens": found})
    else:
        print("\n".join(found))
