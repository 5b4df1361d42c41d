"""The options of texts and signals of unequal length."""

from typing import Annotated, Any, Literal, TypedDict

from ansatz.fitting.options.option import TEXTS, Option
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
Kind = Literal["word", "char", "byte", "bpe", "wordpiece"]


class IdentifierOptions(TypedDict, total=False):
    """What names the sequence of a row."""

    identifier: Annotated[
        str | None,
        Option(
            "The column that names the sequence, or the series, of a row; --time orders its rows.",
            TEXTS,
            flags=("--id",),
            metavar="COL",
            limits={"min_length": 1},
        ),
    ]


class SequenceOptions(IdentifierOptions, TableReading, total=False):
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


class SequenceSettings(TypedDict, total=False):
    """Options of the encoding of texts, as ``--set`` takes them."""

    tokens: Annotated[Kind, _TOKENS]
    length: Annotated[int, _LENGTH]
    vocabulary: Annotated[int, _VOCABULARY]


class QuestionOptions(TypedDict, total=False):
    """The options of questions about texts."""

    vocabulary: Annotated[int | None, _VOCABULARY]


class QuestionSettings(TypedDict, total=False):
    """Options of the encoding of questions, as ``--set`` takes them."""

    vocabulary: Annotated[int, _VOCABULARY]


class PairOptions(SequenceOptions, total=False):
    """The options of pairs of texts, or of images and texts."""

    translation: Annotated[
        str | None,
        Option(
            "A file whose line k is the translation of line k of the data.",
            TEXTS,
            metavar="FILE",
            limits={"min_length": 1},
            reader=True,
        ),
    ]
