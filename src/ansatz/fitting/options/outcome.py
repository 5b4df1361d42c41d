"""The options of outcomes: the columns that tell them, and what classes and rankings are."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypedDict

from ansatz.fitting.options.option import MODEL, Option
from ansatz.fitting.options.parsing import words

_COLUMN: Any = {"panel": MODEL, "metavar": "COL", "limits": {"min_length": 1}}


class OutcomeOptions(TypedDict, total=False):
    """The columns that tell the outcome."""

    target: Annotated[
        str | Sequence[str],
        Option(
            "The column to predict; several as A,B.",
            default=[],
            reads=str,
            parse=words,
            listed=True,
            **_COLUMN,
        ),
    ]
    event: Annotated[
        str | None,
        Option(
            "Survival: 1 where the target is the time of an event, 0 where the row was censored; "
            "or COL=VALUE.",
            **_COLUMN,
        ),
    ]
    entry: Annotated[
        str | None, Option("Survival: the time from which the row was watched.", **_COLUMN)
    ]
    lower: Annotated[str | None, Option("In place of --target: y lies above this.", **_COLUMN)]
    upper: Annotated[
        str | None, Option("With --lower: and not above this; empty is open.", **_COLUMN)
    ]
    trials: Annotated[
        str | None, Option("The target counts the successes of so many trials.", **_COLUMN)
    ]


class OutcomeSettings(TypedDict, total=False):
    """Options of classes, rankings and intervals, as ``--set`` takes them."""

    classes: Annotated[Sequence[Any], Option("The classes, in their order.")]
    class_weight: Annotated[
        str | Mapping[Any, float], Option("'balanced', or how much each class counts.")
    ]
    unranked: Annotated[
        str, Option("What a ranking that leaves items out says about them: last, or absent.")
    ]
    prior: Annotated[float, Option("Comparisons of every item with one at the mean of the scores.")]
    layout: Annotated[str, Option("How a ranking is written: places, items or orders.")]
    calibration: Annotated[float, Option("Share of the rows that conformal intervals rest on.")]
