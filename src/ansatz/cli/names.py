"""The families of names that commands list, and their completion in a shell."""

import ast
import difflib
import importlib
import re
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ansatz.errors import UsageError

# kind -> the registry behind it. The kinds are known without importing a library.
KINDS = {
    "likelihoods": "ansatz.likelihoods.registry:registry",
    "networks": "ansatz.networks.registry:registry",
    "structures": "ansatz.structures.registry:registry",
    "outcomes": "ansatz.outcomes.registry:registry",
    "inferences": "ansatz.inference.registry:registry",
    "generators": "ansatz.generative.registry:registry",
    "samplers": "ansatz.generative.diffusion.sampler:samplers",
    "kernels": "ansatz.kernels.registry:registry",
    "layers": "ansatz.layers.registry:registry",
    "functions": "ansatz.layers.registry:functions",
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
# Where Python spells it otherwise than `create`: a metric or function is called, a claim runs.
_FACTORIES = {
    "claims": "ansatz.claims.run",
    "datasets": "ansatz.data.load",
    "functions": "ansatz.layers",
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
    raise UsageError(f"unknown kind '{name[:80]}'.{hint} Kinds: {', '.join(KINDS)}, losses.")


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


def names_of(kind: str) -> list[str]:
    """The names of a kind, read from the registry's source: a TAB must not wait for torch."""
    module, _, attribute = KINDS[kind].partition(":")
    root = _package()
    if kind == "claims":  # one file each
        return sorted(name for names in _claims_by_area(root).values() for name in names)
    try:
        return sorted(set(_strings(root, module, attribute)))
    except LookupError:  # its names are computed
        names: list[str] = registry_of(kind).names()
        return names


def _package() -> Path:
    spec = find_spec("ansatz")  # find_spec(module) would import the package, and torch with it
    assert spec is not None and spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


def _claims_by_area(root: Path) -> dict[str, list[str]]:
    """The names of the claims by their folder."""
    found: dict[str, list[str]] = {}
    for file in sorted(root.joinpath("claims").glob("*/*.py")):
        if not file.name.startswith("_"):
            found.setdefault(file.parent.name, []).append(file.stem.replace("_", "-"))
    return found


def _strings(root: Path, module: str, name: str) -> Iterator[str]:
    """The keys of the dicts and the entries of the lists that make up a module's ``name``."""
    file = root.joinpath(*module.split(".")[1:]).with_suffix(".py")
    if not file.is_file():
        return
    body = ast.parse(file.read_text(encoding="utf-8")).body
    for node in body:
        if isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
            yield from _strings(root, node.module or "", name)
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                for found in _collect(node.value):
                    if isinstance(found, str):
                        yield found
                    else:
                        yield from _strings(root, module, found.id)


def _collect(node: ast.AST) -> Iterator[str | ast.Name]:
    """Strings of the outermost dicts and lists, and the names that stand for others."""
    if isinstance(node, ast.DictComp):
        raise LookupError
    if isinstance(node, ast.Dict | ast.List):
        for item in node.keys if isinstance(node, ast.Dict) else node.elts:
            if isinstance(item, ast.Constant) and isinstance(item.value, str):
                yield item.value
        if isinstance(node, ast.Dict):  # **others
            for key, value in zip(node.keys, node.values, strict=True):
                yield from _collect(value) if key is None else ()
    elif isinstance(node, ast.Name):
        yield node
    else:
        for child in ast.iter_child_nodes(node):
            yield from _collect(child)


def complete(*kinds: str) -> Callable[[str], list[str]]:
    """A completer for the names of these kinds."""

    def completer(incomplete: str) -> list[str]:
        names = (name for kind in kinds for name in names_of(kind))
        return sorted({name for name in names if name.startswith(incomplete)})

    return completer


def complete_claim(incomplete: str) -> list[str]:
    """Completes a claim or an area of claims, from the names of their files."""
    by_area = _claims_by_area(_package())
    words = {*by_area, *(name for names in by_area.values() for name in names)}
    return sorted(word for word in words if word.startswith(incomplete))


def complete_kind(incomplete: str) -> list[str]:
    """Completes a KIND."""
    return [kind for kind in (*KINDS, "losses") if kind.startswith(incomplete)]
