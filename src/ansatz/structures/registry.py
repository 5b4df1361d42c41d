"""Structures by name."""

from ansatz.registry import Registry

registry = Registry(
    "structure",
    {
        "vector": "ansatz.structures.vector.structure:Vector",
        "grid": "ansatz.structures.grid.structure:Grid",
    },
)
DEFAULT = "vector"  # rows of a table, unless another structure recognizes the data
create = registry.create
names = registry.names
register = registry.register
