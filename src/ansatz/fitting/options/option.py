"""One option: what it means, how the command line spells it, which values it takes."""

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

MODEL, ROWS, RUN = "The model", "Rows and columns", "The run"
IMAGES, READING = "Images, signals and volumes", "Reading the table"
PANELS = ("The search", MODEL, ROWS, IMAGES, RUN, READING)  # in the order of --help

F = TypeVar("F", bound=Callable[..., Any])


class Option(NamedTuple):
    """What is said about an option beside its name and its type.

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

    def flag(self, name: str) -> str:
        """How the command line spells the option called ``name``."""
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

    Args:
        table: a ``TypedDict`` whose values are ``Annotated[type, Option(...)]``.

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
