"""The options of sets and point clouds."""

from typing import Annotated, Any, TypedDict

from ansatz.fitting.options.option import SETS, Option
from ansatz.fitting.options.sequence import IdentifierOptions
from ansatz.fitting.options.vector import TableReading

_PART: Any = Option(
    "The column that names the part of a set that an element belongs to, for networks that keep "
    "parts apart (pine).",
    SETS,
    metavar="COL",
    limits={"min_length": 1},
)


class LabelReading(TypedDict, total=False):
    """Outcomes of elements."""

    labels: Annotated[
        str | None,
        Option(
            "The outcome of every element: a column of a long table, an array of a file.",
            SETS,
            metavar="NAME",
            limits={"min_length": 1},
            reader=True,
        ),
    ]


class SetOptions(LabelReading, IdentifierOptions, TableReading, total=False):
    """The options of sets."""

    part: Annotated[str | None, _PART]


class SetSettings(TypedDict, total=False):
    """Options of the encoding of sets, as ``--set`` takes them."""

    part: Annotated[str, _PART]


class PointOptions(LabelReading, TableReading, total=False):
    """The options of point clouds."""


class PointSettings(TypedDict, total=False):
    """Options of the training on clouds, as ``--set`` takes them."""

    augment: Annotated[bool, Option("Whether clouds are changed at random in training.")]
