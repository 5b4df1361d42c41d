"""The options that say how a table is read; fit, predict and evaluate share them."""

import re
from typing import Annotated, Any

import typer

from ansatz.errors import UsageError


def _option(help: str, *names: str, metavar: str | None = None) -> Any:
    return typer.Option(
        *names,
        help=help,
        metavar=metavar,
        rich_help_panel="Reading the table",
        show_default=False,
    )


Delimiter = Annotated[
    str | None,
    _option("What separates the cells of a CSV file. Found out when not given.", metavar="CHAR"),
]
NoHeader = Annotated[bool | None, _option("The first line holds data, not names.", "--no-header")]
Names = Annotated[
    str | None, _option("Names of the columns, separated by commas.", metavar="A,B,...")
]
Comment = Annotated[str | None, _option("Lines that start with this are skipped.", metavar="CHAR")]
Missing = Annotated[
    list[str] | None,
    _option("A cell that means 'missing'. May be given several times.", metavar="TEXT"),
]
Decimal = Annotated[str | None, _option("The decimal sign, '.' by default.", metavar="CHAR")]
Encoding = Annotated[
    str | None,
    _option(
        "How the file spells its letters (utf-8, latin-1, utf-16). Found out when not given.",
        metavar="NAME",
    ),
]


Stream = Annotated[
    bool | None,
    _option(
        "Read the table block by block, images file by file, in bounded memory, or all at once. "
        "Default: by their size.",
        "--stream/--no-stream",
    ),
]
MemoryLimit = Annotated[
    str | None,
    _option(
        "What the table or the images may take in memory before they are streamed, like 4GB. "
        "Default: a quarter of what is free.",
        metavar="SIZE",
    ),
]


Pages = Annotated[
    str | None,
    _option(
        "What the pages of an image file (a TIFF stack) are. Default: as in the fit.",
        metavar="images|volume|first",
    ),
]
SkipCorrupt = Annotated[
    bool, _option("Images: leave out files that cannot be read.", "--skip-corrupt")
]


def words(text: str | None) -> list[str] | None:
    """Splits "A,B" at the commas; a name that holds a comma is quoted as in a CSV file.

    Example:
        >>> from ansatz.cli.reading import words
        >>> words('price,"size, m2"')
        ['price', 'size, m2']
    """
    import csv

    if text is None:
        return None
    row = next(csv.reader([text], skipinitialspace=True), [])
    return [word.strip() for word in row]


def reader_options(
    delimiter: str | None,
    no_header: bool | None,
    names: str | None,
    comment: str | None,
    missing: list[str] | None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> dict[str, Any]:
    """The keyword arguments of ``ansatz.data.read_table``: only those that were given.

    Example:
        >>> from ansatz.cli.reading import reader_options
        >>> reader_options(";", True, None, None, None)
        {'delimiter': ';', 'header': False}
    """
    given = {
        "delimiter": "\t" if delimiter in ("\\t", "tab") else delimiter,
        "header": False if no_header else None,
        "names": words(names),
        "comment": comment,
        "missing": missing or None,
        "decimal": decimal,
        "encoding": encoding,
    }
    return {key: value for key, value in given.items() if value is not None}


def whole_numbers(option: str, text: str) -> list[int]:
    """Whole numbers from 1 on, with ``x`` or commas between them.

    Example:
        >>> from ansatz.cli.reading import whole_numbers
        >>> whole_numbers("--size", "48,64"), whole_numbers("--size", "48x64")
        ([48, 64], [48, 64])
    """
    try:
        found = [int(word) for word in re.split("[x,]", text.lower())]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise UsageError(f"{option} takes whole numbers like 48x64, got '{text}'.")
    return found


def number_or_colour(option: str, text: str) -> int | str:
    """A whole number, or a colour as ``#rrggbb``.

    Example:
        >>> from ansatz.cli.reading import number_or_colour
        >>> number_or_colour("--unlabelled", "255"), number_or_colour("--unlabelled", "#00FF00")
        (255, '#00ff00')
    """
    if re.fullmatch("#[0-9a-f]{6}", text.lower()):
        return text.lower()
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"{option} takes a number, or a colour '#000000', got '{text}'.") from None
