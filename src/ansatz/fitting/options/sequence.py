"""The options of texts and signals of unequal length."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypedDict

from ansatz.fitting.options.option import FORECASTS, TEXTS, Option, whole_numbers, words
from ansatz.fitting.options.vector import TableReading

_TOKENS: Any = Option(
    "What a text is cut into: word, char, byte, or parts of words (bpe, wordpiece). Default: "
    "words; characters where texts have no spaces.",
    TEXTS,
    metavar="KIND",
    reads=str,
)
_LENGTH: Any = Option(
    "Tokens of a text that are read; the rest is cut. Default: 512 words or 2,048 characters.",
    TEXTS,
    metavar="N",
    limits={"ge": 1},
)
_VOCABULARY: Any = Option(
    "Different tokens at most, the most frequent ones. Default: 30,000.",
    TEXTS,
    metavar="N",
    limits={"ge": 3, "le": 2**24},
)
_FORECAST: Any = {"panel": FORECASTS, "reader": True}
Kind = Literal["word", "char", "byte", "bpe", "wordpiece"]


class SequenceOptions(TableReading, total=False):
    """The options of texts and signals."""

    text_column: Annotated[
        str | None,
        Option(
            "The column of a table that holds texts.",
            TEXTS,
            flags=("--text",),
            metavar="COL",
            limits={"min_length": 1},
            reader=True,
        ),
    ]
    tokens: Annotated[Kind | None, _TOKENS]
    length: Annotated[int | None, _LENGTH]
    vocabulary: Annotated[int | None, _VOCABULARY]
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
    id: Annotated[
        str | None,
        Option("The column that names the series.", metavar="COL", **_FORECAST),
    ]
    edges: Annotated[
        str | None,
        Option(
            "A table of neighbouring series, whose history is added.", metavar="FILE", **_FORECAST
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


class SequenceSettings(TypedDict, total=False):
    """Options of the encoding of texts, as ``--set`` takes them."""

    tokens: Annotated[Kind, _TOKENS]
    length: Annotated[int, _LENGTH]
    vocabulary: Annotated[int, _VOCABULARY]
