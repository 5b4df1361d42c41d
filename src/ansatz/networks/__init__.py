"""Whole architectures, by name."""

from ansatz.networks.inputs import TableInputs as TableInputs
from ansatz.networks.limits import check_size as check_size
from ansatz.networks.linear import Linear as Linear
from ansatz.networks.mlp import MLP as MLP
from ansatz.networks.random_features import RandomFeatureNetwork as RandomFeatureNetwork
from ansatz.networks.regions import LinearRegions as LinearRegions
from ansatz.networks.regions import Region as Region
from ansatz.networks.regions import count_linear_regions as count_linear_regions
from ansatz.networks.regions import linear_regions as linear_regions
from ansatz.networks.registry import create as create
from ansatz.networks.registry import names as names
from ansatz.networks.registry import register as register
from ansatz.networks.registry import registry as registry
from ansatz.networks.summary import LayerRow as LayerRow
from ansatz.networks.summary import Summary as Summary
from ansatz.networks.summary import summary as summary
