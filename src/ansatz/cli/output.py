"""Everything that commands print and where they write: safe text, tables, JSON, results."""

import collections
import json
import math
import os
import shlex
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from ansatz.errors import ResourceError, UsageError

if TYPE_CHECKING:
    from rich.console import Console


# Controls, invisible formatters (bidirectional overrides among them), lone surrogates, separators.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def printable(text: object, limit: int | None = None) -> str:
    r"""``text`` on one line, with each character that could steer a terminal spelled out."""
    safe = "".join(_spelled(character) for character in str(text))
    if limit is not None and len(safe) > limit:
        return safe[: max(limit - 1, 0)] + "…"
    return safe


def _spelled(character: str) -> str:
    if unicodedata.category(character) not in _UNSAFE:
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def print_line(text: str = "", *, file: TextIO | None = None) -> None:
    """Prints one line of a result, safely."""
    print(printable(text), file=file or sys.stdout)


_noted: set[str] = set()  # notes and warnings of this command


def forget_notes() -> None:
    """Begins a command: what an earlier one of the same process noted may be noted again."""
    _noted.clear()


def print_note(text: str) -> None:
    """Prints one line beside the results: an error, or a note or warning that is new."""
    kind, found, sentence = text.partition(": ")
    if found and kind in ("note", "warning"):
        if sentence in _noted:
            return
        _noted.add(sentence)
    print(f"ansatz: {printable(' '.join(text.split()))}", file=sys.stderr)


def console() -> "Console":
    """Standard output as rich sees it: no markup, and no cutting when it is not a terminal."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else 10_000  # a pipe has no right margin
    return Console(
        file=sys.stdout, width=width, markup=False, highlight=False, emoji=False, soft_wrap=False
    )


def print_table(
    header: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    numbers: Sequence[int] = (),
    limit: int | None = 60,
) -> None:
    """Prints aligned columns; each cell is text from who knows where, and is made safe."""
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", show_header=any(header)
    )
    for position, name in enumerate(header):
        table.add_column(
            Text(printable(name, limit)),
            justify="right" if position in numbers else "left",
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(Text(printable(cell, limit)) for cell in row))
    paper = console()
    with paper.capture() as captured:
        paper.print(table)
    for line in captured.get().splitlines():
        print(line.rstrip())  # the last column's padding helps nobody


def number(value: object) -> str:
    """A metric for a table: four significant digits, a dash where it is undefined."""
    if value is None or (isinstance(value, float) and value != value):
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, float) and not 1000 <= abs(value) < 1e9:
        return f"{value:.4g}"
    # Years and small counts stay as they are.
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.0f}"


def plain(value: Any) -> Any:
    """``value`` as strict JSON can hold it: nan and infinities are null, arrays are lists."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):  # numpy and torch, without importing them
        return plain(value.tolist())
    return str(value)


def text_of(value: Any) -> str:
    r"""The document as text. A lone surrogate from a file's name is spelled out."""
    text = json.dumps(plain(value), allow_nan=False, ensure_ascii=False, indent=2)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def print_document(value: Any) -> None:
    """Writes the document to standard output."""
    sys.stdout.write(text_of(value) + "\n")


def require_free(path: Path, *, overwrite: bool, advice: str) -> None:
    """Refuses, before any work is done, a place that is taken or cannot be written."""
    try:
        taken = _is_there(path)
        parent = path.absolute().parent
        while not parent.exists() and parent != parent.parent:
            parent = parent.parent  # folders that are not there yet will be made
    except (OSError, ValueError) as error:  # too long, a loop of links, a NUL
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot write to '{path}': {reason}. Choose another path.") from None
    if taken and not overwrite:
        raise UsageError(f"'{path}' exists. {advice}")
    if not parent.is_dir():
        raise UsageError(f"cannot write to '{path}': '{parent}' is a file, not a folder.")
    if not os.access(parent, os.W_OK):
        raise ResourceError(
            f"cannot write to '{path}': no permission in '{parent}'. Choose another place: --out."
        )


def _is_there(path: Path) -> bool:
    """Not os.path.lexists, which takes a name that no disk can hold for one that is free."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def stem(data: str) -> str:
    """houses.csv.gz -> houses; a folder and a data set's name are their own stem."""
    return Path(data).absolute().name.split(".")[0] or "data"


