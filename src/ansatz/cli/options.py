"""Parameters of commands, made from the tables of options, and files of options."""

import inspect
import json
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, cast, get_args, get_origin

import typer

from ansatz.cli.names import complete
from ansatz.errors import AnsatzError, UsageError
from ansatz.fitting import FitOptions, Request
from ansatz.fitting.options import FitCommand, Option, declared
from ansatz.fitting.options.option import PANELS
from ansatz.fitting.request import defaults, validated

AGAIN = {  # what options of reading mean to a model that is there
    "pages": "What the pages of an image file (a TIFF stack) are. Default: as in the fit.",
    "masks": "Images: where the masks to evaluate by are. Default: as in the fit.",
}

F = TypeVar("F", bound=Callable[..., Any])


_EXAMPLES = 4  # that the short help shows


class ShortHelp(typer.core.TyperCommand):
    """A command whose ``--help`` shows the common options; ``--help-all`` shows every option."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Hides rare options while the page is written; the parser and the shell know them."""
        rare: frozenset[str] = getattr(self.callback, "rare", frozenset())
        hidden = [] if ctx.meta.get("ansatz.all") else [p for p in self.params if p.name in rare]
        for each in hidden:
            each.hidden = True  # type: ignore[attr-defined]  # of options
        self.epilog = f"More options: {ctx.command_path} --help-all" if hidden else None
        text = self.help
        if hidden and text is not None:  # examples are indented
            lines = text.splitlines()
            examples = [place for place, line in enumerate(lines) if line.startswith("    ")]
            self.help = "\n".join(lines[: examples[_EXAMPLES]] if examples[_EXAMPLES:] else lines)
        try:
            super().format_help(ctx, formatter)
        finally:
            self.help = text
            for each in hidden:
                each.hidden = False  # type: ignore[attr-defined]


def _help_all(context: typer.Context, wanted: bool) -> None:
    if wanted:
        context.meta["ansatz.all"] = True
        print(context.get_help(), end="")
        raise typer.Exit


_HELP_ALL = inspect.Parameter(
    "help_all",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool,
        typer.Option(
            "--help-all",
            callback=_help_all,
            is_eager=True,
            help="Show every option and exit.",
        ),
    ],
)


def takes(
    table: type, helps: Mapping[str, str] | None = None, rare: Collection[str] = ()
) -> Callable[[F], F]:
    """Lets a command take the options of a table: its last argument, ``given``, gets their values.

    What is not given on the command line is not in ``given``. ``--help`` shows the options that
    their table declares as common, and those of the command itself that are not ``rare``.
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
            own = words.keys() - options.keys() - {"help_all"}
            others = {name: words[name] for name in own}
            return command(**others, given=given)

        made = [_parameter(name, kind, option) for name, (kind, option) in options.items()]
        found = sorted([_HELP_ALL, *made, *own], key=_place)
        call.__signature__ = inspect.Signature(found)  # type: ignore[attr-defined]
        call.__annotations__ = {each.name: each.annotation for each in found}
        del call.__wrapped__
        uncommon = (name for name, (_, option) in options.items() if not option.common)
        call.rare = frozenset([*uncommon, *rare])  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return make


def _parameter(name: str, kind: Any, option: Option) -> inspect.Parameter:
    shown = typer.Option(
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
        annotation=Annotated[reads | None, shown],
    )


def _plain(kind: Any) -> Any:
    """The type that the command line reads: the first of several."""
    return get_args(kind)[0] if get_origin(kind) in (Union, UnionType) else kind


def _place(parameter: inspect.Parameter) -> tuple[bool, int]:
    """Arguments first, then options by their panels; within a panel the order stays."""
    (shown,) = (each for each in get_args(parameter.annotation)[1:])
    panel = getattr(shown, "rich_help_panel", None)
    is_option = isinstance(shown, typer.models.OptionInfo)
    return is_option, PANELS.index(panel) + 1 if panel in PANELS else 0


_OWN_TARGET = ("", ".npz", ".npy", ".nii", ".gz", ".xyz", ".extxyz")  # of images, molecules
_LARGEST = 1 << 20  # bytes; a configuration is written by hand


class FitConfig(NamedTuple):
    """Everything that ``ansatz fit`` was asked for."""

    request: Request
    processes: int = 1

    def to_dict(self) -> dict[str, Any]:
        """All options by name, those that were not given with their defaults."""
        table = declared(FitCommand)
        everything = {**defaults(FitCommand), **self.request.given, "processes": self.processes}
        shown = {n: v for n, v in everything.items() if table[n].option.panel is not None}
        return {"data": self.request.data, **shown}


def read_config(path: Path) -> dict[str, Any]:
    """The mapping in a TOML or JSON file; it can hold data only, and names no Python object."""
    import tomllib

    try:
        if path.stat().st_size > _LARGEST:
            raise UsageError(f"--config {path}: larger than 1 MB; this is not a configuration.")
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"--config {path}: expected UTF-8 text.") from None
    except OSError as error:
        raise UsageError(f"--config {path}: {error.strerror}.") from None
    try:
        is_json = path.suffix.lower() == ".json"
        content = json.loads(text, object_pairs_hook=_once) if is_json else tomllib.loads(text)
    except RecursionError:
        raise UsageError(f"--config {path}: nested too deeply.") from None
    except ValueError as error:  # both parsers' errors are ValueErrors that name the line
        raise UsageError(f"--config {path}: {error}") from None
    if not isinstance(content, dict):
        raise UsageError(f"--config {path}: expected a table of keys and values.")
    return content


def merged(content: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Puts what the command line gives in place of a file's content; mappings are joined."""
    found = dict(content)
    for name, value in given.items():
        joined = isinstance(value, dict) and isinstance(found.get(name), dict)
        if value is not None:
            found[name] = {**found[name], **value} if joined else value
    return found


