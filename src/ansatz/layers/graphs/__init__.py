"""Layers on graphs: messages along edges, summaries of graphs, coarser graphs."""

from ansatz.layers.graphs.attention import GATConv as GATConv
from ansatz.layers.graphs.attention import GATv2Conv as GATv2Conv
from ansatz.layers.graphs.gcn import GCNConv as GCNConv
from ansatz.layers.graphs.gin import GINConv as GINConv
from ansatz.layers.graphs.graph_conv import GraphConv as GraphConv
from ansatz.layers.graphs.graph_conv import SAGEConv as SAGEConv
from ansatz.layers.graphs.propagate import propagate as propagate
from ansatz.layers.graphs.readout import Readout as Readout
from ansatz.layers.graphs.gcn import SGConv as SGConv
from ansatz.layers.graphs.gated import GatedGraphConv as GatedGraphConv
from ansatz.layers.graphs.gated import GraphRecurrent as GraphRecurrent
from ansatz.layers.graphs.pooling import TopKPooling as TopKPooling
from ansatz.layers.graphs.pooling import diff_pool as diff_pool
from ansatz.layers.graphs.pooling import top_nodes as top_nodes
from ansatz.layers.graphs.relational import RGCNConv as RGCNConv
from ansatz.layers.graphs.spectral import ChebConv as ChebConv
from ansatz.layers.graphs.spectral import SpectralConv as SpectralConv
from ansatz.layers.graphs.spectral import spectrum as spectrum
