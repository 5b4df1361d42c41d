"""The options of the commands, merged from those of their owners, and who owns which."""

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from ansatz.errors import UsageError
from ansatz.fitting.options.everybody import (
    AxesOptions,
    FoldOptions,
    MemoryOptions,
    NetworkSettings,
    PlaceOptions,
    ProcessOptions,
    RowOptions,
    RunOptions,
    TestOptions,
    TrainingRunOptions,
    TrainingSettings,
)
from ansatz.fitting.options.grid import (
    FileReading,
    GridOptions,
    GridSettings,
    MaskReading,
    MaskSettings,
)
from ansatz.fitting.options.inference import InferenceSettings
from ansatz.fitting.options.option import declared
from ansatz.fitting.options.outcome import OutcomeOptions, OutcomeSettings
from ansatz.fitting.options.search import SearchOptions, TunedPlaceOptions
from ansatz.fitting.options.vector import TableReading, VectorOptions, VectorSettings


class FitOptions(
    OutcomeOptions,
    AxesOptions,
    TestOptions,
    FoldOptions,
    RowOptions,
    VectorOptions,
    GridOptions,
    PlaceOptions,
    RunOptions,
    TrainingRunOptions,
    MemoryOptions,
    total=False,
):
    """Everything that ``ansatz.fit`` can be asked for.

    Example:
        >>> from ansatz.fitting import FitOptions
        >>> FitOptions(target="price", seed=1)
        {'target': 'price', 'seed': 1}
    """


class FitCommand(FitOptions, ProcessOptions, total=False):
    """Everything that ``ansatz fit`` and its ``--config`` can be asked for.

    Example:
        >>> from ansatz.fitting.options import FitCommand
        >>> FitCommand(target="price", processes=2)["processes"]
        2
    """


class TuneOptions(
    SearchOptions,
    OutcomeOptions,
    AxesOptions,
    TestOptions,
    RowOptions,
    VectorOptions,
    GridOptions,
    TunedPlaceOptions,
    RunOptions,
    MemoryOptions,
    total=False,
):
    """Everything that ``ansatz.tune`` can be asked for.

    Example:
        >>> from ansatz.fitting.options import TuneOptions
        >>> TuneOptions(target="price", searches=10)["searches"]
        10
    """


class ReadingAgain(FileReading, TableReading, MemoryOptions, total=False):
    """How the data of a prediction are read."""


class ReadingOutcomes(MaskReading, ReadingAgain, total=False):
    """How the data of an evaluation are read."""


class Owner(NamedTuple):
    """Whoever has options of its own.

    Args:
        name: of the owner: a structure's, or what it is.
        tables: of options that have a name in ``ansatz.fit`` and on the command line.
        settings: tables of those that ``--set`` takes.
        data: for a structure, what such data are called.
    """

    name: str
    tables: tuple[type, ...] = ()
    settings: tuple[type, ...] = ()
    data: str | None = None


_OWNERS = (
    Owner("vector", (VectorOptions,), (VectorSettings,), "tables"),
    Owner("grid", (GridOptions,), (GridSettings,), "images"),
    Owner("outcome", (OutcomeOptions,), (OutcomeSettings, MaskSettings)),
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
    others = [name for name, each in OWNERS.items() if each.data and name != structure]
    return fit_settings().difference(*map(settings_of, others))


def refuse_foreign(
    names: Iterable[str], structure: str, *, settings: bool = False, fitted: bool = False
) -> None:
    """Refuses options that belong to another structure than the one that x has.

    Args:
        names: of the options that were given.
        structure: by name.
        settings: whether they are options that ``--set`` takes.
        fitted: whether a model has settled the structure.
    """
    for name in names:
        for owner, each in OWNERS.items():
            if each.data is None or owner == structure:
                continue
            for table in each.settings if settings else each.tables:
                if name in declared(table):
                    flag = declared(table)[name].option.flag(name)
                    spelled = f"'{name}'" if flag == f"--{name}" else f"'{name}' ({flag})"
                    mine = OWNERS.get(structure, Owner(structure))
                    known = mine.data or f"of structure {structure}"
                    advice = "" if fitted else f", or say --x {owner} if that is what they are"
                    raise UsageError(
                        f"{spelled} is an option of {each.data}, and these are {known}: leave it "
                        f"out{advice}."
                    )
