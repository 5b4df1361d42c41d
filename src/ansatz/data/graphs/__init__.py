"""Graphs: one with its nodes and pairs as rows, or many as rows."""

from ansatz.data.graphs.graph import Graph as Graph
from ansatz.data.graphs.graphs import Graphs as Graphs
from ansatz.data.graphs.libraries import from_networkx as from_networkx
from ansatz.data.graphs.libraries import from_pyg as from_pyg
from ansatz.data.graphs.libraries import from_scipy as from_scipy
from ansatz.data.graphs.libraries import to_networkx as to_networkx
from ansatz.data.graphs.libraries import to_pyg as to_pyg
from ansatz.data.graphs.libraries import to_scipy as to_scipy
from ansatz.data.graphs.molecules import from_rdkit as from_rdkit
from ansatz.data.graphs.molecules import from_smiles as from_smiles
from ansatz.data.graphs.rows import NodeRows as NodeRows
from ansatz.data.graphs.rows import PairRows as PairRows
