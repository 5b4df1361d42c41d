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
from ansatz.networks.graphs.autoencoder import GAE as GAE
from ansatz.networks.graphs.autoencoder import VGAE as VGAE
from ansatz.networks.graphs.filters import ChebNet as ChebNet
from ansatz.networks.graphs.filters import Relational as Relational
from ansatz.networks.graphs.filters import SpectralNetwork as SpectralNetwork
from ansatz.networks.graphs.kgnn import KGNN as KGNN
from ansatz.networks.graphs.message_passing import GatedGraph as GatedGraph
from ansatz.networks.graphs.message_passing import MPNN as MPNN
from ansatz.networks.graphs.recurrent import GraphGRU as GraphGRU
from ansatz.networks.graphs.recurrent import GraphLSTM as GraphLSTM
from ansatz.networks.graphs.unet import GraphUNet as GraphUNet
