"""The request of a fit: the data, and the validated options."""

import copy
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Union, cast, get_args, get_origin

from ansatz.errors import UsageError
from ansatz.fitting.options.commands import (
    FitOptions,
    FoldOptions,
    InferenceSettings,
    NetworkSettings,
    OutcomeOptions,
    OutcomeSettings,
    TrainingSettings,
    ValidationOptions,
)
from ansatz.fitting.options.generative import GenerativeOptions, GenerativeSettings
from ansatz.fitting.options.graph import GraphOptions
from ansatz.fitting.options.grid import GridOptions, GridSettings, MaskSettings
from ansatz.fitting.options.links import TripleOptions
from ansatz.fitting.options.molecule import MoleculeOptions
from ansatz.fitting.options.option import Declared, Option, declared
from ansatz.fitting.options.sequence import (
    PairOptions,
    QuestionOptions,
    QuestionSettings,
    SequenceOptions,
    SequenceSettings,
)
from ansatz.fitting.options.series import SeriesOptions
from ansatz.fitting.options.sets import PointOptions, PointSettings, SetOptions, SetSettings
from ansatz.fitting.options.transfer import (
    AdapterOptions,
    AdapterSettings,
    TransferOptions,
    TransferSettings,
)
from ansatz.fitting.options.vector import VectorOptions, VectorSettings
from ansatz.registry import load

if TYPE_CHECKING:
    from pydantic import BaseModel

    from ansatz.fitting.column_roles import ColumnRoles


IN_MEMORY = "(in memory)"  # what a record says of a table that only the caller has
_PACKAGES = {  # of the names that an option takes
    "inferences": "inference",
    "generators": "generative",
    **{kind: kind for kind in ("likelihoods", "networks", "outcomes", "structures")},
}
_OF_TEXT = {"min_length", "pattern"}
_SEQUENCE, _MAPPING = get_origin(Sequence[int]), get_origin(Mapping[str, int])


