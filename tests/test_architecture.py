"""The imports point down, the start is light, every public name explains itself by an example."""

import ast
import importlib
import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ansatz

ROOT = Path(ansatz.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# Who may import whom. The modules at the root of the package are for all.
FOUNDATION = {"arrays", "errors", "facts", "registry", "seeds", "spec"}
BUILDING = {"layers", "metrics", "optim", "likelihoods", "data", "storage"}
AXES = {"structures", "outcomes", "inference"}  # their registries; members find each other by name
ALLOWED = {
    "layers": set(),
    "metrics": set(),
    "optim": set(),
    "theory": set(),
    "kernels": {"layers", "networks"},
    "symmetry": {"layers"},
    "attribution": {"layers"},
    "likelihoods": set(),
    "storage": set(),
    "figures": {"storage"},  # how drawings and pages look: no model in it
    "data": {"layers", "storage"},  # ragged rows of numbers
    "networks": {"layers", "storage", "figures"},
    "connectionism": {"layers", "metrics"},
    "training": BUILDING | {"networks"},
    "linear": BUILDING | {"networks", "training"},
}
BELOW = BUILDING | {"networks", "training", "linear"}
ALLOWED["fitting"] = BELOW | AXES
ALLOWED |= dict.fromkeys(AXES, BELOW | AXES | {"symmetry", "kernels", "fitting", "theory"})
for _axis in ("outcomes", "generative"):  # models of x itself
    ALLOWED[_axis] = ALLOWED["structures"] | {"generative"}
PIPELINE = ALLOWED["structures"]
ALLOWED["report"] = PIPELINE | {"generative", "figures", "attribution"}  # never an estimator
# A model offers its own report: the method imports what draws it when it is called.
ALLOWED["estimators"] = PIPELINE | {"generative", "report"}
ALLOWED["onnx"] = PIPELINE
ALLOWED["generative"] = PIPELINE
ALLOWED["tuning"] = PIPELINE | {"report", "estimators"}
ALLOWED["diagnostics"] = set()  # names its modules, which are imported when they are used
# What measures and what faces the user may import all of it; nobody imports the command line.
ALLOWED["bench"] = set(ALLOWED)
ALLOWED["claims"] = set(ALLOWED) - {"bench", "onnx", "tuning"}
ALLOWED["cli"] = set(ALLOWED)

# Seconds each: imported inside the function that needs them, never when a module is imported.
LAZY = {"pandas", "pyarrow", "PIL", "matplotlib", "sklearn", "narwhals", "polars", "tensorboard"}
LAZY |= {"optuna"}
SKLEARN_FACE = {"sklearn", "pandas"}
# Estimators inherit from sklearn's classes, and what they hand on is read as sklearn reads it.
SKLEARN_FOLDERS = {"estimators", "connectionism", "fitting", "structures", "outcomes"}
SKLEARN_FOLDERS |= {"generative"}

POSIX_ONLY = {
    "os": "fork forkpty getuid geteuid getgid getegid getgroups setuid setsid getpgid killpg "
    "getloadavg sched_getaffinity sched_setaffinity statvfs fchown chown lchown mkfifo mknod "
    "posix_fadvise posix_fallocate pread pwrite sync wait3 wait4 WIFEXITED nice sysconf uname "
    "O_DIRECTORY O_NOFOLLOW O_CLOEXEC O_NONBLOCK".split(),
    "signal": "SIGKILL SIGHUP SIGALRM SIGUSR1 SIGUSR2 SIGPIPE SIGQUIT SIGCHLD SIGSTOP SIGCONT "
    "alarm setitimer pause sigwait pthread_kill pthread_sigmask".split(),
}
POSIX_MODULES = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog"}


def parse(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"), filename=str(file))


def folder_of(file: Path) -> str:
    """The folder whose rules hold; a member's parts of the report are parts of the report."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    return "report" if parts[0] in AXES and "report" in parts else parts[0]


def for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imports(tree: ast.AST, *, inside_functions: bool) -> Iterator[tuple[int, str]]:
    """(line, dotted module) of every import that runs; those for the type checker do not."""
    todo = list(ast.iter_child_nodes(tree))
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        elif for_types_only(node):
            todo += node.orelse
        elif inside_functions or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            todo += ast.iter_child_nodes(node)


def own_imports(file: Path) -> Iterator[tuple[int, str]]:
    """(line, folder) of every import from this package."""
    tree = parse(file)
    for line, module in imports(tree, inside_functions=True):
        package, *rest = module.split(".")
        if package == "ansatz" and rest:
            yield line, "estimators" if rest[0] in ansatz._NAMES else rest[0]
    for node in ast.walk(tree):  # `import ansatz` means what is then asked of it
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "ansatz":
            yield node.lineno, "estimators" if node.attr in ansatz._NAMES else node.attr


def test_imports_point_down():
    wrong = []
    for file in FILES:
        here = folder_of(file)
        if here in ("__init__", "__main__"):
            continue
        below = set() if here in FOUNDATION else ALLOWED[here]
        allowed = FOUNDATION | below | {here, "__version__"}
        wrong += [
            f"{file.relative_to(ROOT)}:{line} imports ansatz.{folder}"
            for line, folder in own_imports(file)
            if folder not in allowed
        ]
    assert not wrong, "\n".join(wrong)


def homes() -> set[str]:
    """The folder of each structure, and the module of each outcome and inference."""
    found = set()
    for axis in AXES:
        registry = importlib.import_module(f"ansatz.{axis}").registry
        modules = {registry.get(name).__module__ for name in registry.names()}
        inside = (module for module in modules if module.startswith(f"ansatz.{axis}."))
        found |= {module.removesuffix(".structure") for module in inside}
    return found


def is_at_home(module: str, home: str) -> bool:
    return f"{module}.".startswith(f"{home}.")


def test_members_of_the_axes_do_not_know_each_other():
    known, wrong = homes(), []
    assert {"ansatz.structures.vector", "ansatz.inference.ensemble"} <= known
    for file in (file for axis in AXES for file in (ROOT / axis).rglob("*.py")):
        here = ".".join(("ansatz", *file.relative_to(ROOT).with_suffix("").parts))
        wrong += [
            f"{file.relative_to(ROOT)}:{line} imports {module}"
            for line, module in imports(parse(file), inside_functions=True)
            for home in known
            if is_at_home(module, home) and not is_at_home(here, home)
        ]
    assert not wrong, "\n".join(wrong)


def test_every_folder_has_its_place():
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert folders <= set(ALLOWED)


def test_heavy_packages_are_imported_where_they_are_used():
    wrong = []
    for file in FILES:
        heavy = LAZY - SKLEARN_FACE if folder_of(file) in SKLEARN_FOLDERS else LAZY
        heavy = heavy | {"torch", "scipy", "numpy"} if folder_of(file) == "cli" else heavy
        for line, module in imports(parse(file), inside_functions=False):
            if module.split(".")[0] in heavy:
                wrong.append(f"{file.relative_to(ROOT)}:{line} imports {module} at the top")
    assert not wrong, "\n".join(wrong)


def test_a_table_of_contents_holds_imports_only():
    for file in ROOT.glob("*/__init__.py"):
        docstring, *body = parse(file).body
        assert isinstance(docstring, ast.Expr), f"{file}: says in a docstring what the folder is"
        if any(getattr(node, "name", None) == "__getattr__" for node in body):  # some are lazy
            body = [node for node in body if isinstance(node, ast.ImportFrom) and node.level == 0]
            body = [node for node in body if node.module != "typing"]
        for node in body:
            assert isinstance(node, ast.ImportFrom), f"{file}:{node.lineno} is not an import"
            for alias in node.names:
                assert alias.asname == alias.name, f"{file}:{node.lineno} import X as X"


def test_no_drawer_for_odds_and_ends():
    drawers = {"utils", "util", "helpers", "helper", "common", "misc", "tools"}
    assert not [file for file in FILES if file.stem in drawers]


IMPORTING = ["import ansatz", "import ansatz; dir(ansatz)"]
RUNNING = {  # arguments -> exit status
    ("--help",): 0,
    ("--version",): 0,
    ("fit", "--help"): 0,
    ("predict", "--help"): 0,
    ("show", "--help"): 0,
    ("data", "--help"): 0,
    ("fti",): 2,
    ("fit", "--targt", "y"): 2,
    ("fit", "houses.csv"): 2,
    ("fit", ".", "--target", "y", "--out", "."): 2,
    ("predict", "model", "data", "--interval", "2"): 2,
    ("list", "likelyhoods"): 2,
}


def test_starts_without_the_heavy_libraries():
    """One after another in one process: what none of them imports, each starts without."""
    heavy = "{'torch', 'pandas', 'sklearn', 'scipy', 'numpy', 'matplotlib', 'safetensors'}"
    steps = [
        *IMPORTING,
        *(
            f"from ansatz.cli.main import run; assert run({list(words)}) == {status}"
            for words, status in RUNNING.items()
        ),
        "from ansatz.cli.names import complete; complete('likelihoods')('n')",
    ]
    check = f"import sys\nfor step in {steps!r}:\n    exec(step)\n"
    check += f"    found = {heavy} & set(sys.modules)\n    assert not found, (step, found)"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_table_is_fitted_without_a_reader_of_images(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{i % 7},{i % 5}.5\n" for i in range(60)))
    words = ["fit", "t.csv", "--target", "y", "--likelihood", "normal", "--network", "linear"]
    check = f"""
import sys
from ansatz.cli.main import run
assert run({[*words, "--out", "m", "-q"]}) == 0
grids = "ansatz.data.grids"
readers = {{"PIL", f"{{grids}}.read", f"{{grids}}.image", "ansatz.structures.grid.structure"}}
assert not readers & set(sys.modules), readers & set(sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr


def guards(node: ast.AST) -> bool:
    """An ``if`` on the platform or the name's presence, or a ``try`` that expects its absence."""
    if isinstance(node, ast.If | ast.IfExp):
        test = ast.unparse(node.test)
        return any(word in test for word in ("os.name", "sys.platform", "hasattr", "platform."))
    if isinstance(node, ast.Try):
        caught = " ".join(ast.unparse(h.type) for h in node.handlers if h.type)
        return "ImportError" in caught or "AttributeError" in caught or "ModuleNotFound" in caught
    return False


def leaves(node: ast.AST) -> bool:
    return guards(node) and isinstance(node.body[-1], ast.Return | ast.Raise | ast.Continue)


def posix_only(node: ast.AST) -> Iterator[tuple[int, str]]:
    if guards(node):
        return
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        if node.attr in POSIX_ONLY.get(node.value.id, ()):
            yield node.lineno, f"{node.value.id}.{node.attr}"
    if isinstance(node, ast.Import):
        yield from ((node.lineno, a.name) for a in node.names if a.name in POSIX_MODULES)
    if isinstance(node, ast.ImportFrom):
        names = [a.name for a in node.names if a.name in POSIX_ONLY.get(node.module or "", ())]
        names += [node.module] if node.module in POSIX_MODULES else []
        yield from ((node.lineno, name) for name in names)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and leaves(child):
            return  # the other system has left: what follows is for this one
        yield from posix_only(child)


def test_no_posix_only_call_without_its_windows_branch():
    wrong = [
        f"{file.relative_to(ROOT)}:{line} {name}"
        for file in FILES
        for line, name in posix_only(parse(file))
    ]
    assert not wrong, "\n".join(wrong)


def test_the_posix_check_sees_what_it_is_for():
    code = """
import os, fcntl
os.fork()
if hasattr(os, 'getuid'):
    os.getuid()
def f():
    if os.name == "nt":
        return
    os.fork()
"""
    assert sorted(posix_only(ast.parse(code))) == [(2, "fcntl"), (3, "os.fork")]


def test_the_direction_check_sees_what_it_is_for(tmp_path):
    file = tmp_path / "a.py"
    file.write_text("import ansatz\nfrom ansatz.cli.main import run\nansatz.fit\n")
    assert list(own_imports(file)) == [(2, "cli"), (3, "estimators")]


def modules() -> list[str]:
    dotted = (".".join(("ansatz", *f.relative_to(ROOT).with_suffix("").parts)) for f in FILES)
    return [name.removesuffix(".__init__") for name in dotted if not name.endswith("__main__")]


def has_example(member: object) -> bool:
    text = inspect.getdoc(member) or ""
    return "Example:" in text or ">>>" in text


def without_example(name: str) -> list[str]:
    """What a module lacks: a docstring, or of a table of contents an example of a listed name."""
    module = importlib.import_module(name)
    if not module.__doc__:
        return [f"{name} has no docstring"]
    if not hasattr(module, "__path__") or name == "ansatz.storage":  # not for users
        return []
    listed = [getattr(module, each) for each in dir(module) if not each.startswith("_")]
    lacking = {
        member.__qualname__
        for member in listed
        if (inspect.isclass(member) or inspect.isfunction(member))
        and str(getattr(member, "__module__", "")).startswith("ansatz")
        and not has_example(member)
    }
    return [f"{name}: no docstring with an example: {member}" for member in sorted(lacking)]


@pytest.mark.parametrize("folder", sorted({".".join(name.split(".")[:2]) for name in modules()}))
def test_every_listed_name_has_a_docstring_with_an_example(folder):
    inside = [name for name in modules() if f"{name}.".startswith(f"{folder}.")]
    if folder == "ansatz":
        inside = ["ansatz"]
    lacking = [line for name in inside for line in without_example(name)]
    assert not lacking, "\n".join(lacking)


def test_every_listed_name_of_the_package_exists():
    for name in dir(ansatz):
        assert getattr(ansatz, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'fitt'"):
        ansatz.fitt  # noqa: B018


def test_a_broken_torchvision_breaks_nothing(tmp_path):
    """Measured: a torchvision for another torch raises RuntimeError, not ImportError, at import."""
    (tmp_path / "torchvision").mkdir()
    (tmp_path / "torchvision" / "__init__.py").write_text(
        "raise RuntimeError('operator torchvision::nms does not exist')"
    )
    names = ", ".join(name for name in modules() if not name.startswith("ansatz.cli"))
    path = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    code = f"import {names}; from ansatz.cli.main import run; assert run(['list']) == 0"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
