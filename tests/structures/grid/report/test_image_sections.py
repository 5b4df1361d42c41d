"""The sections on images say what the arrays hold, and draw it on an inert page."""

import re

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from torch import nn

from ansatz.attribution import feature_maps, filters
from ansatz.figures import Figure, Section, Table
from ansatz.figures.page import render
from ansatz.figures.style import figure
from ansatz.structures.grid.report import examples, overlays
from ansatz.structures.grid.report.attributions import attributions
from ansatz.structures.grid.report.confusion import confusion_section, draw_confusion
from ansatz.structures.grid.report.examples import examples_section, mistakes_section
from ansatz.structures.grid.report.network import filters_section
from ansatz.structures.grid.report.overlays import overlays_section
from ansatz.structures.grid.report.robustness import AccuracyCurve, robustness_section
from ansatz.structures.grid.report.saliency import draw_images, draw_signals
from ansatz.symmetry import certify

HOSTILE = ["<script>alert(1)</script>", "$x$ & $y$", "\u202eevil\n", "名" * 200]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def classified(rng, n=60, k=3):
    truth = rng.integers(0, k, n)
    probs = rng.dirichlet(np.ones(k), n)
    return rng.integers(0, 256, (n, 12, 10, 3), dtype=np.uint8), truth, probs


def table(section, place=0):
    return [part for part in section.parts if isinstance(part, Table)][place]


def drawn(section):
    return [part for part in section.parts if isinstance(part, Figure)]


def test_confused_pairs_are_counted(rng):
    _, truth, probs = classified(rng, k=4)
    found = table(confusion_section(truth, probs, list("abcd")))
    counts = {}
    for y, p in zip(truth, probs.argmax(1), strict=True):
        counts[y, p] = counts.get((y, p), 0) + 1
    mistakes = sorted((n for (y, p), n in counts.items() if y != p), reverse=True)
    assert [int(row[2]) for row in found.rows] == mistakes[:10]
    for is_, taken, times, *_, mean in found.rows:
        i, j = "abcd".index(is_), "abcd".index(taken)
        assert int(times) == counts[i, j]
        sure = probs[(truth == i) & (probs.argmax(1) == j), j].mean()
        assert float(mean.split()[0]) == pytest.approx(100 * sure, abs=0.051)


def test_the_lead_of_the_confusion_is_the_accuracy(rng):
    _, truth, probs = classified(rng)
    right = 100 * (probs.argmax(1) == truth).mean()
    lead = confusion_section(truth, probs, list("abc")).lead
    assert lead.startswith(f"{right:.1f}".rstrip("0").rstrip(".")) and "60 test images" in lead


@pytest.mark.parametrize("k, labels", [(2, 2), (60, 50)])
def test_a_matrix_of_many_classes_keeps_those_with_mistakes(rng, k, labels):
    truth = np.arange(600) % k
    probs = np.eye(k)[(truth + (truth % 7 == 0)) % k]
    section = confusion_section(truth, probs, [f"class {i}" for i in range(k)])
    (picture,) = drawn(section)
    assert picture.svg.count(">class ") == 2 * labels
    assert ("not shown" in picture.caption) == (k > 50)


@pytest.mark.parametrize("name, turned", [("cat", 0), ("a long name of one", 90)])
def test_names_that_would_touch_each_other_are_turned(name, turned):
    with figure(4.3, 3.4) as paper:
        axes = paper.subplots()
        draw_confusion(axes, np.eye(3), [name] * 3)
        assert axes.get_xticklabels()[0].get_rotation() == turned


@pytest.mark.parametrize("name", ["4", "standing", "automobile"])
def test_captions_of_mistakes_do_not_run_into_each_other(name, monkeypatch):
    drawn = {}
    monkeypatch.setattr(
        examples, "strip", lambda shown, captions, **how: drawn.update(how, text=captions)
    )
    probs = np.tile([0.615, 0.385], (24, 1))
    mistakes_section(np.zeros((24, 8, 8)), np.ones(24, int), probs, ["slow", name])
    longest = max(len(line) for text in drawn["text"] for line in text.split("\n"))
    assert drawn["columns"] * longest * 0.058 < 6.6  # inches of letters of 7.5 points


def test_a_perfect_model_has_no_pairs():
    section = confusion_section([0, 1, 1], np.eye(2)[[0, 1, 1]], ["a", "b"])
    assert len(section.parts) == 2 and section.lead.startswith("100 %")