_FIRST = ("nll", "crps", "rmse", "mae", "r2", "accuracy", "brier", "ece", "auc")


def print_fit(fit: Any) -> None:
    """Prints an ``ansatz.Fit``: results on stdout, notes on stderr."""
    if fit.columns:
        print_columns(fit.columns)
    for note in fit.notes:
        print_note(f"note: {note}")
    if fit.candidates:
        print_line()
        print_candidates(fit.candidates)
    parts = ("train", "valid", "test")
    rows = ", ".join(f"{fit.rows[part]:,} {part}" for part in parts if fit.rows.get(part))
    roles = fit.fitted.column_roles
    target = (
        "" if roles is None or not roles.outcome_name else f"{printable(roles.outcome_name, 80)}: "
    )
    print_line()
    print_line(
        f"{target}{fit.likelihood} likelihood, {fit.network or fit.inference} with "
        f"{fit.parameters:,} parameters, {rows}"
    )
    for key, value in fit.recipe.items():
        print_line(f"  {key}: {value}")
    trained = f"trained {fit.epochs:,} epochs; " if fit.epochs else ""
    print_line(f"{trained}everything took {number(float(fit.seconds))} s, seed {fit.seed}")
    if fit.log_likelihood is not None:
        print_line(f"log-likelihood {fit.log_likelihood:.3f} on the training rows")
    if any(value is not None for value in (fit.metrics or {}).values()):
        print_line()
        simple = {"linear": fit.linear, "constant": fit.constant, **fit.baselines}
        print_metrics({"model": fit.metrics, **simple})
    if fit.network == "linear" and not fit.fitted.has_failed:
        for line in f"\n{fit.summary()}".splitlines():
            print_line(line)
    if fit.folder is None:
        return
    folder = shlex.quote(str(fit.folder))
    print_line()
    print_line(f"model: {folder}")
    source = "" if fit.provenance is None else str(fit.provenance.source.path or "")
    new = fit.fitted.structure.new_data(fit.fitted, source)
    bounds = " --interval 0.9" * fit.fitted.outcome.has_interval(fit.fitted.likelihood)
    steps = [f"predict {folder} {new}{bounds}", f"inspect {folder}"]
    if fit.rows.get("test") and fit.provenance is not None:  # a report is of the test rows
        steps.insert(0, f"report {folder} --open")
    for place, step in enumerate(steps):
        print_line(f"{'       ' if place else 'next:  '}ansatz {step}")


def print_candidates(candidates: Sequence[Mapping[str, Any]]) -> None:
    """Prints how the likelihoods compare, best first."""
    rows = [
        [
            row["likelihood"],
            number(float(row["score"])),
            number(float(row["worse"])) if row["worse"] > 0 else "",
            number(float(row["error"])) if row["worse"] > 0 else "",
        ]
        for row in sorted(candidates, key=lambda row: row["worse"])
    ]
    header = ["likelihood", "out-of-fold log score", "worse by", "+-"]
    print_table(header, rows, numbers=range(1, 4))


def print_columns(columns: Sequence[Any]) -> None:
    """Prints what each column was taken for; a wide table is summed up by role."""
    from ansatz.data import describe_columns

    shown = columns[:40]
    print_table(["column", "role", "note"], describe_columns(shown))
    if len(columns) > len(shown):
        counts = collections.Counter(str(column.role) for column in columns[len(shown) :])
        more = ", ".join(f"{count} {role}" for role, count in counts.items())
        print_line(f"and {len(columns) - len(shown)} more columns: {more}")


def print_metrics(models: Mapping[str, Mapping[str, Any] | None]) -> None:
    """Prints one row per metric and one column per model; undefined is a dash."""
    shown = {name: metrics for name, metrics in models.items() if metrics}
    keys = dict.fromkeys([*_FIRST, *(key for metrics in shown.values() for key in metrics)])
    rows = [
        [key, *(number(metrics.get(key)) for metrics in shown.values())]
        for key in keys
        if any(metrics.get(key) is not None for metrics in shown.values())
    ]
    if rows:
        print_table(["metric", *shown], rows, numbers=range(1, len(shown) + 1))