class Request(NamedTuple):
    """The request of a fit: its data and the options that were given.

    Args:
        data: a table or grids, or where they are.
        given: the options that were given and are not the default.

    Example:
        >>> from ansatz.fitting import Request
        >>> request = Request.of("houses.csv", {"target": "price", "seed": 0})
        >>> request.given, request.options["inference"]
        ({'target': ['price']}, 'auto')
    """

    data: Any
    given: FitOptions

    @classmethod
    def of(cls, data: Any, given: Mapping[str, Any], source: str = "ansatz.fit") -> "Request":
        """Validates what was given.

        Args:
            data: a table or grids, or where they are.
            given: options by name; None is not given.
            source: what messages call the call, the command or the file.
        """
        return cls(data, cast(FitOptions, validated(given, FitOptions, source)))

    @property
    def options(self) -> FitOptions:
        """All options: those given, and the defaults of the others."""
        return cast(FitOptions, {**defaults(FitOptions), **self.given})

    def but(self, **changes: Any) -> "Request":
        """Returns the request with other options."""
        return self._replace(given=cast(FitOptions, {**self.given, **changes}))

    def reader(self) -> dict[str, Any]:
        """The options that were given to what reads the data."""
        table = declared(FitOptions)
        return {name: value for name, value in self.given.items() if table[name].option.reader}

    def memory(self) -> str | int | None:
        """The memory that data may take: 1 byte for a stream, any number without one."""
        stream = self.options["stream"]
        if stream is None:
            return self.options["memory_limit"]
        return 1 if stream else sys.maxsize

    def column_roles(self) -> "ColumnRoles":
        """The roles of the columns that are not features."""
        from ansatz.fitting.column_roles import ColumnRoles

        options = cast(dict[str, Any], self.options)
        return ColumnRoles(**{n: options[n] for n in ColumnRoles.model_fields if n in options})

    def settings(self) -> dict[str, Any]:
        """The options of network, likelihood and training; ``owner.key`` is the key of its owner.

        Those of the likelihood and of networks other than the default keep their owner's name:
        their constructors check them.
        """
        # Settings that have a flag of their own; --folds is not the setting of that name, and
        # options of reading (classes of masks) are not.
        own = fit_settings() - declared(FoldOptions).keys() - self.reader().keys()
        found: dict[str, Any] = {k: v for k, v in self.given.items() if k in own}
        for key, value in (self.given.get("options") or {}).items():
            owner, dot, name = key.partition(".")
            if dot and owner not in {*OWNERS, "likelihood"}:
                known = ", ".join([*OWNERS, "likelihood"])
                raise UsageError(f"--set {key}: nobody is called '{owner}'. Known: {known}.")
            if dot and owner not in ("network", "likelihood") and name not in settings_of(owner):
                known = ", ".join(sorted(settings_of(owner)))
                raise UsageError(f"--set {key}: '{name}' is not an option of {owner}: {known}.")
            declares = bool(dot) and owner != "likelihood" and name in settings_of(owner)
            found[name if declares else key] = value
        return found

    def check(self, structure: str) -> None:
        """Refuses options of other structures, and what the owners of options refuse."""
        refuse_foreign(self.given, structure)
        for name, value in self.given.items():
            check = declared(FitOptions)[name].option.check
            if check is not None:
                check(value)

    def record(self) -> dict[str, Any]:
        """The options that decide the model, as JSON can hold them."""
        from ansatz.storage.json_file import plain

        table = declared(FitOptions)
        kept = {name: value for name, value in self.given.items() if table[name].option.decides}
        if not isinstance(kept.get("validation_data", ""), str | Path):
            kept["validation_data"] = IN_MEMORY
        return {name: plain(value) for name, value in kept.items()}

    def command(self, place: str) -> str:
        """The command that asks for the same.

        Args:
            place: where the data are, as the shell takes it.
        """
        import shlex

        table, words = declared(FitOptions), ["ansatz", "fit"]
        for name, value in self.given.items():
            if table[name].option.panel is not None and value not in (None, []):
                words += table[name].option.words(name, value)
        return " ".join([*words[:2], place, *map(shlex.quote, words[2:])])

    def python(self, place: str) -> str:
        """The line of Python that asks for the same.

        Args:
            place: the data, as Python takes them.
        """
        words, given = [place], cast(dict[str, Any], self.given)
        for name, value in given.items():
            if value not in (None, [], {}):
                single = name == "target" and isinstance(value, list) and len(value) == 1
                words.append(f"{name}={(value[0] if single else value)!r}")
        return f"ansatz.fit({', '.join(words)})"


def _with_target(given: dict[str, Any], source: str) -> dict[str, Any]:
    """Takes the target from the left side of the formula."""
    from ansatz.linear import split_formula

    named = split_formula(given["formula"]).target
    if named and given.get("target", named) != named:
        raise UsageError(
            f"{source}: the formula predicts {', '.join(named)}, the target is "
            f"{', '.join(given['target'])}: leave one of them out."
        )
    return {**given, "target": named} if named else given


def defaults(table: type) -> dict[str, Any]:
    """The defaults of the options of a table."""
    return {name: copy.copy(each.option.default) for name, each in declared(table).items()}


def validated(given: Mapping[str, Any], table: type, source: str) -> dict[str, Any]:
    """Checks options against their table; the first that is wrong is named."""
    from pydantic import ValidationError

    known = declared(table)
    asked = {}
    for name, value in given.items():
        if name not in known:
            asked[name] = value
        elif value is not None or _means_none(known[name]):
            value = _canonical(_plain(value, known[name]), known[name].option)
            if not _is_default(value, known[name].option.default):
                asked[name] = value
    try:
        made = _model(table).model_validate(asked)
    except ValidationError as error:
        raise _explained(error.errors()[0], table, source) from None
    found = {name: getattr(made, name) for name in known if name in made.model_fields_set}
    return found if found.get("formula") is None else _with_target(found, source)


