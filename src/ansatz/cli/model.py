"""What predict, evaluate and inspect open: a model, and a table that fits it."""

import difflib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ansatz.cli.terminal import remark
from ansatz.errors import DataError, ModelError

if TYPE_CHECKING:
    import pandas as pd


def open_model(folder: Path) -> Any:
    """The estimator in a folder that ``ansatz fit`` wrote; nothing in it is ever executed.

    Example:
        >>> from pathlib import Path
        >>> from ansatz.cli.model import open_model
        >>> open_model(Path("no-such-model"))
        Traceback (most recent call last):
        ...
        ansatz.errors.ModelError: no-such-model: no such folder. A model is what ansatz fit wrote.
    """
    try:
        there = folder.is_dir()
    except (OSError, ValueError):  # too long, a NUL
        there = False
    if not there:
        what = "not a folder" if folder.is_file() else "no such folder"
        raise ModelError(f"{folder}: {what}. A model is what ansatz fit wrote.")
    import ansatz

    return ansatz.load(folder)


class Reading(NamedTuple):
    """How the data for a model are read.

    Args:
        structure: what the model was fitted to.
        options: of what reads such data.
        stream: whether to read a table block by block; None by its size.
        memory_limit: what it may take.

    Example:
        >>> from ansatz.cli.model import Reading
        >>> Reading("vector", {}, False, None).why_a_stream("houses.csv") is None
        True
    """

    structure: str
    options: dict[str, Any]
    stream: bool | None
    memory_limit: str | None

    def why_a_stream(self, data: str) -> str | None:
        """Says why a table is read block by block; None where it is read at once."""
        from ansatz.data.streams.available import reason_to_stream

        return reason_to_stream(data, stream=self.stream, memory_limit=self.memory_limit)


def reading_for(estimator: Any, given: Mapping[str, Any]) -> Reading:
    """Sorts what the command line says about reading data; options of other data are refused.

    Args:
        estimator: the model.
        given: options of :class:`~ansatz.fitting.options.tables.ReadingOutcomes`.

    Example:
        >>> from types import SimpleNamespace
        >>> from ansatz.cli.model import reading_for
        >>> from ansatz.spec import InputSpec
        >>> preprocessor = SimpleNamespace(spec=InputSpec.of(3))
        >>> model = SimpleNamespace(model_=SimpleNamespace(preprocessor=preprocessor))
        >>> reading_for(model, {"delimiter": ";", "stream": False}).options
        {'delimiter': ';'}
    """
    from ansatz.fitting.options.tables import ReadingOutcomes, refuse_foreign
    from ansatz.fitting.request import validated

    structure = str(estimator.model_.preprocessor.spec.structure)
    refuse_foreign(given, structure)
    options = validated(given, ReadingOutcomes, "ansatz")
    stream, limit = options.pop("stream", None), options.pop("memory_limit", None)
    if structure == "grid":  # its reader decides what stays in files
        options |= _memory_limit(stream, limit)
    return Reading(structure, options, stream, limit)


def _memory_limit(stream: bool | None, limit: str | None) -> dict[str, Any]:
    from ansatz.data.streams.available import parse_bytes

    if stream is not None:
        return {"memory_limit": 1 if stream else sys.maxsize}
    return {} if limit is None else {"memory_limit": parse_bytes(limit)}


class Opened(NamedTuple):
    """A table with where it came from, for messages.

    Example:
        >>> import pandas as pd
        >>> from ansatz.cli.model import Opened
        >>> Opened(pd.DataFrame({"a": [1]}), "new.csv").origin
        'new.csv'
    """

    frame: "pd.DataFrame"
    origin: str


