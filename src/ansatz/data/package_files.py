"""Tables in the files of other programs: Excel, Stata, SPSS, SAS and R."""

import bz2
import gzip
import importlib
import io
import lzma
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ansatz.data.files import _GZIP_MAGIC, check_unpacked, check_zip
from ansatz.errors import DataError, MissingExtraError
from ansatz.storage.decoding import decoding

if TYPE_CHECKING:
    import pandas as pd

    Read = Callable[[Path, str | None, int], tuple[pd.DataFrame, list[str]]]

_PACKED: dict[bytes, Callable[..., Any]] = {
    _GZIP_MAGIC: gzip.open,
    b"BZ": bz2.open,
    b"\xfd7": lzma.open,
}


class PackageFile(NamedTuple):
    """A kind of file: the program that writes it, and what reads it."""

    program: str
    read: "Read"


def read_package_file(
    path: Path, member: str | None, limit_bytes: int
) -> "tuple[pd.DataFrame, list[str]]":
    """Reads a table of another program; value labels become levels.

    Args:
        path: the file; its ending decides which program wrote it.
        member: the sheet of a workbook, or the object of an R file; None takes the first sheet, or
            the only table.
        limit_bytes: what a packed file may unpack to.
    """
    kind = PACKAGE_FILES[path.suffix.lower()]
    with decoding(path, f"{kind.program} file"):
        return kind.read(path, member, limit_bytes)


def _import(package: str, what: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError:
        raise MissingExtraError(f"{what} files", "tables") from None


def _read_excel(
    path: Path, member: str | None, limit_bytes: int
) -> "tuple[pd.DataFrame, list[str]]":
    import pandas as pd

    new = zipfile.is_zipfile(path)
    _import("openpyxl" if new else "xlrd", "Excel")
    if new:
        check_zip(path, limit_bytes)
    quiet = None if new else {"logfile": io.StringIO()}  # xlrd prints what it guesses
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The xlrd engine is deprecated")  # still the one we ask
        book = pd.ExcelFile(path, engine="openpyxl" if new else "xlrd", engine_kwargs=quiet)
    with book:
        sheet = _choose(path, member, [str(name) for name in book.sheet_names], "sheet")
        found = pd.read_excel(book, sheet_name=sheet, na_values=[""], keep_default_na=False)
        others = len(book.sheet_names) - 1
    blank = found.columns.astype(str).str.match(r"Unnamed: \d+$") & found.isna().all().to_numpy()
    found = found.loc[:, ~blank].dropna(how="all").reset_index(drop=True)
    notes = [f"{path}: sheet '{sheet}'; another one: '{path.name}!SHEET'."] if others else []
    return found.infer_objects(), notes


def _read_labelled(reader: str, what: str) -> "Read":
    def read(path: Path, member: str | None, _: int) -> "tuple[pd.DataFrame, list[str]]":
        _choose(path, member, [], "table")
        frame, meta = getattr(_import("pyreadstat", what), reader)(str(path))
        notes = []
        for name, labels in meta.variable_value_labels.items():
            partly = _label(frame, name, labels)
            if partly:
                notes.append(f"column '{name}': {partly}.")
        return frame, notes

    return read


def _label(frame: "pd.DataFrame", name: str, labels: dict[Any, str]) -> str:
    """Puts labels in place of the values, if each has one; otherwise says which have."""
    import pandas as pd

    seen = frame[name].dropna().unique()
    if any(value not in labels for value in seen):
        found = [f"{value:g} '{labels[value]}'" for value in seen if value in labels]
        if not found:
            return ""
        return f"only some values have labels ({', '.join(found[:3])}): read as numbers"
    names = list(dict.fromkeys(str(label) for label in labels.values()))
    cells = [labels.get(value) for value in frame[name]]
    frame[name] = pd.Categorical(cells, categories=names)
    return ""


def _read_r(path: Path, member: str | None, limit_bytes: int) -> "tuple[pd.DataFrame, list[str]]":
    import pandas as pd

    reader = _import("pyreadr", "R")
    with path.open("rb") as file:
        opener = _PACKED.get(file.read(2))
    if opener is not None:
        check_unpacked(path, opener, limit_bytes)
    objects = {str(name): each for name, each in reader.read_r(str(path)).items()}
    tables = {name: each for name, each in objects.items() if isinstance(each, pd.DataFrame)}
    if not tables:
        raise DataError(f"{path} holds no data frame.")
    if member is None and len(tables) > 1:
        listed = ", ".join(tables)
        raise DataError(f"{path} holds several tables: {listed}. Name one: '{path.name}!NAME'.")
    frame = tables[_choose(path, member, list(tables), "table")]
    return frame.reset_index(drop=True), []


def _choose(path: Path, member: str | None, names: list[str], what: str) -> str:
    if member is None:
        return names[0] if names else ""
    if member not in names:
        listed = f" It has {', '.join(names[:10])}." if names else " It holds one table."
        raise DataError(f"{path}: no {what} '{member}'.{listed}")
    return member


PACKAGE_FILES = {
    ".xlsx": PackageFile("Excel", _read_excel),
    ".xls": PackageFile("Excel", _read_excel),
    ".dta": PackageFile("Stata", _read_labelled("read_dta", "Stata")),
    ".sav": PackageFile("SPSS", _read_labelled("read_sav", "SPSS")),
    ".zsav": PackageFile("SPSS", _read_labelled("read_sav", "SPSS")),
    ".sas7bdat": PackageFile("SAS", _read_labelled("read_sas7bdat", "SAS")),
    ".xpt": PackageFile("SAS", _read_labelled("read_xport", "SAS")),
    ".rds": PackageFile("R", _read_r),
    ".rdata": PackageFile("R", _read_r),
    ".rda": PackageFile("R", _read_r),
}
