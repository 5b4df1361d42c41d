"""ansatz data: data sets by name."""

from typing import Annotated

import typer

from ansatz.cli.list import list_names
from ansatz.cli.names import complete
from ansatz.cli.output import print_document, print_line, print_table
from ansatz.cli.show import show as show_name

app = typer.Typer(
    help="Data sets by name: get, list, show; describe any table.", no_args_is_help=False
)

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


@app.command("describe")
def describe(
    data: Annotated[str, typer.Argument(help="A table's file, or a data set's name.")],
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="COL", help="Divide the rows by its levels or tertiles."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Describe the columns of a table, by an outcome if one is named: "Table 1" of a study.

    Example:
        ansatz data describe breast-cancer --by diagnosis
    """
    from pathlib import Path

    from ansatz import data as ansatz_data

    named = data in ansatz_data.names() and not Path(data).exists()
    frame = ansatz_data.load(data).frame if named else ansatz_data.read_table(data).frame
    found = ansatz_data.table_one(frame, by)
    if as_json:
        print_document({"data": data, "by": by, "table": found.to_dict(orient="records")})
    else:
        print_table(list(found.columns), found.to_numpy().tolist())
