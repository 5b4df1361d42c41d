"""Claims run here or in processes of their own, and one that breaks stops nobody."""

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from ansatz import claims
from ansatz.claims import Check, Claim, Finding, Outcome, Table, Wrong, crew
from ansatz.claims.attempt import Settings
from ansatz.claims.picture import render
from ansatz.claims.registry import areas, registry, select
from ansatz.errors import UsageError

FIGURE = {"png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF"}


def make(name, measure, **options):
    given = {"id": name, "title": name, "statement": f"{name}.", "formula": "1 = 1"}
    return Claim(**given, sources=("M001",), measure=measure, reference="-", **options)


@pytest.fixture
def add(monkeypatch):
    """Adds a claim for one test."""

    def adding(name, measure, **options):
        monkeypatch.setitem(registry._members, name, make(name, measure, **options))

    return adding


def true(generator):
    wrong = Wrong("two", predicted=2.0)
    return Finding([Check("one", 1.0, 1.0, 0.0, "exact", wrong=wrong)], Table(["x"], [[1]]))


def false(generator):
    wrong = Wrong("three", predicted=3.0)
    return Finding([Check("one", 1.0, 2.0, 0.5, "exact", wrong=wrong)])


def gullible(generator):
    wrong = Wrong("also one", predicted=1.0)
    return Finding([Check("one", 1.0, 1.0, 0.5, "exact", wrong=wrong)])


def breaking(generator):
    raise RuntimeError("no\nway")


def test_each_outcome_has_its_verdict(add):
    for measure in (true, false, gullible, breaking):
        add(measure.__name__, measure)
    reported = []
    found = claims.verify("breaking", "true", "false", "gullible", on_outcome=reported.append)
    assert [each.verdict for each in found] == [
        "BROKEN", "holds", "DOES NOT HOLD", "WRONG ONE PASSES",
    ]  # fmt: skip
    assert [each.holds for each in found] == [False, True, False, False]
    assert found[0].error == "RuntimeError: no way" and "in breaking" in found[0].trace
    assert reported == found
    assert found[0].to_dict()["measured"] is None and found[0].to_dict()["checks"] == []
    assert found[1].to_dict()["measured"] == 1.0 and found[1].to_dict()["holds"]


def test_a_file_that_cannot_be_imported_is_one_broken_claim(monkeypatch):
    monkeypatch.setitem(registry._members, "absent", "ansatz.claims.connectionism.absent:claim")
    broken, fine = claims.verify("absent", "xor")
    assert broken.error.startswith("ModuleNotFoundError: No module named 'ansatz.claims")
    assert fine.holds and broken.to_dict()["statement"] is None


def test_a_run_uses_one_thread_and_gives_the_others_back(add):
    torch.set_num_threads(2)
    add("threads", lambda generator: Finding([Check("n", torch.get_num_threads(), 1, 0, "exact")]))
    assert claims.verify("threads")[0].finding.holds
    assert torch.get_num_threads() == 2


def test_an_unknown_claim_or_parameter_is_refused_before_anything_runs(add):
    add("true", true)
    ran = []
    for words in (("true", "xorr"), ("true", "xor")):
        with pytest.raises(UsageError, match=r"Did you mean 'xor'|has no parameter 'runs'"):
            claims.verify(*words, parameters={"runs": 3}, on_outcome=ran.append)
    with pytest.raises(UsageError, match="at least 1, got 0"):
        claims.verify("xor", workers=0)
    assert not ran


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_processes_find_what_this_one_finds_even_if_one_of_them_is_killed(monkeypatch):
    started, start = [], crew._start

    def start_and_kill_the_first():
        started.append(start())
        if len(started) == 1:
            started[0].kill()
        return started[-1]

    monkeypatch.setattr(crew, "_start", start_and_kill_the_first)
    names = ["xor", "woodbury", "norms-and-angles"]
    killed, *others = crew.run_in_processes(names, Settings(), 1)
    assert killed.id == "xor" and killed.error == "its process ended with status -9"
    assert len(started) == 2 and all(process.returncode is not None for process in started)
    for one, two in zip(claims.verify(*names[1:]), others, strict=True):
        one, two = one.to_dict(), two.to_dict()
        assert one.pop("seconds") >= 0 and two.pop("seconds") >= 0
        assert one == two


