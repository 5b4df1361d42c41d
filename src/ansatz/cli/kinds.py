"""The families that ``ansatz list`` and ``ansatz show`` know, and where their names live."""

import difflib
import importlib
import re
from typing import Any

from ansatz.errors import UsageError

# kind -> the registry behind it. The kinds are known without importing a library.
KINDS = {
    "likelihoods": "ansatz.likelihoods.registry:registry",
    "networks": "ansatz.networks.registry:registry",
    "structures": "ansatz.structures.registry:registry",
    "outcomes": "ansatz.outcomes.registry:registry",
    "inferences": "ansatz.inference.registry:registry",
    "layers": "ansatz.layers.registry:registry",
    "activations": "ansatz.layers.registry:activations",
    "norms": "ansatz.layers.registry:norms",
    "initializers": "ansatz.layers.registry:initializers",
    "numeric_embeddings": "ansatz.layers.registry:numeric_embeddings",
    "optimizers": "ansatz.optim.registry:registry",
    "schedules": "ansatz.optim.schedules:schedules",
    "penalties": "ansatz.training.penalties:penalties",
    "metrics": "ansatz.metrics.registry:registry",
    "datasets": "ansatz.data.registry:registry",
    "augmentations": "ansatz.data.augmentation.registry:registry",
    "groups": "ansatz.symmetry.registry:registry",
    "claims": "ansatz.claims.registry:registry",
}
# Where Python spells it otherwise than `create`: a metric is a function of its own, a claim runs.
_FACTORIES = {
    "claims": "ansatz.claims.run",
    "datasets": "ansatz.data.load",
    "metrics": "ansatz.metrics",
    "schedules": "ansatz.optim.create_schedule",
}


def kind_called(name: str) -> str:
    """The kind that ``name`` means; singular and plural are alike."""
    for kind in KINDS:
        if name.lower() in (kind, kind[:-1], re.sub("ies$", "y", kind)):
            return kind
    near = difflib.get_close_matches(name.lower(), KINDS, n=1)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    raise UsageError(f"unknown kind '{name[:80]}'.{hint} Kinds: {', '.join(KINDS)}.")


def registry_of(kind: str) -> Any:
    """The registry of a kind."""
    module, _, attribute = KINDS[kind].partition(":")
    return getattr(importlib.import_module(module), attribute)


def factory_of(kind: str) -> str:
    """The function that makes a member of a kind, as Python spells it."""
    if kind in _FACTORIES:
        return _FACTORIES[kind]
    module, _, attribute = KINDS[kind].partition(":")
    package = module.rpartition(".")[0]
    return f"{package}.create" if attribute == "registry" else f"{package}.{attribute}.create"
