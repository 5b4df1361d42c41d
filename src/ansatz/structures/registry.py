"""Structures by name."""

from ansatz.registry import Registry

registry = Registry(
    "structure",
    {
        "vector": "ansatz.structures.vector.structure:Vector",
        "grid": "ansatz.structures.grid.structure:Grid",
    },
)
# A structure recognizes data by a module of its own that loads no more than it needs: functions
# ``recognizes(data, options)`` and ``recognizes_rows(X)``.
recognizers = {"grid": "ansatz.structures.grid.recognition"}
DEFAULT = "vector"  # rows of a table, unless another structure recognizes the data
create = registry.create
names = registry.names
register = registry.register