def test_an_outcome_survives_the_way_between_processes(add):
    [outcome] = claims.verify("xor", figures="png")
    message = json.loads(json.dumps(outcome.to_message()))
    assert Outcome.of_message(message).to_message() == message
    assert Outcome.of_message(message).figure == outcome.figure
    add("breaking", breaking)
    [broken] = claims.verify("breaking")
    assert Outcome.of_message(json.loads(json.dumps(broken.to_message()))) == broken


def test_numbers_of_other_libraries_become_plain_on_the_way():
    check = Check("x", np.float64(1), torch.tensor(math.inf), np.int64(0), "exact")
    table = Table(("a", "b"), [(np.float32(0.5), "text"), (torch.ones(2), None)])
    message = json.loads(json.dumps(Outcome("x", 0.1, Finding([check], table)).to_message()))
    finding = Outcome.of_message(message).finding
    assert finding.checks == [Check("x", 1.0, math.inf, 0, "exact")]
    assert finding.table == Table(["a", "b"], [[0.5, "text"], [[1.0, 1.0], None]])


@pytest.mark.parametrize("form", FIGURE)
def test_figures_are_drawn_where_there_is_one(form, add):
    add("true", true)
    drawn, plain = claims.verify("xor", "true", figures=form)
    assert drawn.figure.startswith(FIGURE[form]) and plain.figure is None and plain.holds
    assert claims.verify("xor", figures=form)[0].figure == drawn.figure


def test_a_long_title_is_not_cut(add):
    title = "a sentence that says what one sees " * 4

    def draw(paper, finding):
        paper.subplots().set_title(title)

    add("true", true, draw=draw)
    assert title.strip() in claims.verify("true", figures="svg")[0].figure.decode()


def test_an_image_in_a_figure_stays_an_image(add):
    def draw(paper, finding):
        paper.subplots().imshow([[0, 1], [1, 0]])

    add("true", true, draw=draw)
    assert b'href="data:image/png;base64,iVBOR' in claims.verify("true", figures="svg")[0].figure


def test_a_figure_for_a_notebook_is_white():
    assert claims.figure("xor").get_facecolor() == (1, 1, 1, 1)


def test_a_claim_without_a_figure_says_so(add):
    add("true", true)
    with pytest.raises(UsageError, match="'true' has no figure"):
        claims.figure("true")
    with pytest.raises(UsageError, match="'true' has no figure"):
        render("true", true(None))
    with pytest.raises(UsageError, match="png, svg, pdf, got 'gif'"):
        render("xor", claims.run("xor"), "gif")


def test_a_word_selects_by_name_area_pattern_and_row():
    assert select([]) == claims.names()
    assert select(["xor"]) == select(["xo[r]"]) == ["xor"]
    assert select(["connectionism", "xor"]) == areas()["connectionism"]
    assert "xor" in select(["M009"])


def test_a_word_that_selects_nothing_is_an_error_that_suggests():
    with pytest.raises(UsageError, match="Did you mean 'connectionism'"):
        select(["conectionism"])
    with pytest.raises(UsageError, match="To see the names: ansatz list claims"):
        select(["zz*"])
    with pytest.raises(UsageError, match="no claim has the row M999"):
        select(["M999"])


def test_areas_hold_every_claim_once_and_explain_themselves():
    found = areas()
    assert sorted(name for names in found.values() for name in names) == claims.names()
    for area in found:
        text = (Path(claims.__file__).parent / area / "__init__.py").read_text(encoding="utf-8")
        assert text.startswith('"""'), f"{area}: one line says what it is about"
