"""The linear regions of networks of rectified units, counted exactly."""

from ansatz.networks.regions.region import count_linear_regions as count_linear_regions
from ansatz.networks.regions.region import linear_regions as linear_regions
from ansatz.networks.regions.picture import draw_regions as draw_regions
from ansatz.networks.regions.region import LinearRegions as LinearRegions
from ansatz.networks.regions.region import Region as Region
