"""Graphs: one with its nodes and pairs as rows, or many as rows."""

from ansatz.data.graphs.graph import Graph as Graph
from ansatz.data.graphs.graphs import Graphs as Graphs
from ansatz.data.graphs.rows import NodeRows as NodeRows
from ansatz.data.graphs.rows import PairRows as PairRows
