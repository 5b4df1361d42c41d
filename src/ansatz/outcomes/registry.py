"""Outcomes by name."""

from ansatz.registry import Registry

registry = Registry(
    "outcome",
    {
        "number": "ansatz.outcomes.number:Number",
        "class": "ansatz.outcomes.classes:Classes",
        "survival": "ansatz.outcomes.survival:SurvivalTime",
        "ranking": "ansatz.outcomes.ranking:Ranking",
        "mask": "ansatz.outcomes.mask:Mask",
    },
)
DEFAULT = "number"  # unless a likelihood speaks of another outcome
create = registry.create
names = registry.names
register = registry.register
