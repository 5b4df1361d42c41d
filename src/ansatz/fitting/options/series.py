"""The options of series in time."""

from collections.abc import Sequence
from typing import Annotated, Any

from ansatz.fitting.options.links import EdgeReading
from ansatz.fitting.options.option import FORECASTS, Option, whole_numbers, words
from ansatz.fitting.options.sequence import IdentifierOptions
from ansatz.fitting.options.vector import TableReading

_FORECAST: Any = {"panel": FORECASTS, "reader": True}


class SeriesOptions(EdgeReading, IdentifierOptions, TableReading, total=False):
    """The options of forecasts."""

    horizon: Annotated[
        int | None,
        Option(
            "Number of steps to forecast.", limits={"ge": 1, "le": 10_000}, metavar="H", **_FORECAST
        ),
    ]
    window: Annotated[
        int | None,
        Option(
            "Steps that a forecast looks back. Default: by the length of a step and the horizon.",
            limits={"ge": 1},
            metavar="T",
            **_FORECAST,
        ),
    ]
    season: Annotated[
        int | None,
        Option(
            "Steps of a cycle. Default: a day of hours, a week of days, a year of longer steps.",
            limits={"ge": 1},
            metavar="N",
            **_FORECAST,
        ),
    ]
    known: Annotated[
        Sequence[str] | None,
        Option(
            "Columns that are known ahead, as the calendar is.",
            metavar="A,B,...",
            reads=str,
            parse=words,
            listed=True,
            **_FORECAST,
        ),
    ]
    parts: Annotated[
        Sequence[int] | None,
        Option(
            "Steps of training, validation and test, like 8640,2880,2880.",
            metavar="A,B,C",
            reads=str,
            parse=whole_numbers,
            **_FORECAST,
        ),
    ]
