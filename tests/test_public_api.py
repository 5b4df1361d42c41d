"""What users may call is written down; a change of it is made on purpose, or not at all."""

import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

GOLDEN = Path(__file__).with_name("public_api.txt")
REFRESH = "python tests/test_public_api.py"
PACKAGES = (
    "ansatz",
    "ansatz.attribution",
    "ansatz.claims",
    "ansatz.connectionism",
    "ansatz.data",
    "ansatz.data.augmentation",
    "ansatz.diagnostics",
    "ansatz.errors",
    "ansatz.estimators",
    "ansatz.figures",
    "ansatz.fitting",
    "ansatz.generative",
    "ansatz.generative.diffusion",
    "ansatz.generative.registration",
    "ansatz.inference",
    "ansatz.inference.samplers",
    "ansatz.kernels",
    "ansatz.layers",
    "ansatz.layers.graphs",
    "ansatz.likelihoods",
    "ansatz.linear",
    "ansatz.metrics",
    "ansatz.networks",
    "ansatz.networks.graphs",
    "ansatz.onnx",
    "ansatz.optim",
    "ansatz.outcomes",
    "ansatz.report",
    "ansatz.seeds",
    "ansatz.spec",
    "ansatz.structures",
    "ansatz.symmetry",
    "ansatz.theory",
    "ansatz.theory.graphs",
    "ansatz.training",
    "ansatz.tuning",
)


def call(member: object) -> str:
    """Names, kinds and defaults. Annotations may be sharpened without breaking anyone."""
    try:
        parameters = inspect.signature(member).parameters.values()
    except (TypeError, ValueError):
        return "(...)"
    shown: list[str] = []
    for each in parameters:
        if each.kind is each.KEYWORD_ONLY and not any(word.startswith("*") for word in shown):
            shown.append("*")
        stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        shown.append(f"{stars}{each.name}{default(each)}")
    return f"({', '.join(shown)})"


def default(parameter: inspect.Parameter) -> str:
    if parameter.default is parameter.empty:
        return ""
    text = repr(parameter.default)
    return "=..." if " at 0x" in text else f"={text}"


def is_ours(member: object) -> bool:
    return str(getattr(member, "__module__", "")).split(".")[0] == "ansatz"


def methods(name: str, kind: type) -> Iterator[str]:
    """Public methods and properties, the inherited ones of our own classes included."""
    seen: set[str] = set()
    for base in kind.__mro__:
        if not is_ours(base):
            continue
        for key, value in vars(base).items():
            if key.startswith("_") or key in seen:
                continue
            seen.add(key)
            if isinstance(value, property):
                yield f"{name}.{key}"
            elif isinstance(value, staticmethod | classmethod):
                yield f"{name}.{key}{call(getattr(kind, key))}"
            elif inspect.isfunction(value):
                yield f"{name}.{key}{call(value)}"


def entries() -> Iterator[str]:
    for package in PACKAGES:
        module = importlib.import_module(package)
        for key in dir(module):
            member = getattr(module, key)
            if key.startswith("_") or inspect.ismodule(member):
                continue
            if is_defined_elsewhere(package, member):
                continue
            name = f"{package}.{key}"
            if inspect.isclass(member):
                yield name + call(member)
                yield from methods(name, member)
            elif callable(member):
                yield name + call(member)
            else:
                yield name


def is_defined_elsewhere(package: str, member: object) -> bool:
    """A module at the root lists what it imports too; a folder lists only what it offers."""
    module = importlib.import_module(package)
    folder = hasattr(module, "__path__")
    return not folder and getattr(member, "__module__", None) != package


def public_api() -> str:
    return "".join(f"{line}\n" for line in sorted(set(entries())))


def test_the_public_api_is_what_was_announced():
    announced, found = GOLDEN.read_text(encoding="utf-8"), public_api()
    gone = sorted(set(announced.splitlines()) - set(found.splitlines()))
    new = sorted(set(found.splitlines()) - set(announced.splitlines()))
    changes = "\n".join([*(f"- {line}" for line in gone), *(f"+ {line}" for line in new)])
    assert announced == found, (
        f"the public API changed:\n{changes}\n"
        f"If that is meant, say so in CHANGELOG.md and refresh the golden file: {REFRESH}"
    )


def test_every_package_is_watched():
    import ansatz

    folders = {f"ansatz.{file.parent.name}" for file in Path(ansatz.__file__).parent.glob("*/*.py")}
    internal = {"ansatz.bench", "ansatz.cli", "ansatz.storage"}
    assert folders - internal <= set(PACKAGES)


if __name__ == "__main__":
    GOLDEN.write_text(public_api(), encoding="utf-8")
    print(f"wrote {GOLDEN}", file=sys.stderr)
