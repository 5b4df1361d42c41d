"""ansatz verify, as a user sees it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ansatz import claims
from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.registry import registry
from ansatz.cli.names import complete_claim, names_of


def make(name, measure, **options):
    given = {"id": name, "title": name.capitalize(), "statement": f"{name} is so.", "formula": "x"}
    given |= {"sources": ("M001",), "measure": measure, "reference": "Nobody."}
    return Claim(**(given | options))


def true(generator, *, runs=3):
    """Counts."""
    wrong = Wrong("twice", predicted=2.0 * runs, erratum="E1")
    check = Check("runs", runs, runs, 0.5, "half a run", wrong=wrong)
    return Finding([check], Table(["run", "value"], [[k, k / 3] for k in range(runs)]))


def false(generator):
    return Finding([Check("it", 1.0, 2.0, 0.5, "half", wrong=Wrong("three", predicted=3.0))])


def gullible(generator):
    return Finding([Check("it", 1.0, 1.0, 0.5, "half", wrong=Wrong("1.2", predicted=1.2))])


def breaking(generator):
    raise RuntimeError("no way")


@pytest.fixture
def only(monkeypatch):
    """The claims of one test, and no others."""

    def choose(*measures, **options):
        made = {m.__name__: make(m.__name__, m, **options) for m in measures}
        monkeypatch.setattr(registry, "_members", made)

    return choose


PRINTED = (Erratum("E1", "2n", "n"),)


def test_one_claim_is_printed_in_full(command, only):
    only(true, sources=("M001", "E1"), errata=PRINTED)
    done = command("verify", "true")
    assert (done.status, done.err) == (0, "")
    for words in (
        "true: True\n",
        "true is so.",
        "  measured   3\n  predicted  = 3: holds\n  tolerance  0.5 (half a run)\n",
        "  wrong      E1, twice: predicts 6: refuted\n",
        "  2  0.6667\n",
        "s (quick, seed 0; runs=3)",
    ):
        assert words in done.out


def test_many_claims_are_a_table_and_a_count(command, only):
    only(true, false)
    done = command("verify", "--workers", "1")
    assert done.status == 1
    lines = done.out.splitlines()
    assert lines[0].split() == ["claim", "measured", "predicted", "tolerance", "verdict", "seconds"]
    assert lines[1].split()[:7] == ["false", "1", "=", "2", "0.5", "DOES", "NOT"]
    assert lines[2].split()[:6] == ["true", "3", "=", "3", "0.5", "holds"]
    assert "false\nit\n  measured   1\n" in done.out  # which check it was
    assert lines[-1].startswith("1 of 2 claims hold, ")


def test_a_wrong_prediction_that_passes_is_status_1(command, only):
    only(gullible)
    done = command("verify", "gullible")
    assert done.status == 1 and "1.2: predicts 1.2: PASSES, and must not" in done.out


def test_a_crash_is_one_line_that_names_the_claim_and_the_others_still_run(command, only):
    only(breaking, true)
    done = command("verify", "--workers", "1")
    assert done.status == 1
    assert done.err == "ansatz: claim 'breaking' broke: RuntimeError: no way\n"
    assert "1 of 2 claims hold" in done.out and "BROKEN" in done.out


def test_json_is_one_document(command, only):
    only(true, breaking)
    done = command("verify", "--json", "--workers", "1")
    rows = json.loads(done.out)
    assert [row["id"] for row in rows] == ["breaking", "true"] and done.status == 1
    keys = {"id", "statement", "holds", "measured", "predicted", "seconds", "error", "checks"}
    assert all(set(row) == keys for row in rows)
    assert rows[0]["holds"] is False and rows[0]["measured"] is None
    assert rows[1]["holds"] is True and rows[1]["checks"][0]["wrong"]["refuted"] is True


def test_parameters_seed_and_scale_reach_the_claim(command, only):
    only(true, full={"runs": 7})
    assert json.loads(command("verify", "true", "--full", "--json").out)[0]["measured"] == 7
    assert (
        json.loads(command("verify", "true", "--set", "runs=5", "--json").out)[0]["measured"] == 5
    )
    assert "(full, seed 3; runs=7)" in command("verify", "true", "--full", "--seed", "3").out


def test_the_seed_decides_the_numbers(command):
    def found(seed):
        rows = json.loads(command("verify", "woodbury", "--seed", seed, "--json").out)
        return rows[0]["measured"]

    assert found(1) == found(1) != found(2)


@pytest.mark.parametrize(
    "words, complaint",
    [
        (["xorr"], "Did you mean 'xor'?"),
        (["xor", "--set", "runs=3"], "claim 'xor' has no parameter 'runs'. Known: none."),
        (["--set", "runs=3"], "--set is for the claims that you name"),
        (["xor", "--figure", "xor.gif"], "--figure writes .png, .svg or .pdf, got 'xor.gif'"),
        (["connectionism", "woodbury", "--figure", "a.png"], "--figure draws one claim"),
        (["xor", "--figure", "a.png", "--figures", "b"], "give one of them"),
        (["--errata", "--coverage"], "ask one at a time"),
        (["xor", "--coverage"], "--coverage takes no claims"),
        (["--errata", "--figures", "b"], "--errata draws and sets nothing"),
        (["xor", "--workers", "0"], "workers"),
        (["xor", "--seed", "-1"], "seed"),
    ],
)
def test_what_cannot_be_done_is_a_usage_error(command, words, complaint):
    done = command("verify", *words)
    assert done.status == 2 and complaint in done.err and done.out == ""


@pytest.mark.parametrize("form, start", [("png", b"\x89PNG"), ("svg", b"<svg"), ("PDF", b"%PDF")])
def test_a_figure_is_written_and_never_replaced_unasked(command, tmp_path, form, start):
    path = tmp_path / f"xor.{form}"
    done = command("verify", "xor", "--figure", path.name)
    assert done.status == 0 and f"figure: xor.{form}" in done.err
    assert path.read_bytes().startswith(start)
    again = command("verify", "xor", "--figure", path.name)
    assert again.status == 2 and "exists. To replace it: --overwrite." in again.err
    assert command("verify", "xor", "--figure", path.name, "--overwrite").status == 0


def test_a_claim_without_a_figure_says_so_before_it_runs(command, only):
    only(breaking)
    done = command("verify", "breaking", "--figure", "a.png")
    assert done.status == 2 and "claim 'breaking' has no figure" in done.err


def test_figures_of_all_go_into_a_folder(command, tmp_path):
    words = ("verify", "xor", "woodbury", "--figures", "drawn/here", "--workers", "1")
    assert command(*words).status == 0
    drawn = {path.name for path in (tmp_path / "drawn" / "here").iterdir()}
    assert drawn == {f"{n}.png" for n in ("xor", "woodbury") if claims.get(n).draw is not None}
    assert command(*words).status == 2


def test_errata_are_printed_in_order_with_both_numbers(command, only):
    only(true, sources=("M001", "E1"), errata=PRINTED)
    done = command("verify", "--errata")
    assert done.status == 0
    assert done.out.startswith("E1  Weight decay with the wrong sign (claim true)\n")
    assert "  printed    2n  gives 6\n  correct    n   gives 3\n  measured   3: runs" in done.out
    assert "1 of 67 common slips are refuted.\nWithout a claim yet:\n  E2 " in done.out
    rows = json.loads(command("verify", "--errata", "--json").out)
    assert [row["id"] for row in rows] == [f"E{k}" for k in range(1, 68)]
    assert rows[0]["printed_gives"] == 6 and rows[0]["correct_gives"] == 3
    assert rows[0]["refuted"] is True and rows[1]["refuted"] is None


def test_a_slip_that_is_not_refuted_is_status_1(command, only):
    only(breaking, sources=("M001", "E1"), errata=PRINTED)
    done = command("verify", "--errata")
    assert done.status == 1 and "verdict    BROKEN" in done.out
    assert "0 of 67 common slips are refuted" in done.out


def test_errata_of_one_claim(command, only):
    only(true, sources=("M001", "E1"), errata=PRINTED)
    assert "1 of 1 common slips are refuted.\n" in command("verify", "true", "--errata").out


def test_coverage_counts_per_section_and_lists_what_is_missing(command, only):
    only(true)
    done = command("verify", "--coverage")
    assert done.status == 0
    assert "A: Connectionism: the first neurons: without a claim" in done.out
    assert "M002 identity" in done.out and "M001 formula" not in done.out
    first = json.loads(command("verify", "--coverage", "--json").out)[0]
    assert first["section"] == "A" and first["claims"] == {"M001": ["true"]}
    assert first["claimed"] == 1 and first["states"] == first["claimed"] + len(first["missing"])


def test_a_claim_is_shown_with_its_parameters_slips_and_command(command, only):
    only(true, sources=("M001", "E1"), errata=PRINTED, full={"runs": 7})
    page = command("show", "true").out
    for words in (
        "true (claim)\n\nTrue\n\ntrue is so.\n",
        "Measured\n  Counts.\n",
        "Common slip E1\n  printed: 2n\n  correct: n\n",
        "Parameters\n  runs  3  (full: 7)\n",
        "Catalog\n  M001  McCulloch-Pitts neuron\n",
        "Run\n  ansatz verify true\n",
    ):
        assert words in page
    document = json.loads(command("show", "true", "--json").out)
    assert document["parameters"] == {"quick": {"runs": 3}, "full": {"runs": 7}}
    assert document["errata"][0]["printed"] == "2n"


def test_completion_offers_claims_and_areas_without_torch():
    assert complete_claim("xo") == ["xor"] and complete_claim("connectio") == ["connectionism"]
    assert names_of("claims") == claims.names()
    code = "from ansatz.cli.names import complete_claim as c; assert c('xor')\n"
    code += "import sys; assert not {'torch', 'numpy'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def workers_of(process) -> list[int]:
    """Processes that it started."""
    files = Path(f"/proc/{process.pid}/task").glob("*/children")
    return [int(word) for file in files for word in file.read_text().split()]


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="reads /proc")
def test_control_c_ends_the_workers_at_once(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "ansatz", "verify", "xor", "woodbury", "--workers", "2"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 60
    children: list[int] = []
    while len(children) < 2:
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.02)
        children = workers_of(process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and out == "" and err == "ansatz: interrupted.\n"
    assert not any(is_running(child) for child in children)