def test_mistakes_come_with_the_most_confident_first(rng):
    images, truth, probs = classified(rng)
    section = mistakes_section(images, truth, probs, list("abc"), names=[*range(60)])
    rows = [int(row[0]) for row in table(section).rows]
    top = probs.max(1)
    assert all(probs[i].argmax() != truth[i] for i in rows)
    assert list(top[rows]) == sorted(top[(probs.argmax(1) != truth)], reverse=True)[:12]


def test_without_mistakes_nothing_is_drawn(rng):
    images, truth, _ = classified(rng)
    section = mistakes_section(images, truth, np.eye(3)[truth], list("abc"))
    assert section.lead.startswith("None of 60") and not section.parts


def test_nearly_certain_is_not_called_certain():
    probs = np.array([[1e-5, 1 - 1e-5]])
    section = mistakes_section(np.zeros((1, 4, 4), np.uint8), [0], probs, ["a", "b"])
    assert "> 99.9 %" in section.lead and table(section).rows[0][-1] == "< 0.1 %"


def test_examples_show_every_class_and_say_how_many(rng):
    images, truth, _ = classified(rng)
    truth[truth == 2] = 1
    truth[0] = 2  # a class of one image
    section = examples_section(images, truth, ["a", "b", "c", "never"])
    assert section.lead == "60 test images of 12 × 10 pixels and 3 channels, in 3 classes."
    assert f"a: {(truth == 0).sum()} images" in drawn(section)[0].alt
    assert "never" not in drawn(section)[0].alt


def test_saliency_is_computed_and_drawn_for_a_network(rng):
    images, _, _ = classified(rng, n=3)
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(320, 3))
    x = torch.tensor(images).permute(0, 3, 1, 2) / 255.0
    maps = attributions(network, x).maps
    assert {name: value.shape for name, value in maps.items()} == dict.fromkeys(
        ["integrated gradients", "Grad-CAM", "occlusion"], (3, 12, 10)
    )
    svg = draw_images(images, maps, list("abc"))
    assert "Grad-CAM" in svg and "integrated gradients" in svg
    flat = nn.Sequential(nn.Flatten(), nn.Linear(360, 3))
    assert "Grad-CAM" not in attributions(flat, x).maps


def test_filters_and_maps_are_drawn(rng):
    network, image = nn.Conv2d(3, 8, 3), rng.integers(0, 256, (12, 12, 3), dtype=np.uint8)
    x = torch.tensor(image).permute(2, 0, 1)[None] / 255.0
    section = filters_section(filters(network).numpy(), image, feature_maps(network, x)[0].numpy())
    assert section.lead.startswith("8 filters of 3 × 3 pixels and 3 channels")
    assert len(drawn(section)) == 2
    assert filters_section(rng.normal(size=(4, 1, 7))) is None  # of signals
    assert filters_section(rng.normal(size=(4, 8, 1, 1))) is None  # nothing to see


def dice(a, b):
    return 2 * (a & b).sum() / (a.sum() + b.sum())


def masks(rng, n=5):
    truth = (rng.random((n, 16, 12)) < 0.4).astype(int)
    flips = rng.random((n, 16, 12)) < np.linspace(0, 0.4, n)[:, None, None]
    return truth, np.where(flips, 1 - truth, truth), rng.integers(0, 256, (n, 16, 12), np.uint8)


def test_overlays_rank_images_by_dice(rng):
    truth, guess, images = masks(rng)
    section = overlays_section(images, truth, guess, ["ground", "line"])
    scores = [dice(a == 1, b == 1) for a, b in zip(truth, guess, strict=True)]
    row = table(section).rows[1]
    expected = [np.mean(scores), min(scores), np.median(scores), max(scores)]
    assert [float(cell) for cell in row[2:]] == pytest.approx(expected, abs=6e-4)
    svg = drawn(section)[0].svg
    for word, place in (("best", -1), ("median", 2), ("worst", 0)):
        case = int(np.argsort(scores)[place])
        assert f"{word}: {scores[case]:.3f}" in svg and f"test row {case}" in svg


