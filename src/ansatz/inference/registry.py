"""Ways to be unsure about weights, by name."""

from ansatz.registry import Registry

registry = Registry(
    "inference",
    {"point": "ansatz.inference.point:Point", "ensemble": "ansatz.inference.ensemble:Ensemble"},
)
DEFAULT = "point"
create = registry.create
names = registry.names
register = registry.register
