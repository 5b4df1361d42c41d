"""Molecules as graphs: atoms and bonds with what chemists know of each."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ansatz.data.graphs.graph import Graph
from ansatz.errors import DataError, MissingExtraError

if TYPE_CHECKING:
    import pandas as pd

ATOM = ("element", "degree", "charge", "hydrogens", "hybridization", "aromatic", "ring")
BOND = ("kind", "conjugated", "ring")


def _rdkit() -> Any:
    try:
        from rdkit import Chem, RDLogger
    except ImportError:
        raise MissingExtraError("molecules in SMILES", "chem") from None
    RDLogger.DisableLog("rdApp.*")  # type: ignore[attr-defined]  # its complaints are the error's words here
    return Chem


def from_smiles(smiles: str) -> Graph:
    """Makes a graph of a molecule: its heavy atoms, and the bonds between them.

    Args:
        smiles: like ``"CCO"``.

    Example:
        >>> from ansatz.data.graphs import from_smiles
        >>> from_smiles("CCO")
        Graph: 3 nodes, 2 edges, 7 features of a node, 3 features of an edge
    """
    return from_rdkit(_molecule(smiles))


def _molecule(smiles: Any) -> Any:
    found = _rdkit().MolFromSmiles(smiles) if isinstance(smiles, str) else None
    if found is None or not isinstance(smiles, str) or not smiles.strip():
        raise DataError(f"{str(smiles)[:60]!r} is not a molecule in SMILES.")
    return found


def from_rdkit(molecule: Any) -> Graph:
    """Makes a graph of a molecule of RDKit.

    Example:
        >>> from rdkit import Chem
        >>> from ansatz.data.graphs import from_rdkit
        >>> len(from_rdkit(Chem.MolFromSmiles("c1ccccc1")))
        6
    """
    import pandas as pd

    atoms, bonds, ends = _parts(molecule)
    return Graph.of(
        np.array(ends, dtype=np.int64).reshape(-1, 2).T,
        pd.DataFrame(atoms, columns=list(ATOM)),
        edges=pd.DataFrame(bonds, columns=list(BOND)),
    )


def _parts(molecule: Any) -> tuple[list[Any], list[Any], list[Any]]:
    atoms = [
        (
            atom.GetSymbol(),
            str(atom.GetDegree()),
            str(atom.GetFormalCharge()),
            str(atom.GetTotalNumHs()),
            str(atom.GetHybridization()),
            str(atom.GetIsAromatic()),
            str(atom.IsInRing()),
        )
        for atom in molecule.GetAtoms()
    ]
    bonds = [
        (str(bond.GetBondType()), str(bond.GetIsConjugated()), str(bond.IsInRing()))
        for bond in molecule.GetBonds()
    ]
    ends = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()]
    return atoms, bonds, ends


def read_smiles(
    column: "pd.Series", origin: str, *, skip: bool = False
) -> tuple[list[Graph], "np.ndarray", list[str]]:
    """Molecules of a column: graphs, the rows that are there, and canonical SMILES.

    Args:
        column: texts.
        origin: what errors call the table.
        skip: leave out what is not a molecule, instead of an error.
    """
    chem, graphs, rows, texts = _rdkit(), [], [], []
    for row, text in enumerate(column):
        try:
            molecule = _molecule(text)
        except DataError as error:
            if skip:
                continue
            advice = "To leave such rows out: --skip-corrupt."
            raise DataError(
                f"{origin}, row {row + 1}, column '{column.name}': {error} {advice}"
            ) from None
        graphs.append(from_rdkit(molecule))
        rows.append(row)
        texts.append(chem.MolToSmiles(molecule))
    if not graphs:
        raise DataError(f"{origin}: column '{column.name}' holds no molecule.")
    return graphs, np.array(rows), texts


def scaffolds(smiles: Iterable[str]) -> Sequence[str]:
    """The ring systems of molecules with what links them, as Bemis and Murcko define them.

    Example:
        >>> from ansatz.data.graphs.molecules import scaffolds
        >>> scaffolds(["Cc1ccccc1", "CCO"])
        ['c1ccccc1', '']
    """
    _rdkit()
    from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles

    return [MurckoScaffoldSmiles(text) for text in smiles]
