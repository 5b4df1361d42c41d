"""Structures by name."""

from ansatz.registry import Registry

registry = Registry("structure", {"vector": "ansatz.structures.vector:Vector"})
create = registry.create
names = registry.names
register = registry.register