def open_table(data: str, options: Mapping[str, Any], estimator: Any = None) -> Opened:
    """The rows of a file, or of a data set by its name; a header without rows is a table too.

    Columns that ``estimator`` read as text stay text, and those it does not use may hold anything.

    Example:
        >>> from ansatz.cli.model import open_table
        >>> open_table("no-such-file.csv", {})
        Traceback (most recent call last):
        ...
        ansatz.errors.DataError: ...
    """
    from ansatz import data as tables

    if data in tables.names() and not Path(data).exists():
        return Opened(tables.load(data).frame, data)
    known = {} if estimator is None else reading_of(estimator)
    table = tables.read_table(data, allow_empty=True, **known, **options)
    for note in table.notes:
        remark(f"note: {note}")
    return Opened(table.frame, table.origin)


def reading_of(estimator: Any) -> dict[str, Any]:
    """How the model's columns are read: which are words, and in which a word is an error.

    Example:
        >>> from types import SimpleNamespace
        >>> from ansatz.cli.model import reading_of
        >>> preprocessor = SimpleNamespace(text_columns=["zip"])
        >>> reading_of(SimpleNamespace(model_=SimpleNamespace(preprocessor=preprocessor)))
        {'text': ['zip'], 'strict': None}
    """
    return {"text": text_columns(estimator), "strict": _used_columns(estimator)}


def text_columns(estimator: Any) -> list[str]:
    """The columns that the model read as text: a file whose cells look like numbers keeps them so.

    Example:
        >>> from types import SimpleNamespace
        >>> from ansatz.cli.model import text_columns
        >>> preprocessor = SimpleNamespace(text_columns=["zip"])
        >>> text_columns(SimpleNamespace(model_=SimpleNamespace(preprocessor=preprocessor)))
        ['zip']
    """
    found: list[str] = estimator.model_.preprocessor.text_columns
    return found


def prepare(estimator: Any, table: Opened, *, quiet: bool = False) -> "pd.DataFrame":
    """The table as the model expects it: its columns are found by name, in any order.

    A column that is missing is an error, unless the model left it out of its features; one that
    the model does not know is ignored, and said unless ``quiet``.

    Example:
        >>> from types import SimpleNamespace
        >>> import pandas as pd
        >>> from ansatz.cli.model import Opened, prepare
        >>> model = SimpleNamespace(feature_names_in_=["area"])
        >>> prepare(model, Opened(pd.DataFrame({"aera": [1]}), "new.csv"))
        Traceback (most recent call last):
        ...
        ansatz.errors.DataError: new.csv: no column 'area', which the model needs. Is it 'aera'? ...
    """
    frame = table.frame
    known = getattr(estimator, "feature_names_in_", None)
    if known is None:  # trained on an array: its columns have no names to go by
        return frame
    columns = getattr(estimator, "columns_", None) or ()
    unused = {column.name for column in columns if not column.used}
    frame = frame.assign(**{name: float("nan") for name in unused if name not in frame.columns})
    for name in map(str, known):
        if name not in frame.columns:
            near = difflib.get_close_matches(name, map(str, frame.columns), n=1)
            hint = f" Is it '{near[0]}'? Rename it." if near else ""
            raise DataError(f"{table.origin}: no column '{name}', which the model needs.{hint}")
    if not quiet:
        _say_what_is_ignored(estimator, frame, table.origin)
    return frame


def _used_columns(estimator: Any) -> set[str] | None:
    """Features, target, weights and so on by name; None for a model of columns without names."""
    if not hasattr(estimator, "feature_names_in_"):
        return None
    uses = getattr(estimator, "uses_", None)
    special = [] if uses is None else list(uses.model_dump().values())
    used = {
        name for names in special for name in ([names] if isinstance(names, str) else names or ())
    }
    return used | set(map(str, estimator.feature_names_in_))


def _say_what_is_ignored(estimator: Any, frame: "pd.DataFrame", origin: str) -> None:
    used = _used_columns(estimator) or ()
    extra = [str(name) for name in frame.columns if str(name) not in used]
    if extra:
        shown = ", ".join(extra[:5]) + (", ..." if len(extra) > 5 else "")
        remark(f"note: {origin}: columns that the model does not know are ignored: {shown}")
