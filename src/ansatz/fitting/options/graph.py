"""The options of graphs: edges, molecules, what training may see."""

from typing import Annotated, Any, Literal, TypedDict

from ansatz.fitting.options.grid import CorruptReading
from ansatz.fitting.options.links import EdgeColumns, EdgeReading
from ansatz.fitting.options.option import GRAPHS, Option
from ansatz.fitting.options.sequence import IdentifierOptions
from ansatz.fitting.options.vector import TableReading

_GRAPH: Any = {"panel": GRAPHS, "reader": True}


class MoleculeReading(TypedDict, total=False):
    """The column of molecules."""

    smiles: Annotated[
        str | None,
        Option(
            "The column that holds molecules in SMILES.",
            metavar="COL",
            limits={"min_length": 1},
            **_GRAPH,
        ),
    ]


class GraphOptions(
    EdgeReading,
    MoleculeReading,
    CorruptReading,
    IdentifierOptions,
    EdgeColumns,
    TableReading,
    total=False,
):
    """The options of graphs."""

    directed: Annotated[
        bool,
        Option("An edge leads one way. Default: both ways.", default=False, reads=bool, **_GRAPH),
    ]
    inductive: Annotated[
        bool,
        Option(
            "Nodes of the test, and their edges, are absent from the training. Default: their "
            "outcomes alone are.",
            default=False,
            reads=bool,
            **_GRAPH,
        ),
    ]
    split: Annotated[
        Literal["random", "scaffold"] | None,
        Option(
            "Molecules: scaffold keeps those of one ring system on one side.",
            metavar="KIND",
            reads=str,
            **_GRAPH,
        ),
    ]
