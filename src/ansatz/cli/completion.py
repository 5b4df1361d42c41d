"""What the shell offers after TAB."""

import ast
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from ansatz.cli.kinds import KINDS


def names_of(kind: str) -> list[str]:
    """The names of a kind, read from the registry's source: a TAB must not wait for torch.

    Example:
        >>> from ansatz.cli.completion import names_of
        >>> "poisson" in names_of("likelihoods")
        True
    """
    module, _, attribute = KINDS[kind].partition(":")
    package, _, leaf = module.rpartition(".")
    spec = find_spec("ansatz")  # find_spec(module) would import the package, and torch with it
    if spec is None or not spec.submodule_search_locations:
        return []
    file = Path(spec.submodule_search_locations[0], *package.split(".")[1:], f"{leaf}.py")
    return _keys(file, attribute) if file.is_file() else []


def _keys(file: Path, attribute: str) -> list[str]:
    """The string keys of every dict inside ``attribute = ...``, and of the dicts it refers to."""
    assigned = {
        target.id: node.value
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    found: list[str] = []
    todo = [attribute]
    while todo:
        for node in ast.walk(assigned.pop(todo.pop(), ast.Constant(None))):
            if isinstance(node, ast.Name):
                todo.append(node.id)
            elif isinstance(node, ast.Dict):
                keys = [key.value for key in node.keys if isinstance(key, ast.Constant)]
                found += [key for key in keys if isinstance(key, str)]
    return sorted(set(found))


def complete(*kinds: str) -> Callable[[str], list[str]]:
    """A completer for the names of these kinds.

    Example:
        >>> from ansatz.cli.completion import complete
        >>> complete("likelihoods")("pois")
        ['poisson']
    """

    def completer(incomplete: str) -> list[str]:
        names = (name for kind in kinds for name in names_of(kind))
        return sorted({name for name in names if name.startswith(incomplete)})

    return completer


def complete_kind(incomplete: str) -> list[str]:
    """Completes a KIND.

    Example:
        >>> from ansatz.cli.completion import complete_kind
        >>> complete_kind("like")
        ['likelihoods']
    """
    return [kind for kind in KINDS if kind.startswith(incomplete)]
