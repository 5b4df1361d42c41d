"""The table of options that ``--set`` accepts."""

import inspect
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from ansatz.cli.docstring import Docstring
from ansatz.cli.formula import plain_text
from ansatz.cli.names import registry_of
from ansatz.cli.output import print_document, print_line, print_table
from ansatz.errors import UsageError


class SettingRow(NamedTuple):
    """One option that ``--set`` accepts."""

    name: str
    owner: str  # before the dot, where several have an option of this name
    default: str  # empty where the recipe or the data decide
    meaning: str


def print_settings(name: str, kind: str, as_json: bool) -> None:
    """Prints what ``--set`` accepts beside a network or a likelihood."""
    rows = list(settings(name, kind))
    if as_json:
        print_document([row._asdict() for row in rows])
        return
    print_table(["--set", "of", "default", "meaning"], rows, limit=100)
    print_line()
    print_line("Values are JSON: --set widths=[64,64] --set activation=relu --set dropout=0.1")


def settings(name: str, kind: str) -> Iterator[SettingRow]:
    """Lists the options of a network or a likelihood, then those of the fit by their owners.

    Of an inference they are its own alone.
    """
    from ansatz.fitting.options import declared
    from ansatz.fitting.request import OWNERS
    from ansatz.fitting.unknown_settings import SUPPLIED

    if kind == "inferences":
        yield from inference_settings(name)
        return
    owner = {"networks": "network", "likelihoods": "likelihood"}.get(kind)
    if owner is None:
        raise UsageError(
            f"--options: for networks, likelihoods and inferences; '{name}' is of the {kind}."
        )
    own = [row for row in _parameters(name, kind, owner) if row.name not in SUPPLIED]
    yield from own
    seen = {row.name for row in own}
    for each in OWNERS.values():
        if each.name == "network":  # those of the default network
            continue
        for table in each.settings:
            for option, (_, found) in declared(table).items():
                key = f"{each.name}.{option}" if option in seen else option
                yield SettingRow(key, each.name, "", found.help)


def inference_settings(name: str) -> Iterator[SettingRow]:
    """Lists the options that an inference reads, with their defaults in the words of the fit."""
    from ansatz.fitting.options import declared
    from ansatz.fitting.options.commands import InferenceSettings

    read = registry_of("inferences").get(name).settings
    for option, (_, found) in declared(InferenceSettings).items():
        if option in read:
            yield SettingRow(option, "inference", "", found.help)


def _parameters(name: str, kind: str, owner: str) -> Iterator[SettingRow]:
    """The parameters of a factory, with the words of its docstring."""
    member = registry_of(kind).get(name)
    words = _meanings(Docstring.of(member).sections.get("args", ""))
    for each in inspect.signature(member).parameters.values():
        if each.kind in (each.VAR_KEYWORD, each.VAR_POSITIONAL):
            continue
        default = "" if each.default in (each.empty, None) else _shown(each.default)
        yield SettingRow(each.name, owner, default, words.get(each.name, ""))


def _meanings(args: str) -> dict[str, str]:
    """The sentences of an ``Args`` section by name."""
    found = re.findall(r"^(\w+): ((?:.|\n(?=\s))*)", args, flags=re.MULTILINE)
    return {name: " ".join(plain_text(text).split()) for name, text in found}


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else str(value).replace("(", "[").replace(")", "]")
