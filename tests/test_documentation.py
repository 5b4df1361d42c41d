"""The examples in README.md and docs/ run as pasted, and print what the page says they print.

A block of ``console`` runs each line after ``$ `` and compares what follows it; ``...`` stands for
anything, as in a doctest. A block of ``python`` is a doctest when it has prompts, else a program.
All blocks of a page share one folder and one namespace. A block under ``<!-- not run: why -->`` is
left alone; one under ``<!-- needs data -->`` runs where ``ANSATZ_DATA`` names the published files.
"""

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from ansatz.cli.main import run

ROOT = Path(__file__).parents[1]
PAGES = [
    path for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))] if path.exists()
]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
BLOCK = re.compile(
    r"(?P<skip><!-- (?:not run: [^>]+|needs data) -->\s*\n)?"
    r"^```(?P<kind>python|console)\n(?P<text>.*?)^```",
    re.MULTILINE | re.DOTALL,
)
NOT_OURS = {"make", "pip", "git", "python3", "cd", "source", "export"}  # the machine's own affairs


class Block(NamedTuple):
    kind: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(found["kind"], found["text"], text[: found.start("text")].count("\n") + 1)
        for found in BLOCK.finditer(text)
        if not found["skip"] or ("needs data" in found["skip"] and "ANSATZ_DATA" in os.environ)
    ]


def commands(text: str) -> list[tuple[str, str]]:
    r"""(command, expected output) of a console block; a trailing backslash continues a command."""
    found: list[tuple[str, str]] = []
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            found.append((line[2:].strip(), ""))
        elif found:
            found[-1] = (found[-1][0], f"{found[-1][1]}{line}\n")
    return found


def shell(command: str) -> tuple[int, str]:
    """A pipeline, in a shell that finds this environment's ansatz."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, env={**os.environ, "PATH": path}
    )
    return done.returncode, done.stdout or done.stderr


def outcome(command: str, capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    if any(sign in command for sign in "|><;&") or not command.startswith("ansatz "):
        return shell(command)
    capfd.readouterr()
    status = run(shlex.split(command, comments=True)[1:])
    out, err = capfd.readouterr()
    return status, out or err


def check_console(page: Path, block: Block, capfd: pytest.CaptureFixture[str]) -> None:
    for command, expected in commands(block.text):
        if command.split()[0] in NOT_OURS:
            continue
        status, output = outcome(command, capfd)
        where = f"{page.name}, block at line {block.line}: $ {command}"
        assert status == 0 or "ansatz:" in expected, f"{where}\nexit status {status}\n{output}"
        if expected.strip():
            matches = doctest.OutputChecker().check_output(expected.strip(), output.strip(), FLAGS)
            assert matches, f"{where}\nthe page says\n{expected}\nit prints\n{output}"


def check_python(page: Path, block: Block, names: dict[str, object]) -> None:
    if ">>>" not in block.text:
        exec(compile("\n" * block.line + block.text, str(page), "exec"), names)
        return
    test = doctest.DocTestParser().get_doctest(block.text, names, page.name, str(page), block.line)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(test, out=report.append, clear_globs=False)
    names.update(test.globs)
    assert not runner.failures, "".join(report)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run_as_pasted(page, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    torch.set_default_dtype(torch.float32)  # what a user has
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.kind == "console":
            check_console(page, block, capfd)
        else:
            check_python(page, block, names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if not (page.parent / link).exists()]
    assert not missing, f"{page.name}: {missing}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_one_title_and_opens_with_words(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert len(re.findall(r"^# ", text, re.M)) == 1
    assert re.match(r"# .+\n\n[A-Z*`]", text), "a page opens with a sentence"


def test_a_console_block_is_commands_and_their_output():
    text = "$ ansatz list \\\n  likelihoods\nname\n$ ansatz doctor\n"
    assert commands(text) == [("ansatz list    likelihoods", "name\n"), ("ansatz doctor", "")]


def luminance(color: str) -> float:
    """The relative luminance of ``#rrggbb``, as WCAG 2 defines it."""
    shares = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_that_of_the_standard():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", ["default", "slate"])
@pytest.mark.parametrize("link", ["typeset-a", "accent-fg"])
@pytest.mark.parametrize("ground", ["default-bg", "code-bg"])
def test_links_can_be_read_in_light_and_dark(scheme, link, ground):
    css = (ROOT / "docs" / "site" / "style.css").read_text(encoding="utf-8")
    block = re.search(rf'\[data-md-color-scheme="{scheme}"\] {{(.*?)}}', css, re.DOTALL)[1]
    colors = dict(re.findall(r"--md-([\w-]+)-color: (#[0-9a-f]{6});", block))
    assert contrast(colors[link], colors[ground]) >= 4.5