def _canonical(value: Any, option: Option) -> Any:
    """A name of a registry as the registry spells it: Log-Normal is log_normal."""
    if not isinstance(value, str) or option.complete not in _PACKAGES:
        return value
    return load(f"ansatz.{_PACKAGES[option.complete]}.registry:registry").canonical(value)


def _means_none(each: Declared) -> bool:
    """Tests whether None is a value of an option, and not its absence."""
    return isinstance(each.option.default, str) and type(None) in get_args(each.type)


def _is_default(value: Any, default: Any) -> bool:
    comparable = isinstance(value, bool | int | float | str | list | dict | tuple)
    return comparable and type(value) is type(default) and bool(value == default)


def _explained(first: Any, table: type, source: str) -> UsageError:
    import difflib

    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        near = difflib.get_close_matches(key, declared(table), n=1)
        hint = f"Did you mean '{near[0]}'?" if near else f"Keys: {', '.join(declared(table))}."
        return UsageError(f"{source}: unknown key '{key[:80]}'. {hint}")
    message = first["msg"][:1].lower() + first["msg"][1:]
    return UsageError(f"{source}: {key}: {message}, got {str(first['input'])[:80]!r}.")


@cache
def _model(table: type) -> "type[BaseModel]":
    """Makes the pydantic model that validates the options of a table."""
    from pydantic import ConfigDict, create_model

    fields: dict[str, Any] = {
        name: (_checked(each.type, each.option), each.option.default)
        for name, each in declared(table).items()
    }
    config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=())
    made: type[BaseModel] = create_model(table.__name__, __config__=config, **fields)
    return made


def _checked(kind: Any, option: Option) -> Any:
    """The type of a value as JSON can hold it, with the limits of its numbers and texts."""
    from pydantic import Field

    if get_origin(kind) in (Union, UnionType):
        parts = set(get_args(kind)) - {Path}
        if option.listed:
            parts -= {get_args(each)[0] for each in parts if get_origin(each) is _SEQUENCE}
        ordered = [each for each in get_args(kind) if each in parts]
        return Union[tuple(_checked(each, option) for each in ordered)]  # noqa: UP007
    if get_origin(kind) is _SEQUENCE:
        return list[_checked(get_args(kind)[0], option)]  # type: ignore[misc]
    if get_origin(kind) is _MAPPING:
        return dict[get_args(kind)]  # type: ignore[misc]
    limits = option.limits.items()
    own = {name: value for name, value in limits if (name in _OF_TEXT) == (kind is str)}
    return Annotated[kind, Field(**own)] if own and kind in (str, int, float) else kind


def _plain(value: Any, each: Declared) -> Any:
    """A value as JSON would give it: lists for sequences, text for paths, numbers for NumPy's."""
    union = get_origin(each.type) in (Union, UnionType)
    takes = {get_origin(part) or part for part in (get_args(each.type) if union else (each.type,))}
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        value = value.item()
    if isinstance(value, Path) and Path in takes:
        return str(value)
    if _MAPPING in takes and isinstance(value, Mapping):
        return dict(value)
    if _SEQUENCE in takes and isinstance(value, tuple | set | frozenset):
        return list(value)
    return [value] if each.option.listed and type(value) in takes else value


class Owner(NamedTuple):
    """An owner of options: a structure, the outcome, the network and so on.

    Args:
        name: of the owner: a structure's, or what it is.
        tables: of options that have a name in ``ansatz.fit`` and on the command line.
        settings: tables of those that ``--set`` takes.
        data: for a structure, what such data are called.
        serves: the structures that have these options, where it is none itself.
    """

    name: str
    tables: tuple[type, ...] = ()
    settings: tuple[type, ...] = ()
    data: str | None = None
    serves: tuple[str, ...] = ()

    def concerns(self, structure: str) -> bool:
        """Tests whether data of a structure have its options."""
        return structure == self.name or structure in self.serves


