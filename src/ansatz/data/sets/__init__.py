"""Sets and point clouds: elements without an order, one set behind the other."""

from ansatz.data.sets.sets import Elements as Elements
from ansatz.data.sets.sets import Sets as Sets