def test_cells_without_a_label_do_not_count(rng):
    truth, guess, images = masks(rng)
    labelled = np.ones(truth.shape, bool)
    labelled[:, :, 6:] = False
    section = overlays_section(images, truth, guess, ["g", "l"], labelled=labelled)
    half = overlays_section(images[..., :6], truth[..., :6], guess[..., :6], ["g", "l"])
    assert table(section).rows == table(half).rows and section.lead == half.lead


def test_images_without_the_class_are_left_out_of_the_ranking(rng):
    truth, guess, images = masks(rng)
    truth[0] = guess[0] = 0
    section = overlays_section(images, truth, guess, ["g", "l"])
    assert "over 4 test images" in section.lead and "1 images have none" in section.lead
    nothing = overlays_section(images, 0 * truth, 0 * guess, ["g", "l"])
    assert "not defined" in nothing.lead and not drawn(nothing)


def test_robustness_tells_what_becomes_of_right_answers():
    curves = [AccuracyCurve("shift", "pixels", [0, 2, 4], [90, 80, 40], 100)]
    x = torch.randn(4, 1, 6, 6)
    proofs = [certify(lambda x: x.mean((2, 3)), x, group) for group in ("flip", "rotation")]
    section = robustness_section(curves, proofs)
    assert section.lead == (
        "Accuracy: 90 %, 40 % under shift of 4 pixels. Exact symmetries, up to rounding: flip."
    )
    rows = table(section).rows
    assert [row[0] for row in rows] == ["flip", "rotation (approximate)"]
    assert rows[1][5].endswith(" rad")
    assert robustness_section([], []) is None


def every_section(rng, classes):
    images, truth, probs = classified(rng, k=4)
    mask_truth, guess, grey = masks(rng)
    maps = {"occlusion": rng.normal(size=(4, 12, 10)), HOSTILE[0]: np.zeros((4, 12, 10))}
    waves, bands = rng.normal(size=(4, 2, 30)), {HOSTILE[0]: rng.normal(size=(4, 30))}
    return [
        examples_section(images, truth, classes),
        confusion_section(truth, probs, classes),
        mistakes_section(images, truth, probs, classes, names=HOSTILE * 15),
        Section("Images", "", [Figure(draw_images(images[:4], maps, classes), "", "")]),
        Section("Signals", "", [Figure(draw_signals(waves, bands, classes), "", "")]),
        filters_section(rng.normal(size=(70, 1, 5, 5)), images[0], rng.normal(size=(9, 4, 4))),
        overlays_section(grey, mask_truth, guess, classes[:2], names=[*HOSTILE, "a/b.png"]),
        robustness_section([AccuracyCurve("noise", "%", [0, 1], [3, 2], 4)]),
    ]


def test_hostile_names_stay_text_and_the_page_is_small(rng):
    page = render(every_section(rng, HOSTILE), title="Images")
    assert "<script" not in page and "\u202e" not in page
    assert "&lt;script&gt;" in page and "$x$ &amp; $y$" in page
    assert set(re.findall(r'href="([^"#][^"]{0,14})', page)) <= {"data:image/png;", "data:,"}
    assert len(page) < 1_000_000


def test_the_same_arrays_give_the_same_bytes(rng):
    images, truth, _ = classified(rng)
    first, second = (examples_section(images, truth, list("abc")) for _ in range(2))
    assert first == second


def test_no_rows_no_section():
    nothing, none = np.zeros((0, 4, 4), np.uint8), np.zeros(0, int)
    probs = np.zeros((0, 2))
    assert examples_section(nothing, none, ["a", "b"]) is None
    assert confusion_section(none, probs, ["a", "b"]) is None
    assert mistakes_section(nothing, none, probs, ["a", "b"]) is None
    assert overlays_section(nothing, nothing, nothing, ["a", "b"]) is None


def test_what_is_missed_and_what_is_made_up_have_their_colours():
    y, guess = np.zeros((2, 1, 2, 2), int)
    y[0, 0], guess[0, :, 0] = 1, 1  # found, missed; made up, right ground
    ground = np.zeros((1, 2, 2, 3), np.uint8)
    found = overlays._difference(ground, y, guess, np.ones((1, 2, 2), bool))[0]
    nearest = [
        [int(np.abs(tints - cell).sum(1).argmin()) for cell in row]
        for tints in [np.array([(0, 158, 115), (213, 94, 0), (184, 106, 154), (178, 178, 178)])]
        for row in found.astype(int)
    ]
    assert_array_equal(nearest, [[0, 1], [2, 3]])
