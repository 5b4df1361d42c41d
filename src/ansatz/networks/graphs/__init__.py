"""Networks on graphs."""

from ansatz.networks.graphs.adamic_adar import AdamicAdar as AdamicAdar
from ansatz.networks.graphs.attention import GAT as GAT
from ansatz.networks.graphs.attention import GATv2 as GATv2
from ansatz.networks.graphs.convolution import GCN as GCN
from ansatz.networks.graphs.convolution import GIN as GIN
from ansatz.networks.graphs.convolution import GNN as GNN
from ansatz.networks.graphs.convolution import GraphSAGE as GraphSAGE
from ansatz.networks.graphs.linear import LinearGraph as LinearGraph
from ansatz.networks.graphs.linear import LinearNode as LinearNode
from ansatz.networks.graphs.linear import SGC as SGC
