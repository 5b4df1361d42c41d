"""One option: what it means, how the command line spells it, which values it takes."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from ansatz.errors import ModelError, UsageError

MODEL, TRAINING, ROWS, RUN = "The model", "The training", "Rows and columns", "The run"
IMAGES, READING = "Images, signals and volumes", "Reading the table"
TEXTS, FORECASTS, GRAPHS = "Texts and sequences", "Forecasts", "Graphs"
SETS = "Sets and point clouds"
PANELS = (
    "The search",
    MODEL,
    TRAINING,
    ROWS,
    IMAGES,
    TEXTS,
    FORECASTS,
    SETS,
    GRAPHS,
    RUN,
    READING,
)  # in the order of --help

F = TypeVar("F", bound=Callable[..., Any])


class Option(NamedTuple):
    """An option: its help, its spelling on the command line and the values that it takes.

    Args:
        help: one or two sentences.
        panel: of ``--help``; None keeps the option from the command line.
        default: what holds where nothing is given.
        flags: how the command line spells it, where not ``--name``.
        metavar: what stands for its value in ``--help``.
        complete: the kind of names that the shell offers.
        reads: what the command line reads before ``parse``, where not the option's own type.
        parse: from what the command line read to the value.
        limits: of a number or a text, and of those in a list, as pydantic's ``Field`` takes them.
        listed: whether one value alone is a list of one.
        check: raises what is wrong with a value of the right type.
        reader: whether it is an argument of what reads the data.
        decides: whether another value may give another model.
        common: whether ``--help`` shows it; ``--help-all`` shows every option.

    Example:
        >>> from ansatz.fitting.options import Option
        >>> Option("Columns to leave out.", metavar="A,B,...").default is None
        True
    """

    help: str
    panel: str | None = None
    default: Any = None
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    complete: str | None = None
    reads: Any = None
    parse: Callable[[Any], Any] | None = None
    limits: Mapping[str, Any] = {}
    listed: bool = False
    check: Callable[[Any], None] | None = None
    reader: bool = False
    decides: bool = True
    common: bool = False

    def flag(self, name: str) -> str:
        """The spelling of the option ``name`` on the command line."""
        return self.flags[0] if self.flags else f"--{name.replace('_', '-')}"

    def words(self, name: str, value: Any) -> list[str]:
        """The words of the command line that give the option a value."""
        flag = self.flag(name)
        if self.reads is bool:
            return [flag]
        if isinstance(value, Mapping):
            return [word for key, each in value.items() for word in (flag, f"{key}={_json(each)}")]
        if self.reads == list[str]:
            return [word for each in value for word in (flag, str(each))]
        if isinstance(value, float):
            return [flag, f"{value:g}"]
        return [flag, ",".join(map(str, value)) if isinstance(value, list) else str(value)]


def _json(value: Any) -> str:
    import json

    return value if isinstance(value, str) else json.dumps(value)


class Declared(NamedTuple):
    """An option with its type."""

    type: Any
    option: Option


@cache
def declared(table: type) -> dict[str, Declared]:
    """Lists the options that a table declares, by name, in its order.

    Example:
        >>> from ansatz.fitting.options import FitOptions, declared
        >>> declared(FitOptions)["group"].option.help
        'Rows alike in this column stay on one side.'
    """
    found = {}
    for name, hint in get_type_hints(table, include_extras=True).items():
        assert get_origin(hint) is Annotated, f"{table.__name__}.{name} has no Option"
        kind, option = get_args(hint)
        found[name] = Declared(kind, option)
    return found


def with_signature(table: type) -> Callable[[F], F]:
    """Shows the options of a table in the signature and the docstring of a function.

    The type checker reads ``**options: Unpack[table]``; this is for ``help`` and notebooks.
    """

    def show(function: F) -> F:
        own = inspect.signature(function)
        first = [each for each in own.parameters.values() if each.kind is not each.VAR_KEYWORD]
        options = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=kind
            )
            for name, (kind, option) in declared(table).items()
        ]
        lines = "\n".join(
            f"        {name}: {each.option.help}" for name, each in declared(table).items()
        )
        function.__doc__ = f"{function.__doc__ or ''}\n    Options:\n{lines}\n    "
        function.__signature__ = own.replace(parameters=[*first, *options])  # type: ignore[attr-defined]
        return function

    return show


def words(text: str) -> list[str]:
    """Splits "A,B" at the commas; a name that holds a comma is quoted as in a CSV file."""
    import csv

    row = next(csv.reader([text], skipinitialspace=True), [])
    return [word.strip() for word in row]


def separator(text: str) -> str:
    r"""Reads a delimiter; a tab may be typed as a word."""
    return "\t" if text in ("\\t", "tab") else text


def sides(text: str) -> list[int]:
    """Reads whole numbers from 1 on, with ``x`` or commas between them."""
    try:
        found = [int(word) for word in re.split("[x,]", text.lower())]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise UsageError(f"--size takes whole numbers like 48x64, got '{text}'.")
    return found


def whole_numbers(text: str) -> list[int]:
    """Reads whole numbers with commas between them."""
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise UsageError(f"expected whole numbers like 8640,2880,2880, got '{text}'.") from None


def widths(text: str) -> str | list[float]:
    """Reads numbers > 0 with commas between them, or the word ``none``."""
    if text.strip().lower() == "none":
        return "none"
    try:
        found = [float(word) for word in re.split("[x,]", text.lower())]
    except ValueError:
        found = []
    if not 1 <= len(found) <= 3 or not all(0 < width < float("inf") for width in found):
        raise UsageError(f"--spacing takes 'none', or widths > 0 like 1,1,2, got '{text}'.")
    return found


def number_or_colour(text: str) -> int | str:
    """Reads a whole number, or a colour as ``#rrggbb``."""
    if re.fullmatch("#[0-9a-f]{6}", text.lower()):
        return text.lower()
    try:
        return int(text)
    except ValueError:
        raise UsageError(
            f"--unlabelled takes a number, or a colour '#000000', got '{text}'."
        ) from None


