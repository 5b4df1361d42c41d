"""The first neurons: threshold units, perceptrons and associative memories."""

from ansatz.connectionism.boolean_formula import compile_formula as compile_formula
from ansatz.connectionism.boolean_formula import compile_truth_table as compile_truth_table
from ansatz.connectionism.mcculloch_pitts import McCullochPitts as McCullochPitts
from ansatz.connectionism.mcculloch_pitts import McCullochPittsNetwork as McCullochPittsNetwork
from ansatz.connectionism.mcculloch_pitts import Wire as Wire
from ansatz.connectionism.perceptron import Perceptron as Perceptron
from ansatz.connectionism.separation import VersionSpace as VersionSpace
from ansatz.connectionism.separation import margin as margin
from ansatz.connectionism.separation import margins as margins
from ansatz.connectionism.separation import version_space as version_space
from ansatz.connectionism.hopfield import Hopfield as Hopfield
from ansatz.connectionism.hopfield import Recall as Recall
from ansatz.connectionism.dense_memory import DenseAssociativeMemory as DenseAssociativeMemory
