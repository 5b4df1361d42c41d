"""The scripts in examples/ run in an empty folder and print the results that they promise."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "examples"
SCRIPTS = sorted(path.name for path in FOLDER.glob("*.py"))
# Folders of $ANSATZ_DATA; the other scripts need what scikit-learn ships.
NEEDS = {
    "02_counts.py": "bike-sharing",
    "03_survival.py": "survival",
    "04_ranking.py": "rankings",
    "07_masks.py": "isbi2012",
    "10_own_structure.py": "mr-polarity",
    "11_embeddings.py": "mnist",
}


def numbers(printed: str, name: str) -> dict[str, float]:
    """The numbers of the line that begins with ``name``, by the word before each."""
    (line,) = (line for line in printed.splitlines() if line.strip().startswith(name))
    found = re.findall(r"([A-Za-z]+(?: index)?) +(-?\d+(?:\.\d+)?)", line.replace(":", " "))
    return {word: float(value) for word, value in found}


def check_tables(printed, folder):
    network, linear = numbers(printed, "network:"), numbers(printed, "linear:")
    constant = numbers(printed, "constant:")
    assert network["nll"] < 0.15 < constant["nll"] < 0.7 and linear["accuracy"] > 0.9
    assert network["accuracy"] > 0.95 > constant["accuracy"]
    assert (folder / "tumour-model" / "manifest.json").exists()
    assert "truth malignant: benign 0.0" in printed


def check_counts(printed, folder):
    poisson, negative = numbers(printed, "poisson:"), numbers(printed, "negative_binomial:")
    assert poisson["cover"] < 50 and 80 < negative["cover"] < 97
    assert negative["nll"] < 6.5 < poisson["nll"] and poisson["error"] < 100 > negative["error"]


def check_survival(printed, folder):
    assert "686 patients, 299 recurrences" in printed
    for name in ("weibull:", "log_normal:", "cox:"):
        found = numbers(printed, name)
        assert 0.6 < found["C index"] < 0.8 and found["score"] < 0.25
    high, low = numbers(printed, "highest risk"), numbers(printed, "lowest risk")
    assert high["years"] < 0.3 and low["years"] > 0.9


def check_ranking(printed, folder):
    assert re.search(r"predicted order: 1 > 3 > ", printed)
    chances = [numbers(printed, f"candidate {item}:")["chance"] for item in range(1, 6)]
    assert sum(chances) == pytest.approx(1, abs=0.03) and max(chances) == chances[0]


def check_ensemble(printed, folder):
    found = {name: numbers(printed, f"{name}:") for name in ("network", "ensemble", "conformal")}
    assert all(80 < each["cover"] < 98 for each in found.values())
    assert found["ensemble"]["nll"] < found["network"]["nll"] < 5.8
    assert 0 < float(re.search(r"above 200: ([\d.]+)", printed)[1]) < 1


def check_images(printed, folder):
    assert numbers(printed, "small_resnet:")["accuracy"] > 0.93
    assert 0.8 < numbers(printed, "linear:")["accuracy"] < 0.95
    sure, others = re.search(r"right in ([\d.]+)% of these\nright in ([\d.]+)%", printed).groups()
    assert float(sure) > 97 > float(others)


def check_masks(printed, folder):
    assert numbers(printed, "U-Net:")["Dice"] > 0.65 > 0.3 > numbers(printed, "linear:")["Dice"]
    assert numbers(printed, "U-Net:")["pixels"] < 0.15


def check_loop(printed, folder):
    before = float(re.search(r"before training: nll ([\d.]+)", printed)[1])
    after = float(re.search(r"epoch 40: nll ([\d.]+)", printed)[1])
    assert after < 5.5 < before
    assert 80 < numbers(printed, "90 %")["cover"] < 96


def check_likelihood(printed, folder):
    own, normal = numbers(printed, "logistic:"), numbers(printed, "normal:")
    assert own["nll"] < 5.6 and normal["nll"] < 5.6 and abs(own["crps"] - normal["crps"]) < 4
    assert 80 < own["cover"] < 98


def check_structure(printed, folder):
    assert all(numbers(printed, name)["accuracy"] > 0.6 for name in ("mlp:", "linear:"))
    assert "positive: a warm" in printed and "negative: too long" in printed


def check_embeddings(printed, folder):
    pixels, learned = numbers(printed, "pixels:"), numbers(printed, "embeddings:")
    assert learned["nearest"] > pixels["nearest"] and learned["class"] > pixels["class"] + 0.3
    new = [numbers(printed, f"new classes, {name}:") for name in ("pixels", "embeddings")]
    assert new[0]["nearest"] > new[1]["nearest"] > 0.6


CHECKS = dict(
    zip(
        SCRIPTS,
        [
            *(check_tables, check_counts, check_survival, check_ranking, check_ensemble),
            *(check_images, check_masks, check_loop, check_likelihood, check_structure),
            check_embeddings,
        ],
        strict=True,
    )
)


@pytest.mark.parametrize("script", SCRIPTS)
def test_an_example_prints_a_plausible_result(script, tmp_path):
    data = os.environ.get("ANSATZ_DATA", "")
    if script in NEEDS and not (data and (Path(data) / NEEDS[script]).is_dir()):
        pytest.skip(f"needs {NEEDS[script]} in $ANSATZ_DATA")
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, FOLDER / script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr, done.stderr
    CHECKS[script](done.stdout, tmp_path)


def test_the_page_lists_every_script():
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| \[(\w+\.py)\]\(\1\)", page, re.MULTILINE) == SCRIPTS


@pytest.mark.parametrize("script", SCRIPTS)
def test_an_example_is_short(script):
    text = (FOLDER / script).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.strip()]
    assert 20 <= len(lines) <= (70 if "own" in script else 50)
