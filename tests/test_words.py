"""The documentation and the strings of the library use the field's own words.

`WORDS` lists words of an old dialect and what to write instead. The check reads the pages, and in
the source every string literal, docstrings included; names in code are not read. In a page, code
(between backquotes or in blocks) is not read either. `ALLOWED` lists the uses that are meant.
"""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]

COMPARED = "longer|more|less|better|worse|fewer|further|larger|smaller|surer"
# Pattern -> what to write instead.
WORDS = {
    r"judg(?:e|es|ed|ing|ement|ements)": "evaluate, evaluation, score",
    r"rivals?": "baseline",
    r"(?:is|are|was|were|be|been|being) (?:said|told)|told|tells? apart": "report, warn, note",
    r"learn(?:ed|t|s|ing)? from": "train on, training rows",
    r"set aside": "held out",
    r"parted|parting": "split",
    r"copies of (?:rows?|images?|examples?)|copied rows": "duplicate rows",
    r"spreads?": "standard deviation, scale, dispersion",
    r"pieces?": "bin, tile, crop, chunk",
    r"cells?": "pixel, voxel, sample",
    r"laws?": "likelihood, distribution",
    r"so many": "number of",
    rf"(?<!there )(?:is|are|was|were) no (?!{COMPARED})\w+": "is not a",
    r"rests? on": "attribution",
    r"rehears(?:e|es|ed|al|ing)": "validate",
    r"posing|(?:is|are) posed": "build the problem",
    r"uses (?:of columns|columns)|the uses": "column roles",
    r"means? nothing": "reject",
    r"documents? [A-D]": "the paper or textbook",
}


class Use(NamedTuple):
    """A use of a listed word that is meant."""

    where: str  # how the path begins; "" for everywhere
    phrase: str  # a pattern that covers the word
    why: str


# "Cell" means a pixel, a voxel or a sample where all three are meant (docs/glossary.md).
GRIDS = [
    *("docs/attribution.md", "docs/convolution.md", "docs/glossary.md"),
    *("src/ansatz/fitting/contracts/exporter.py", "src/ansatz/layers/convolution.py"),
    *("src/ansatz/layers/output_size.py", "src/ansatz/layers/pooling.py"),
    *("src/ansatz/onnx/", "src/ansatz/spec.py", "src/ansatz/training/objectives.py"),
]
TABLES = [  # and also a place in a row and a column
    *("docs/export.md", "docs/rankings.md", "docs/scale.md", "docs/tables.md"),
    *("src/ansatz/cli/output.py", "src/ansatz/figures/section.py"),
    *("src/ansatz/data/categorical.py", "src/ansatz/data/cells.py", "src/ansatz/data/columns.py"),
    *("src/ansatz/data/csv.py", "src/ansatz/data/header.py", "src/ansatz/data/keys.py"),
    "src/ansatz/data/spelling.py",
    *("src/ansatz/data/preprocessing.py", "src/ansatz/data/rankings.py"),
    *("src/ansatz/data/streams/chunks.py", "src/ansatz/data/streams/kinds.py"),
    *("src/ansatz/data/grids/path_table.py", "src/ansatz/data/grids/recognize.py"),
    *("src/ansatz/data/table.py", "src/ansatz/fitting/options/vector.py"),
    *("src/ansatz/fitting/proposal.py", "src/ansatz/fitting/replay.py"),
    "src/ansatz/structures/vector/",
]
PIECEWISE = ["docs/expressivity.md", "src/ansatz/networks/regions/", "src/ansatz/claims/"]
ALLOWED: list[Use] = [
    *(Use(where, r"cells?", "of signals, images and volumes alike") for where in GRIDS),
    *(Use(where, r"cells?", "of a table") for where in TABLES),
    *(Use(where, r"pieces?", "of piecewise-linear functions") for where in PIECEWISE),
    Use(
        "", r"(fit|certify|evaluate|predict) cells\S*", "biological cells, in examples of commands"
    ),
    Use("src/ansatz/claims/recurrence/", r"cells?", "LSTM and GRU cells"),
    Use("src/ansatz/claims/symmetry/deep_set_bound.py", r"cells?", "of a grid that covers a space"),
    Use("src/ansatz/networks/regions/", r"cells?", "of a box, cut by the units of a network"),
    Use("src/ansatz/networks/neocognitron.py", r"cells?", "the Neocognitron's own name of units"),
    Use("src/ansatz/claims/history/", r"S- and C-cells", "the Neocognitron's own names"),
    Use("src/ansatz/claims/", r"power law", "a law of mathematics"),
    Use("src/ansatz/report/", r"law of succession", "the title of a paper"),
    Use("docs/likelihoods.md", r"laws?", "defined there: the distribution of y given x"),
    Use("docs/glossary.md", r"laws?", "explained there"),
    Use("src/ansatz/data/augmentation/moves.py", r"cells under a microscope", "of tissue"),
]


