"""Which cells of a grid a unit can depend on, followed through torch's own operations."""

from ansatz.networks.reach.intervals import Reach as Reach
from ansatz.networks.reach.rules import reach_of as reach_of