def make_config(given: Mapping[str, Any], source: str) -> FitConfig:
    """Checks the keys and values of a fit; the first that is wrong is named."""
    options = {"progress": "auto", **given}
    data = options.pop("data", None)
    if data is None:
        raise UsageError(f"{source}: DATA is missing.")
    if not isinstance(data, str) or not data:
        raise UsageError(f"{source}: data: expected a text, got {str(data)[:80]!r}.")
    found = validated(options, FitCommand, source)
    processes = found.pop("processes", 1)
    require_target(found, data, source)
    return FitConfig(Request(data, cast(FitOptions, found)), processes)


def require_target(given: Mapping[str, Any], data: str, source: str) -> None:
    """Rejects a fit without a target where data do not have their own."""
    from ansatz import outcomes  # names alone: no member is loaded

    names = ("target", "lower", "masks", "labels", *outcomes.by_option)
    says_target = any(given.get(name) for name in names)
    says_target = says_target or given.get("task") in outcomes.on_structure  # that x holds
    says_target = says_target or given.get("task") in outcomes.without_target
    says_target = says_target or data.lower().removesuffix(".gz").endswith(tuple(outcomes.by_file))
    if not says_target and not has_own_target(data):
        raise UsageError(f"{source}: --target COLUMN is missing.{_columns(data, given)}")


def _columns(data: str, given: Mapping[str, Any]) -> str:
    """Lists the columns that a target may be."""
    if not Path(data).exists():  # answered without libraries
        import difflib

        folder = Path(data).parent
        names = [each.name for each in folder.iterdir()] if folder.is_dir() else []
        near = difflib.get_close_matches(Path(data).name, names, n=1)
        hint = f" Did you mean {Path(data).with_name(near[0])}?" if near else ""
        return f" {data} does not exist.{hint}"
    from ansatz.data.column_names import read_column_names
    from ansatz.fitting.column_roles import listed_columns

    table = declared(FitCommand).items()
    options = {name: given[name] for name, each in table if each.option.reader and name in given}
    try:
        return f" {listed_columns(read_column_names(data, **options))}"
    except (AnsatzError, ValueError, OSError):  # what is wrong with the file is another question
        return ""


def has_own_target(data: str) -> bool:
    """Tests whether data may know their own target, as folders of images and image sets do."""
    return Path(data).suffix.lower() in _OWN_TARGET


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key '{twice}' appears twice")
    return found
