import io
import json
import sys

import pytest
from PIL import Image

from ansatz.cli import demo


def test_the_demos_are_listed(command):
    done = command("demo")
    assert done.status == 0 and done.out.splitlines()[1].startswith("hopfield")


def test_digits_are_recalled_and_drawn_in_the_terminal(command):
    done = command("demo", "hopfield", "--patterns", "3")
    lines = done.out.splitlines()
    assert done.status == 0 and max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines if line[:1].strip()][:3] == [
        "stored", "noisy", "recalled",
    ]  # fmt: skip
    assert "█" in done.out and "3 of 3 digits recalled exactly, each from 10 flipped" in done.out
    stored, recalled = lines[0][10:], lines[10][10:]
    assert stored == recalled


def test_hebb_confuses_digits_that_the_pseudo_inverse_tells_apart(command):
    wrong = {}
    for rule in ("hebb", "pseudo_inverse", "storkey"):
        done = command("demo", "hopfield", "--rule", rule, "--noise", "0.1", "--json")
        wrong[rule] = [row["wrong"] for row in json.loads(done.out)["digits"]]
    assert sum(wrong["pseudo_inverse"]) == 0 < sum(wrong["storkey"]) < sum(wrong["hebb"])


def test_as_json_the_energy_falls_and_the_noise_is_as_asked(command):
    document = json.loads(command("demo", "hopfield", "--noise", "0.25", "--json").out)
    assert document["neurons"] == 64 and len(document["digits"]) == 6
    for row in document["digits"]:
        assert row["flipped"] == 16 and row["energy_after"] <= row["energy_before"]


@pytest.mark.parametrize("name", ["recall.png", "recall.svg", "new/recall.pdf"])
def test_the_figure_is_written_whole(command, tmp_path, name):
    assert command("demo", "hopfield", "--patterns", "2", "--figure", name).status == 0
    assert (tmp_path / name).stat().st_size > 3_000
    if name.endswith("png"):
        with Image.open(tmp_path / name) as picture:
            assert picture.size[0] > 300
    refused = command("demo", "hopfield", "--figure", name)
    assert refused.status == 2 and "exists" in refused.err


def test_seeds_choose_other_digits_and_repeat(command):
    runs = [command("demo", "hopfield", "--seed", seed).out for seed in ("1", "1", "2")]
    assert runs[0] == runs[1] != runs[2]


def test_wrong_options_are_named(command):
    done = command("demo", "hopfield", "--rule", "heb")
    assert done.status == 2 and "hebb, pseudo_inverse, storkey" in done.err
    done = command("demo", "hopfield", "--figure", "recall.gif")
    assert done.status == 2 and ".png, .svg or .pdf" in done.err
    assert command("demo", "hopfild").status == 2


def test_a_terminal_without_blocks_gets_dots(command, monkeypatch):
    with io.TextIOWrapper(io.BytesIO(), encoding="ascii") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert not demo._can_print("▄")
        monkeypatch.undo()
    monkeypatch.setattr(demo, "_can_print", lambda text: False)
    done = command("demo", "hopfield", "--patterns", "1")
    assert done.status == 0 and ":" in done.out and done.out.isascii()
