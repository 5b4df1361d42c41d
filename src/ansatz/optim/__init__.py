"""Update rules and schedules that torch lacks, and names for those that it has."""

from ansatz.optim.flat_adamw import FlatAdamW as FlatAdamW
