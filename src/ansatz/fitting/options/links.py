"""The options of relations: the columns of an edge, a triple or a rating."""

from typing import Annotated, Any, TypedDict

from ansatz.fitting.options.option import GRAPHS, Option
from ansatz.fitting.options.vector import TableReading

_COLUMN: Any = {"panel": GRAPHS, "metavar": "COL", "limits": {"min_length": 1}, "reader": True}


class EdgeReading(TypedDict, total=False):
    """The table of edges."""

    edges: Annotated[
        str | None,
        Option(
            "A table of edges between nodes, which are the rows of the data; its column 'weight' "
            "weighs them, others describe them. Of series: which ones are neighbours.",
            panel=GRAPHS,
            metavar="FILE",
            reader=True,
        ),
    ]


class EdgeColumns(TypedDict, total=False):
    """The columns that name both ends of an edge."""

    source: Annotated[str | None, Option("The column of an edge's first node.", **_COLUMN)]
    destination: Annotated[str | None, Option("The column of its second node.", **_COLUMN)]


class TripleOptions(EdgeColumns, TableReading, total=False):
    """The options of triples."""

    relation: Annotated[
        str | None, Option("The column that names the relation of a triple.", **_COLUMN)
    ]
