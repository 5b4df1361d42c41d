"""Nothing outside a member of the three axes knows it; no cycles, no strangers' private names.

A member is one structure, one outcome or one inference. The checks read the source; ``KNOWN`` holds
what they still find, by check and file. It can only shrink: ``python tests/test_axes.py`` rewrites
it after a change, and refuses a check whose sum has grown (``--new-members``: whose names were
registered, so that more is seen).
"""

import ast
import importlib
import inspect
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import ansatz

ROOT = Path(ansatz.__file__).parent
AXES = ("structures", "outcomes", "inference")
SHARED = {"fitting", "report", "tuning", "onnx", "estimators", "cli"}
ROWS_OF_ONE_STRUCTURE = ("ansatz.data.grids",)  # who asks for their class asks for the structure
PUBLIC_OF_A_MEMBER = "options"  # its table of options, which --help reads without the member
MOST_PARAMETERS = 12
OF_NAMED_TUPLES = {"_replace", "_asdict", "_fields", "_make", "_field_defaults"}
LOOKUPS = {"get", "pop", "create", "startswith", "endswith"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

Trees = dict[str, ast.Module]  # by dotted module
Found = tuple[str, int]  # what, and in which line

KNOWN: dict[str, dict[str, int]] = {}
OPTIONS_TOO = {"dropout", "laplace", "link"}  # members named as an option or a likelihood is


class Members(NamedTuple):
    """The members of all axes: their names, the prefixes of their modules, their classes."""

    names: frozenset[str]
    modules: tuple[str, ...]
    classes: frozenset[str]  # "ansatz.structures.Grid" and "ansatz.structures.grid.Grid"
    rows: frozenset[str]  # classes of the data layer that one structure alone has: Grids, Masks


@cache
def source() -> Trees:
    files = {
        file: file.relative_to(ROOT.parent).with_suffix("").parts for file in ROOT.rglob("*.py")
    }
    dotted = {file: ".".join(parts).removesuffix(".__init__") for file, parts in files.items()}
    return {dotted[file]: ast.parse(file.read_text(encoding="utf-8")) for file in sorted(files)}


@cache
def members() -> Members:
    names, modules, classes = set(), [], set()
    for axis in AXES:
        package = f"ansatz.{axis}"
        if not (ROOT / axis / "registry.py").exists():
            continue
        registry = importlib.import_module(f"{package}.registry").registry
        for name in registry.names():
            found = registry.get(name)
            kind = found if inspect.isclass(found) else type(found)
            names.add(name)
            modules.append(f"{package}.{name}")
            classes |= {f"{package}.{kind.__name__}", f"{kind.__module__}.{kind.__name__}"}
    rows = {
        f"{place}.{node.name}"
        for module, tree in source().items()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and module.startswith(ROWS_OF_ONE_STRUCTURE)
        for place in (module, *ROWS_OF_ONE_STRUCTURE, "ansatz.data")
    }
    return Members(frozenset(names), tuple(modules), frozenset(classes), frozenset(rows))


def package_of(module: str) -> str:
    return ".".join(module.split(".")[:2])


def is_shared(module: str) -> bool:
    return module.count(".") > 0 and module.split(".")[1] in SHARED


def is_name(node: ast.AST, *names: str) -> bool:
    return isinstance(node, ast.Name) and node.id in names


# --- (a) members are known by themselves alone ---------------------------------------------------


def is_of_member(dotted: str, known: Members) -> bool:
    """Whether a module or a name belongs to a member: structures.grid, outcomes.class_scores."""
    if dotted in known.classes:
        return True
    for module in known.modules:
        if re.match(rf"{re.escape(module)}(_\w+)?(\.|:|$)", dotted):
            return dotted.removeprefix(module).split(".")[1:2] != [PUBLIC_OF_A_MEMBER]
    return False


def bound_names(tree: ast.AST) -> dict[str, str]:
    """What an imported name stands for: Grid -> ansatz.structures.Grid."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.asname: a.name for a in node.names if a.asname}
    return found


def spelled(node: ast.AST, bound: dict[str, str]) -> str:
    """The dotted name behind ``Grid`` or ``structures.Grid``; empty for other expressions."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{bound.get(node.value.id, node.value.id)}.{node.attr}"
    return bound.get(node.id, "") if isinstance(node, ast.Name) else ""


def member_imports(tree: ast.AST, known: Members) -> Iterator[Found]:
    """Imports of a member, for types too, and members reached through the package of their axis."""
    bound = bound_names(tree)
    for node in ast.walk(tree):
        dotted: list[str] = []
        if isinstance(node, ast.ImportFrom):
            dotted = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            dotted = [alias.name for alias in node.names]
        elif isinstance(node, ast.Attribute):
            dotted = [spelled(node, bound)]
        elif isinstance(node, ast.Constant) and str(node.value).startswith("ansatz."):
            dotted = [node.value]
        yield from (
            (f"imports {each}", node.lineno) for each in dotted if is_of_member(each, known)
        )


def member_checks(tree: ast.AST, known: Members) -> Iterator[Found]:
    """``isinstance`` and ``issubclass`` on the classes of a member or of its rows."""
    bound = bound_names(tree)
    for node in ast.walk(tree):
        is_call = isinstance(node, ast.Call) and is_name(node.func, "isinstance", "issubclass")
        if is_call and len(node.args) == 2:
            asked = [spelled(part, bound) for part in ast.walk(node.args[1])]
            found = [each for each in asked if each in known.rows or is_of_member(each, known)]
            yield from ((f"{node.func.id} on {each}", node.lineno) for each in found)


def member_words(tree: ast.AST, known: Members) -> Iterator[Found]:
    """A member's name as a string, in a comparison, a pattern, as a key, or looked up."""

    def named(*nodes: ast.AST | None) -> list[str]:
        found = []
        for node in nodes:
            if isinstance(node, ast.Tuple | ast.List | ast.Set):
                found += named(*node.elts)
            elif isinstance(node, ast.Constant) and node.value in known.names - OPTIONS_TOO:
                found.append(node.value)
        return found

    for node in ast.walk(tree):
        words: list[str] = []
        if isinstance(node, ast.Compare):
            words = named(node.left, *node.comparators)
        elif isinstance(node, ast.Dict):
            words = named(*node.keys)
        elif isinstance(node, ast.Subscript) and not is_name(node.value, "Literal"):
            words = named(node.slice)
        elif isinstance(node, ast.MatchValue):
            words = named(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            words = named(*node.args[:1]) if node.func.attr in LOOKUPS else []
        yield from ((f"knows '{word}'", node.lineno) for word in words)


# --- (b) no cycles -------------------------------------------------------------------------------


def for_types_only(tree: ast.AST) -> set[ast.AST]:
    guards = (n for n in ast.walk(tree) if isinstance(n, ast.If))
    typed = (guard for guard in guards if is_name(guard.test, "TYPE_CHECKING"))
    return {node for guard in typed for part in guard.body for node in ast.walk(part)}


def import_graph(trees: Trees) -> dict[str, set[str]]:
    """module -> the modules that it imports, inside functions too."""
    graph = {}
    for module, tree in trees.items():
        found, skipped = set(), for_types_only(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node not in skipped:
                dotted = {f"{node.module}.{alias.name}" for alias in node.names}
                found |= {each if each in trees else str(node.module) for each in dotted}
            elif isinstance(node, ast.Import) and node not in skipped:
                found |= {alias.name for alias in node.names}
        graph[module] = (found & trees.keys()) - {module}
    return graph


def components(graph: dict[str, set[str]]) -> list[set[str]]:
    """The cycles: sets of modules that reach each other (Kosaraju)."""
    back = defaultdict(set)
    for module, others in graph.items():
        for other in others:
            back[other].add(module)

    def walk(start: str, edges: dict[str, set[str]], seen: set[str]) -> list[str]:
        """What can be reached from ``start``, in the order in which it is left."""
        left, stack = [], [(start, iter(edges[start]))]
        seen.add(start)
        while stack:
            rest = stack[-1][1]
            following = next((other for other in rest if other not in seen), None)
            if following is None:
                left.append(stack.pop()[0])
            else:
                seen.add(following)
                stack.append((following, iter(edges[following])))
        return left

    seen: set[str] = set()
    order = [module for start in graph if start not in seen for module in walk(start, graph, seen)]
    seen = set()
    found = [set(walk(start, back, seen)) for start in reversed(order) if start not in seen]
    return [each for each in found if len(each) > 1]


def cyclic_imports(trees: Trees) -> Iterator[tuple[str, Found]]:
    """Imports that lead back to the module that has them."""
    graph = import_graph(trees)
    for cycle in components(graph):
        for module in sorted(cycle):
            for other in sorted(graph[module] & cycle):
                yield module, (f"imports {other}, which leads back", 0)


# --- (c) private names stay at home --------------------------------------------------------------


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in OF_NAMED_TUPLES


def private_names(tree: ast.AST) -> Iterator[str]:
    """The private names that a module defines: functions, classes, attributes, constants."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def foreign_private(trees: Trees) -> Iterator[tuple[str, Found]]:
    """Private names of another package: imported, asked of an object, or by ``getattr``."""
    defined: dict[str, set[str]] = defaultdict(set)
    for module, tree in trees.items():
        defined[package_of(module)] |= {name for name in private_names(tree) if private(name)}
    for module, tree in trees.items():
        here = package_of(module)
        abroad = set().union(*(names for package, names in defined.items() if package != here))
        abroad -= defined[here]
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and package_of(str(node.module)) != here:
                names = [a.name for a in node.names if str(node.module).startswith("ansatz")]
            elif isinstance(node, ast.Attribute) and node.attr in abroad:
                names = [] if is_name(node.value, "self", "cls") else [node.attr]
            elif isinstance(node, ast.Call) and is_name(node.func, "getattr"):
                asked = node.args[1]
                is_abroad = isinstance(asked, ast.Constant) and asked.value in abroad
                names = [asked.value] if is_abroad else []
            else:
                continue
            yield from ((module, (f"uses {n}", node.lineno)) for n in names if private(n))


# --- (d) few parameters --------------------------------------------------------------------------


def long_signatures(tree: ast.AST) -> Iterator[Found]:
    """Functions with more than 12 parameters, ``self`` not counted; constructors may have them."""
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS) and node.name not in ("__init__", "__new__"):
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            count = len(given) - bool(given and given[0].arg in ("self", "cls"))
            if count > MOST_PARAMETERS:
                yield f"{node.name} has {count} parameters", node.lineno


# --- the checks ----------------------------------------------------------------------------------


def in_shared(check) -> Iterator[tuple[str, Found]]:
    for module, tree in source().items():
        if is_shared(module):
            yield from ((module, found) for found in check(tree, members()))


CHECKS = {
    "imports of members": lambda: in_shared(member_imports),
    "isinstance on members": lambda: in_shared(member_checks),
    "names of members": lambda: in_shared(member_words),
    "cycles": lambda: cyclic_imports(source()),
    "private names of other packages": lambda: foreign_private(source()),
    "long signatures": lambda: (
        (module, found) for module, tree in source().items() for found in long_signatures(tree)
    ),
}


@pytest.mark.parametrize("check", CHECKS)
def test_nothing_new_breaks_the_rule(check):
    found = list(CHECKS[check]())
    counts, known = Counter(module for module, _ in found), KNOWN.get(check, {})
    wrong = {module for module in {*counts, *known} if counts[module] != known.get(module, 0)}
    lines = [f"{module}:{line} {what}" for module, (what, line) in found if module in wrong]
    lines += [f"{module}: {known.get(module, 0)} known, {counts[module]} found" for module in wrong]
    assert not wrong, "\n".join(
        [*sorted(lines), "Fewer? python tests/test_axes.py rewrites KNOWN."]
    )


TOY = Members(
    frozenset({"grid", "class"}),
    ("ansatz.structures.grid", "ansatz.outcomes.class"),
    frozenset({"ansatz.structures.Grid", "ansatz.structures.grid.Grid"}),
    frozenset({"ansatz.data.Grids"}),
)


def lines(found: Iterable[Found]) -> list[int]:
    return sorted(line for _, line in found)


def test_the_imports_of_members_are_seen():
    code = """
from ansatz.structures import Grid, Structure
from ansatz.structures.grid.baselines import ridge
import ansatz.structures.grid
from ansatz.outcomes.class_scores import score
from ansatz import structures
structures.Grid()
importlib.import_module("ansatz.structures.grid:Grid")
from ansatz.structures.grid.options import OPTIONS
from ansatz.structures.registry import names
from ansatz.structures.gridlike import other
structures.create(name)
"""
    assert lines(member_imports(ast.parse(code), TOY)) == [2, 3, 4, 5, 7, 8]


def test_isinstance_on_members_is_seen():
    code = """
from ansatz.structures import Grid as G, Structure
isinstance(x, G)
isinstance(x, (int, G | str))
isinstance(x, Structure)
isinstance(x, Grid)
from ansatz import data
issubclass(x, data.Grids)
"""
    assert lines(member_checks(ast.parse(code), TOY)) == [3, 4, 8]


def test_names_of_members_are_seen():
    code = """
x == "grid"
"class" != x
x in ("grid", "vector", "class")
{"grid": 1, "other": 2}
table["grid"]
registry.get("grid")
match x:
    case "grid": pass
name: Literal["grid", "class"] = "grid"
fit(structure="grid")
x == "gridlike"
say("the grid")
"""
    assert lines(member_words(ast.parse(code), TOY)) == [2, 3, 4, 4, 5, 6, 7, 9]


def trees(**modules: str) -> Trees:
    return {f"ansatz.{name.replace('__', '.')}": ast.parse(code) for name, code in modules.items()}


def test_cycles_are_seen_through_lazy_imports_and_not_through_types():
    found = trees(
        a="from ansatz.b import x",
        b="def f():\n    import ansatz.c",
        c="from ansatz import a, d",
        d="if TYPE_CHECKING:\n    from ansatz import a",
        e="from ansatz.a import y",
    )
    assert [module for module, _ in cyclic_imports(found)] == ["ansatz.a", "ansatz.b", "ansatz.c"]
    assert not list(cyclic_imports(trees(a="import ansatz.b", b="import ansatz.c", c="")))


def test_private_names_of_other_packages_are_seen():
    found = trees(
        here__a="class A:\n    def _own(self): self._kept = self._own()\n_CONSTANT = 1",
        here__b="from ansatz.here.a import _CONSTANT\na._own()",
        there__a="from ansatz.here.a import _CONSTANT, A\na._own()\ngetattr(a, '_kept')\n"
        "self._own()\na._asdict()\ntorch._foreach()",
    )
    where = sorted((module, line) for module, (_, line) in foreign_private(found))
    assert where == [("ansatz.there.a", line) for line in (1, 2, 3)]


def test_long_signatures_are_seen():
    many = ", ".join(f"x{k}" for k in range(12))
    code = f"def f({many}, *, y): pass\ndef g({many}, *args, **options): pass\n"
    code += f"class A:\n    def __init__(self, {many}, y): pass\n    def h(self, {many}): pass\n"
    assert lines(long_signatures(ast.parse(code))) == [1]


def test_the_members_are_those_of_the_registries():
    assert {"vector", "grid", "point", "ensemble"} <= members().names
    assert is_of_member("ansatz.structures.Grid", members())
    assert not is_of_member("ansatz.structures.registry.names", members())


def main() -> None:
    """Rewrites KNOWN in this file by what is found, where no sum grows."""
    counts = {check: Counter(module for module, _ in find()) for check, find in CHECKS.items()}
    for check, found in counts.items():
        before = sum(KNOWN.get(check, {}).values())
        if found.total() > before and "--new-members" not in sys.argv:
            sys.exit(f"{check}: {found.total()} found, {before} known. It may only shrink.")
    body = "".join(
        f'    "{check}": {{\n'
        + "".join(f'        "{module}": {found[module]},\n' for module in sorted(found))
        + "    },\n"
        for check, found in counts.items()
        if found
    )
    known = f"KNOWN: dict[str, dict[str, int]] = {{{body and chr(10)}{body}}}\n"
    text = Path(__file__).read_text(encoding="utf-8")
    text = re.sub(r"(?ms)^KNOWN: .*?\}\n(?=\n)", lambda _: known, text, count=1)
    Path(__file__).write_text(text, encoding="utf-8")
    print({check: found.total() for check, found in counts.items()})


if __name__ == "__main__":
    main()