class Text(NamedTuple):
    path: str
    line: int
    words: str


def pages() -> Iterator[Text]:
    names = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md"]
    found = [ROOT / name for name in names] + sorted((ROOT / "docs").glob("*.md"))
    for path in found:
        text = path.read_text(encoding="utf-8")
        blank = lambda match: re.sub(r"[^\n]", " ", match[0])  # noqa: E731
        text = re.sub(r"(?ms)^ *```.*?^ *```", blank, text)
        text = re.sub(r"`[^`]*`|\]\([^)]*\)|https?://\S+", blank, text)
        yield from paragraphs(str(path.relative_to(ROOT)), 1, text)


def examples() -> Iterator[Text]:
    for path in sorted((ROOT / "examples").glob("*.py")):
        name = str(path.relative_to(ROOT))
        yield from paragraphs(name, 1, path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            yield from paragraphs(str(path.relative_to(ROOT)), 1, "".join(cell["source"]))


def paragraphs(path: str, first: int, text: str) -> Iterator[Text]:
    """The text with its line breaks as spaces, so that a phrase may cross them."""
    for found in re.finditer(r"(?:[^\n]|\n(?!\s*\n))+", text):
        line = first + text[: found.start()].count("\n")
        yield Text(path, line, found[0])


def source() -> Iterator[Text]:
    for path in sorted((ROOT / "src" / "ansatz").rglob("*.py")):
        name = str(path.relative_to(ROOT))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                if " " in node.value:  # one word alone is a key or a name
                    text = re.sub(
                        r"(?m)``[^`]*``|^ *(?:>>>|\.\.\.) .*$|https?://\S+", " ", node.value
                    )
                    yield from paragraphs(name, node.lineno, text)


EVERY = re.compile("|".join(rf"(?P<w{k}>\b(?:{word})\b)" for k, word in enumerate(WORDS)), re.I)


def findings(texts: Iterator[Text]) -> Iterator[str]:
    """Uses of the listed words that no entry of ALLOWED covers."""
    advice = list(WORDS.values())
    for path, line, raw in texts:
        words = re.sub(r"\s+", " ", raw)
        for found in EVERY.finditer(words):
            if not is_allowed(path, words, found):
                before = re.escape(words[: found.end()]).replace(r"\ ", r"\s+")
                where = line + re.match(before, raw)[0].count("\n")
                around = words[max(found.start() - 30, 0) : found.end() + 30].strip()
                instead = advice[int(str(found.lastgroup)[1:])]
                yield f"{path}:{where}: '{found[0]}' ({instead}): {around}"


def is_allowed(path: str, words: str, found: re.Match[str]) -> bool:
    return any(
        path.startswith(use.where)
        and any(
            each.start() <= found.start() and found.end() <= each.end()
            for each in re.finditer(use.phrase, words, re.I)
        )
        for use in ALLOWED
    )


@pytest.mark.parametrize("texts", [pages, examples, source])
def test_texts_use_the_words_of_the_field(texts):
    found = list(findings(texts()))
    assert not found, f"{len(found)} uses:\n" + "\n".join(found[:200])


def test_every_allowed_use_still_occurs():
    texts = [
        (text.path, re.sub(r"\s+", " ", text.words)) for of in (pages, source) for text in of()
    ]
    unused = [
        use
        for use in ALLOWED
        if not any(
            path.startswith(use.where) and re.search(use.phrase, words, re.I)
            for path, words in texts
        )
    ]
    assert not unused, unused


def test_the_check_sees_words_over_line_breaks_and_not_code():
    texts = [Text("page", 3, "The model\nis judged, the rows it learned\nfrom.")]
    assert [found.split(" ")[0] for found in findings(iter(texts))] == ["page:4:", "page:5:"]
    assert not list(findings(iter([Text("page", 1, "The pixel model is evaluated.")])))
