"""No line of the library can run code that came in a file, or skip a check (S6)."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"

MODULES = {
    "pickle", "_pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "runpy",
    "code", "codeop",
}  # fmt: skip
CALLS = {
    "eval", "exec", "compile", "__import__", "builtins.eval", "builtins.exec", "torch.load",
    "torch.jit.load", "torch.package.PackageImporter", "torch.hub.load", "torch.serialization.load",
    "os.system", "os.popen", "yaml.load", "yaml.unsafe_load", "yaml.full_load",
    "pandas.read_pickle",
    "importlib.import_module", "numpy.load", "ssl._create_unverified_context",
    "subprocess.getoutput", "subprocess.getstatusoutput", "torch.distributed.checkpoint.load",
}  # fmt: skip
METHODS = {"extractall", "read_pickle", "to_pickle", "unpack_archive"}
KEYWORDS = {"shell": True, "allow_pickle": True, "verify": False, "weights_only": False,
            "trust_remote_code": True}  # fmt: skip

# Place -> why it is safe. A file's own names never reach these calls.
ALLOWED = {
    ("ansatz/registry.py", "importlib.import_module"): "addresses written in our own tables",
    ("ansatz/cli/names.py", "importlib.import_module"): "the registries, by a table in that file",
    ("ansatz/cli/doctor.py", "importlib.import_module"): "optional packages, listed in that file",
    ("ansatz/data/package_files.py", "importlib.import_module"): "readers, by a table in that file",
    ("ansatz/networks/checkpoint.py", "torch.load"): "weights_only=True, tested with canaries",
}


def findings(tree):
    """The forbidden names that a module uses, whatever it calls them."""
    names = {}  # local name -> what it stands for
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
                yield from forbidden_module(node, alias.name)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                yield from forbidden_module(node, f"{node.module}.{alias.name}")
    for node in ast.walk(tree):
        # Any mention counts, not only a call: `reader = torch.load` would be the way around.
        if isinstance(node, ast.Name | ast.Attribute):
            name = dotted(node, names)
            if name in CALLS and not is_tame(tree, node, name):
                yield node.lineno, name
            if isinstance(node, ast.Attribute) and node.attr in METHODS:
                yield node.lineno, node.attr
        elif isinstance(node, ast.keyword) and node.arg in KEYWORDS:
            value = node.value.value if isinstance(node.value, ast.Constant) else None
            if value is None or value == KEYWORDS[node.arg]:  # a variable may be anything
                yield node.value.lineno, f"{node.arg}={ast.unparse(node.value)}"


def forbidden_module(node, name):
    if name.partition(".")[0] in MODULES:
        yield node.lineno, name.partition(".")[0]


def dotted(node, names):
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([names.get(node.id, node.id), *reversed(parts)])


def is_tame(tree, node, name):
    """Calls that say themselves why they are harmless."""
    call = next((c for c in ast.walk(tree) if isinstance(c, ast.Call) and c.func is node), None)
    if call is None:
        return False
    if name == "numpy.load":
        said = {k.arg: getattr(k.value, "value", None) for k in call.keywords}
        return said.get("allow_pickle") is False
    if name == "importlib.import_module" and call.args:  # a literal, or a part of a named package
        first = call.args[0].values[0] if isinstance(call.args[0], ast.JoinedStr) else None
        whole = isinstance(call.args[0], ast.Constant)
        return whole or (isinstance(first, ast.Constant) and "." in first.value)
    return False


def of(text):
    return [name for _, name in findings(ast.parse(text))]


def test_nothing_forbidden_is_in_the_source():
    found, files = [], sorted(SOURCE.rglob("*.py"))
    for path in files:
        place = path.relative_to(SOURCE).as_posix()
        for line, name in findings(ast.parse(path.read_text(encoding="utf-8"))):
            if (place, name) not in ALLOWED:
                found.append(f"{place}:{line}: {name}")
    assert len(files) > 10 and found == []


def test_what_is_allowed_is_still_there():
    for place, name in ALLOWED:
        assert name in of((SOURCE / place).read_text(encoding="utf-8")), (place, name)


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "import pickle as p",
        "from pickle import loads",
        "def f():\n    import joblib",
        "import cloudpickle.compat",
        "import marshal",
        "import torch\ntorch.load(f)",
        "import torch as t\nt.load(f)",
        "from torch import load\nload(f)",
        "from torch import load as read\nread(f)",
        "import torch\nread = torch.load",
        "import torch.jit\ntorch.jit.load(f)",
        "eval(text)",
        "exec(text)",
        "run = eval",
        "__import__(name)",
        "import importlib\nimportlib.import_module(name)",
        "from importlib import import_module\nimport_module(name)",
        "import importlib\nimportlib.import_module(f'{name}.x')",
        "import importlib\nimportlib.import_module(f'py{name}')",
        "import os\nos.system('ls')",
        "import os\nos.popen('ls')",
        "import yaml\nyaml.load(f)",
        "import numpy as np\nnp.load(f)",
        "import numpy as np\nnp.load(f, allow_pickle=True)",
        "import numpy as np\nnp.load(f, allow_pickle=flag)",
        "import pandas as pd\npd.read_pickle(f)",
        "import subprocess\nsubprocess.run(c, shell=True)",
        "session.get(url, verify=False)",
        "archive.extractall(folder)",
        "read(f, weights_only=False)",
    ],
)
def test_the_lint_finds(text):
    assert of(text)


@pytest.mark.parametrize(
    "text",
    [
        "network.eval()",
        "import re\nre.compile('x')",
        "import json\njson.load(f)",
        "import safetensors.torch\nsafetensors.torch.load(b)",
        "import numpy as np\nnp.load(f, allow_pickle=False)",
        "import yaml\nyaml.safe_load(f)",
        "import importlib\nimportlib.import_module('pyarrow')",
        "import importlib\nimportlib.import_module(f'pyarrow.{part}')",
        "import subprocess\nsubprocess.run(c, shell=False)",
        "import torch\ntorch.compile(network)",
        "'pickle, eval( and torch.load( in a text'",
        "import ansatz\nansatz.load(folder)",
    ],
)
def test_the_lint_lets_pass(text):
    assert of(text) == []
