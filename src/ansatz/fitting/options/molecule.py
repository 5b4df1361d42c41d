"""The options of molecules."""

from typing import Annotated, TypedDict

from ansatz.fitting.options.option import GRAPHS, Option


class MoleculeOptions(TypedDict, total=False):
    """The options of molecules and crystals."""

    forces: Annotated[
        str | None,
        Option(
            "The property of atoms that holds forces, to be fitted with the energy. Default: "
            "force or forces, where no other target is named.",
            GRAPHS,
            metavar="COL",
            limits={"min_length": 1},
            reader=True,
        ),
    ]
    cutoff: Annotated[
        float | None,
        Option(
            "The largest distance at which atoms see each other. Default: 4.5, of angstroms.",
            GRAPHS,
            metavar="R",
            limits={"gt": 0, "le": 1e6},
        ),
    ]