def number_or_word(text: str) -> int | str:
    """Reads a whole number where the text is one."""
    return int(text) if text.isdigit() else text


def read_roles(pairs: Sequence[str]) -> dict[str, str]:
    """Reads COL=ROLE words."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.rpartition("=")
        if not key or not equals:
            raise UsageError(f"expected --role COL=ROLE, got '{pair}'.")
        found[key] = value
    return found


def read_priors(pairs: Sequence[str]) -> dict[str, str]:
    """Reads NAME=PRIOR words."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.rpartition("=")
        if not key or not equals:
            raise UsageError(f"expected --prior NAME=PRIOR, got '{pair}'.")
        found[key] = value
    return found


def read_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """Reads KEY=VALUE words whose values are JSON."""
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise UsageError(f"expected --set KEY=VALUE, got '{pair}'.")
        found[key] = _json_value(value)
    return found


def refuse_weights_file(column: str) -> None:
    """Refuses a file of weights where a column of weights is meant."""
    if _is_weights_file(column):
        raise UsageError(f"--weights names a column; to begin with a file: --pretrained {column}.")


def require_weights(path: str) -> None:
    """Refuses weights that are not there."""
    if not Path(path).exists():
        kind = "file" if _is_weights_file(path) else "file or folder"
        raise ModelError(f"{path}: no such {kind} of weights. Check its name.")


def _is_weights_file(path: str) -> bool:
    return Path(path).suffix.lower() in (".safetensors", ".pth", ".pt")


def _json_value(text: str) -> Any:
    """JSON where it is JSON, else the text itself: activation=relu needs no quotes."""
    import json

    try:
        return json.loads(text, parse_constant=_no_constant)
    except ValueError:
        return text


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a JSON number")
