"""Structures by name."""

from ansatz.registry import Registry

registry = Registry(
    "structure",
    {
        "vector": "ansatz.structures.vector:Vector",
        "grid": "ansatz.structures.grid:Grid",
    },
)
create = registry.create
names = registry.names
register = registry.register