_OWNERS = (
    Owner("vector", (VectorOptions, ValidationOptions), (VectorSettings,), "tables"),
    Owner("grid", (GridOptions,), (GridSettings,), "images"),
    Owner(
        "sequence",
        (SequenceOptions, AdapterOptions, ValidationOptions),
        (SequenceSettings, AdapterSettings),
        "texts or sequences",
    ),
    Owner("pairs", (PairOptions,), (SequenceSettings,), "pairs"),
    Owner("triples", (TripleOptions,), (), "triples"),
    Owner("set", (SetOptions, ValidationOptions), (SetSettings,), "sets"),
    Owner("points", (PointOptions,), (PointSettings,), "point clouds"),
    Owner("graph", (GraphOptions,), (), "graphs", ("nodes", "node_pairs")),
    Owner("series", (SeriesOptions,), (), "series"),
    Owner("molecule", (MoleculeOptions,), (), "molecules"),
    Owner("passage", (SequenceOptions,), (SequenceSettings,), "documents"),
    Owner(
        "joined",
        (VectorOptions, GridOptions, SequenceOptions, ValidationOptions),
        (VectorSettings, GridSettings, SequenceSettings),
        "columns of several kinds",
    ),
    Owner("transfer", (TransferOptions,), (TransferSettings,), "images", ("grid", "sequence")),
    Owner("questions", (QuestionOptions,), (QuestionSettings,), "questions"),
    Owner("masked_passage", (SequenceOptions,), (SequenceSettings,), "documents with gaps"),
    Owner(
        "outcome",
        (OutcomeOptions, GenerativeOptions),
        (OutcomeSettings, MaskSettings, GenerativeSettings),
    ),
    Owner("inference", (), (InferenceSettings,)),
    Owner("network", (), (NetworkSettings,)),
    Owner("training", (), (TrainingSettings,)),
)


OWNERS = {owner.name: owner for owner in _OWNERS}


def settings_of(owner: str) -> frozenset[str]:
    """Lists the options of an owner that ``--set`` takes."""
    return frozenset(name for table in OWNERS[owner].settings for name in declared(table))


@cache
def fit_settings() -> frozenset[str]:
    """Lists the options of all owners that ``--set`` takes."""
    return frozenset().union(*(settings_of(owner) for owner in OWNERS))


def settings_with(structure: str) -> frozenset[str]:
    """Lists the options that ``--set`` takes where x is of a structure."""
    others = [name for name, each in OWNERS.items() if each.data and not each.concerns(structure)]
    own = settings_of(structure) if structure in OWNERS else frozenset()
    return own | fit_settings().difference(*map(settings_of, others))


def refuse_foreign(
    names: Iterable[str], structure: str, *, settings: bool = False, fitted: bool = False
) -> None:
    """Refuses options that belong to another structure than the one that x has."""
    own = OWNERS.get(structure, Owner(structure))
    mine = {
        name
        for each in (own, *OWNERS.values())
        if each.concerns(structure)
        for table in (each.settings if settings else each.tables)
        for name in declared(table)
    }
    for name in names:
        if name in mine:
            continue
        for owner, each in OWNERS.items():
            if each.data is None or each.concerns(structure):
                continue
            for table in each.settings if settings else each.tables:
                if name in declared(table):
                    flag = declared(table)[name].option.flag(name)
                    spelled = f"'{name}'" if flag == f"--{name}" else f"'{name}' ({flag})"
                    known = own.data or f"of structure {structure}"
                    kind = (each.serves or (owner,))[0]
                    advice = "" if fitted else f", or give --x {kind} if that is what they are"
                    raise UsageError(
                        f"{spelled} is an option of {each.data}, and these are {known}: leave it "
                        f"out{advice}."
                    )
