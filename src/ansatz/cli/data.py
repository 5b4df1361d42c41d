"""ansatz data: data sets by name."""

from typing import Annotated

import typer

from ansatz.cli.list import list_names
from ansatz.cli.names import complete
from ansatz.cli.output import print_document, print_line
from ansatz.cli.show import show as show_name

app = typer.Typer(help="Data sets by name: get, list, show.", no_args_is_help=False)

Name = Annotated[
    str, typer.Argument(help="A data set's name.", autocompletion=complete("datasets"))
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@app.command("get")
def get(name: Name, as_json: Json = False) -> None:
    """Find a data set, or download and verify it; print where it is.

    Searches $ANSATZ_DATA, then the user's cache, and only then downloads.

    Example:
        ansatz data get abalone
    """
    from ansatz.data import fetch

    path = fetch(name)
    if as_json:
        print_document({"name": name, "path": path})
    else:
        print_line(str(path))


@app.command("list")
def list_datasets(as_json: Json = False) -> None:
    """List the data sets.

    Example:
        ansatz data list
        ansatz data list --json
    """
    list_names("datasets", as_json)


@app.command("show")
def show(name: Name, as_json: Json = False) -> None:
    """Explain one data set: rows, columns, source, licence.

    Example:
        ansatz data show abalone
    """
    show_name(name, "datasets", as_json)
