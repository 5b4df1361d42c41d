"""Point clouds: files, arrays, and generated solids."""

from ansatz.data.points.clouds import Clouds as Clouds
from ansatz.data.points.solids import solids as solids
