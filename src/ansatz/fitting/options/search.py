"""The options of a search for a better recipe."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

from ansatz.fitting.options.option import RUN, Option

SEARCH = "The search"


class SearchOptions(TypedDict, total=False):
    """What ``ansatz tune`` takes besides the options of a fit."""

    searches: Annotated[
        int,
        Option(
            "Configurations to try besides the default. Default: 30.",
            SEARCH,
            default=30,
            metavar="N",
        ),
    ]
    folds: Annotated[
        int,
        Option("Folds of the training rows that evaluate a trial. Default: 3.", SEARCH, default=3),
    ]
    space: Annotated[
        str | Sequence[str] | Mapping[str, Any],
        Option(
            "What an option may be: dropout=0..0.3, activation=relu,tanh, network=A,B. May be "
            "repeated.",
            SEARCH,
            default=(),
            metavar="NAME=VALUES",
            reads=list[str],
            listed=True,
        ),
    ]
    time_limit: Annotated[
        float | None,
        Option(
            "Begin no trial after so many seconds.", SEARCH, metavar="SECONDS", limits={"gt": 0}
        ),
    ]
    progress: Annotated[Any, Option("Called with trials done, trials in all and the best so far.")]


class TunedPlaceOptions(TypedDict, total=False):
    """Where the model that a search chose goes."""

    out: Annotated[
        str | Path | None,
        Option("Folder for the model. Default: DATA-tuned.", RUN, metavar="DIR", decides=False),
    ]
