"""The quality suites of images on small stand-ins."""

import json

import numpy as np
import pandas as pd
import pytest

from ansatz.bench import image_quality
from ansatz.bench.finding import BenchOptions
from ansatz.bench.image_quality import Goal
from ansatz.data import Dataset
from ansatz.data.grids import Grids, Masks
from ansatz.errors import UsageError


@pytest.fixture
def halves(monkeypatch):
    """50 images whose upper or lower half is bright, a few of them with the wrong label."""
    random = np.random.default_rng(0)
    codes = np.arange(50) % 2
    made = random.integers(0, 90, (50, 1, 8, 8), dtype=np.uint8)
    made[codes == 1, :, :4] += 90
    made[codes == 0, :, 4:] += 90
    codes[45:] = 1 - codes[45:]  # five of the twenty that evaluate
    frame = pd.DataFrame({"class": np.where(codes == 1, "upper", "lower")})
    splits = ((np.arange(30), np.arange(30, 50)),)
    data = Dataset("toy", frame, "class", "", "", splits=splits, grids=Grids.of(made))
    goal = Goal("linear_grid", error=0.3, epochs=1_000, minutes=5)
    monkeypatch.setattr(image_quality, "GOALS", {"toy": goal, "other": goal})
    monkeypatch.setattr("ansatz.data.load", lambda name: data)


def test_the_published_test_images_evaluate_and_a_stopped_run_goes_on(halves, tmp_path):
    path = tmp_path / "quality-images.jsonl"
    options = {"only": ("toy",), "folder": tmp_path}
    error, epochs, minutes = image_quality.quality_images(BenchOptions(splits=(0,), **options))
    assert error.ours == pytest.approx(5 / 20) and error.holds and error.facts["seeds"] == 1
    assert epochs.ours > 1 and 0 < minutes.ours < 5 and error.facts["network"] == "linear_grid"
    before = path.read_text()
    again = image_quality.quality_images(BenchOptions(splits=(0, 1), **options))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert path.read_text().startswith(before) and [row["seed"] for row in rows] == [0, 1]
    assert again[0].facts["errors"] == [row["error"] for row in rows]
    assert {row["set"] for row in rows} == {"toy"} and all("commit" in row for row in rows)


def test_fresh_does_again_what_is_asked_for_and_keeps_the_rest(halves, monkeypatch, tmp_path):
    fits = []
    row = {"error": 0.1, "nll": 0.2, "epochs": 3.0, "seconds": 1.0, "threads": 1}
    row |= {"network": "toy", "parameters": 9, "recipe": "short"}
    monkeypatch.setattr(image_quality, "_fit", lambda *key: fits.append(key) or row)
    image_quality.quality_images(BenchOptions(splits=(0, 1), folder=tmp_path))
    assert fits == [("toy", 0), ("toy", 1), ("other", 0), ("other", 1)]
    asked = BenchOptions(splits=(1,), only=("other",), folder=tmp_path, fresh=True)
    image_quality.quality_images(asked)
    assert fits[4:] == [("other", 1)]
    assert len((tmp_path / "quality-images.jsonl").read_text().splitlines()) == 4


def test_bars_are_those_of_the_mean_over_seeds_and_of_the_longest_fit():
    row = {"nll": 0.2, "network": "a", "parameters": 9, "recipe": "short", "threads": 2}
    rows = [
        {**row, "error": e, "epochs": 9.0, "seconds": s, "commit": "abc"}
        for e, s in ((0.06, 3000.0), (0.09, 3700.0))
    ]
    error, minutes = image_quality._findings("fashion-mnist", rows)
    assert error.ours == pytest.approx(0.075) and not error.holds  # 0.07 at most
    assert minutes.ours == pytest.approx(3700 / 60) and not minutes.holds
    assert image_quality._findings("fashion-mnist", rows[:1])[0].holds
    assert not image_quality._findings("mnist", [{**rows[0], "epochs": 10.3}])[1].holds


def test_a_set_that_is_not_there_is_named():
    with pytest.raises(UsageError, match=r"no case is called 'imagenet'.*mnist, fashion-mnist"):
        image_quality.quality_images(BenchOptions(only=("imagenet",)))


@pytest.fixture
def squares(monkeypatch):
    """Slices in which what is bright is membrane, the last two with wrong masks in one corner."""
    random = np.random.default_rng(0)
    masks = np.repeat(np.repeat(random.integers(0, 2, (8, 4, 4)), 4, 1), 4, 2)
    values = (150 * masks + random.integers(0, 90, masks.shape)).astype(np.uint8)
    masks[6:, :4, :4] = 1 - masks[6:, :4, :4]  # 16 of 256 pixels
    data = Dataset(
        "isbi2012",
        pd.DataFrame({"image": list("abcdefgh")}),
        "mask",
        "",
        "",
        grids=Grids.of(values[:, None], "first"),
        masks=Masks.coded(masks, "masks", classes=("cell", "membrane")),
    )
    monkeypatch.setattr("ansatz.data.load", lambda name: data)
    monkeypatch.setattr(image_quality, "TRAINING", 6)
    monkeypatch.setattr(image_quality, "OURS", "linear_pixels")
    return masks[6:]


def test_the_last_slices_evaluate_and_the_window_has_no_more_time(squares, tmp_path):
    options = BenchOptions(splits=(0,), folder=tmp_path)
    dice, beside, error = image_quality.quality_segmentation(options)
    (row,) = map(json.loads, (tmp_path / "quality-segmentation.jsonl").read_text().splitlines())
    window = row["sliding window"]
    assert error.ours == pytest.approx(16 / 256, abs=0.03) and dice.ours > 0.85 and dice.holds
    assert beside.peers == {"sliding window": window["dice"]} and beside.ours == dice.ours
    assert error.ratio["sliding window"].median == error.ours / window["pixel_error"]
    # A step and a half of slack: the limit is looked at between steps.
    assert window["seconds"] < 1.5 * row["seconds"] and window["network"] == "sliding_window"
    again = image_quality.quality_segmentation(options)
    assert again[0].ours == dice.ours and row["network"] == "linear_pixels"


def test_a_window_that_does_better_is_said():
    window = {"dice": 0.9, "pixel_error": 0.05, "boundary_f1": 0.8, "parameters": 5}
    window |= {"seconds": 9.0, "epochs": 4.0}
    row = {**window, "dice": 0.85, "network": "unet", "recipe": "short", "threads": 2}
    row |= {"commit": None, "sliding window": window}
    dice, beside, error = image_quality._mask_findings("isbi2012", [row])
    assert dice.holds and not beside.holds and error.holds  # 0.80; 0.90; a tie
