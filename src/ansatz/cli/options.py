"""Parameters of commands, made from the tables of options."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import typer

from ansatz.cli.completion import complete
from ansatz.fitting.options import Option, declared
from ansatz.fitting.options.option import PANELS

AGAIN = {  # what options of reading mean to a model that is there
    "pages": "What the pages of an image file (a TIFF stack) are. Default: as in the fit.",
    "masks": "Images: where the masks to evaluate by are. Default: as in the fit.",
}

F = TypeVar("F", bound=Callable[..., Any])


def takes(table: type, helps: Mapping[str, str] | None = None) -> Callable[[F], F]:
    """Lets a command take the options of a table: its last argument, ``given``, gets their values.

    What is not given on the command line is not in ``given``.

    Args:
        table: a ``TypedDict`` of options.
        helps: in place of the table's, for options that mean something else to this command.
    """
    options = {
        name: (kind, option._replace(help=(helps or {}).get(name, option.help)))
        for name, (kind, option) in declared(table).items()
        if option.panel is not None
    }

    def make(command: F) -> F:
        own = [
            each.replace(kind=each.KEYWORD_ONLY)
            for each in inspect.signature(command).parameters.values()
            if each.name != "given"
        ]

        @wraps(command)
        def call(**words: Any) -> Any:
            given = {
                name: options[name][1].parse(words[name])  # type: ignore[misc]
                if options[name][1].parse
                else words[name]
                for name in options
                if words[name] is not None and words[name] != []
            }
            others = {name: value for name, value in words.items() if name not in options}
            return command(**others, given=given)

        made = [_parameter(name, kind, option) for name, (kind, option) in options.items()]
        found = sorted([*made, *own], key=_place)
        call.__signature__ = inspect.Signature(found)  # type: ignore[attr-defined]
        call.__annotations__ = {each.name: each.annotation for each in found}
        del call.__wrapped__
        return call  # type: ignore[return-value]

    return make


def _parameter(name: str, kind: Any, option: Option) -> inspect.Parameter:
    said = typer.Option(
        *(option.flags or (option.flag(name),)),
        help=option.help,
        rich_help_panel=option.panel,
        metavar=option.metavar,
        show_default=False,
        autocompletion=None if option.complete is None else complete(option.complete),
    )
    reads = option.reads or _plain(kind)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,  # not given: then --config may give it
        annotation=Annotated[reads | None, said],
    )


def _plain(kind: Any) -> Any:
    """The type that the command line reads: the first of several."""
    return get_args(kind)[0] if get_origin(kind) in (Union, UnionType) else kind


def _place(parameter: inspect.Parameter) -> tuple[bool, int]:
    """Arguments first, then options by their panels; within a panel the order stays."""
    (said,) = (each for each in get_args(parameter.annotation)[1:])
    panel = getattr(said, "rich_help_panel", None)
    is_option = isinstance(said, typer.models.OptionInfo)
    return is_option, PANELS.index(panel) + 1 if panel in PANELS else 0
