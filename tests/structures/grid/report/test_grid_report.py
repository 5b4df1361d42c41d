"""Reports of models of images, signals, volumes and masks."""

import re

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.datasets import load_digits
from torch import nn
from torch.testing import assert_close

import ansatz
from ansatz import Classifier, Regressor, Segmenter, networks, structures
from ansatz.data.grids import Grids
from ansatz.errors import UsageError
from ansatz.fitting.contracts.inference import Predictive
from ansatz.fitting.replay import replay
from ansatz.metrics import boundary_f1
from ansatz.outcomes.report.mask import _edges, pixel_calibration, sample_pixels
from ansatz.outcomes.report.mask import classes_section as by_class
from ansatz.outcomes.report.mask import recalibration_section as mask_recalibration
from ansatz.registry import load
from ansatz.report import build, gather, replayed
from ansatz.report.assembly import chapters
from ansatz.report.baselines import compare
from ansatz.report.evidence import contribution
from ansatz.report.what_was_fitted import command_line, python_lines
from ansatz.structures.grid.report import pictures
from ansatz.structures.grid.report.examples import best_and_worst as cases
from ansatz.structures.grid.report.examples import confident_mistakes as mistakes
from ansatz.structures.grid.report.examples import section as examples
from ansatz.structures.grid.report.network import layer_table
from ansatz.structures.grid.report.overlays import section as overlays
from ansatz.structures.grid.report.pictures import pictures_of, slices_of
from ansatz.structures.grid.report.robustness import certificates
from ansatz.structures.grid.report.robustness import section as robustness

QUICK = {"epochs": 2, "holdout": 0.0}


@pytest.fixture(scope="module", autouse=True)
def single():
    """Users train in float32, and what is fitted here is shared by tests."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(before)


def digits(count):
    found = load_digits()
    images = found.images[:count].repeat(2, 1).repeat(2, 2)
    return (15.9 * images).astype(np.uint8), found.target[:count]


def discs(count, size=16):
    rng = np.random.default_rng(0)
    i, j = np.mgrid[:size, :size]
    centre, radius = rng.uniform(4, 12, (2, count, 1, 1)), rng.uniform(2, 5, (count, 1, 1))
    masks = ((i - centre[0]) ** 2 + (j - centre[1]) ** 2 < radius**2).astype(int)
    return (masks + 0.5 * rng.normal(size=masks.shape)).astype(np.float32), masks


@pytest.fixture(scope="module")
def fitted(single):
    images, y = digits(240)
    arrays = {"x": images, "y": np.array([f"<{k}>" for k in y])}
    return ansatz.fit(arrays, network="lenet5", likelihood="categorical", options=QUICK)


@pytest.fixture(scope="module")
def classes(fitted):
    """The evidence of a classifier of digits, and its report."""
    evidence = replayed(replay(fitted))
    return evidence, build(evidence)


@pytest.fixture(scope="module")
def masks(single):
    """The evidence of a linear model of discs, some cells without a label."""
    images, y = discs(30)
    y[:, :3] = -1
    model = Segmenter(network="linear_pixels", **QUICK).fit(images[:20], y[:20])
    return gather(model, images[20:], y[20:], training=(images[:20], y[:20]))


@pytest.fixture(scope="module")
def counts(single):
    images, y = digits(60)
    model = Regressor("poisson", network="linear_grid", **QUICK).fit(images[:40], y[:40])
    return gather(model, images[40:], y[40:], training=(images[:40], y[:40]))


def test_every_section_in_the_contents_exists(classes, masks):
    of_columns = contribution(structures.create("vector")).chapters("row")
    for chapter in [*chapters(classes[0]), *chapters(masks), *of_columns]:
        assert callable(load(chapter.section))


def test_sections_of_columns_are_of_tables_alone():
    of_columns = {"importance of columns", "effects of columns", "subgroups", "extrapolation"}
    assert of_columns <= {
        chapter.words for chapter in contribution(structures.create("vector")).chapters("row")
    }
    for axis in ("row", "element"):
        assert not of_columns & {
            chapter.words for chapter in contribution(structures.create("grid")).chapters(axis)
        }


def test_a_report_of_images_has_its_sections_and_fetches_nothing(classes):
    evidence, report = classes
    assert [section.title for section in report.sections] == [
        "What was fitted",
        "Scores",
        "Reliability of the probabilities",
        "Recalibration, before and after",
        "Confusion of classes",
        "The most confident mistakes",
        "Attributions",
        "Filters and feature maps",
        "Accuracy under shifts, rotations and noise",
        "What the images look like",
    ]
    assert "Could not be computed" not in report.page and "<0>" not in report.page
    links = re.findall(r'(?:href|src)="([^"]*)"', report.page)
    assert all(link.startswith(("#", "data:")) for link in links)
    assert len(report.page) < 3e6
    assert f"evaluated on {len(evidence.outcome)} test images" in report.verdict[0]


def test_scores_are_those_of_the_fit(fitted, classes):
    """The fit evaluates model, linear and constant model by another path, of the same seed."""
    evidence, _ = classes
    for found in compare(evidence):
        for name, metrics in (
            ("model", fitted.metrics),
            ("linear", fitted.linear),
            ("constant", fitted.constant),
        ):
            assert found.scores[name].value == pytest.approx(metrics[found.metric], abs=1e-6)


def test_the_lead_of_the_confusion_counts_right_answers(classes, fitted):
    evidence, report = classes
    right = (fitted.model.predict(evidence.X) == np.asarray(evidence.y)).mean()
    assert report.sections[4].lead.startswith(f"{100 * right:.1f}".rstrip("0").rstrip("."))


def test_layers_are_those_of_the_summary(classes, fitted):
    evidence, _ = classes
    found = networks.summary(
        fitted.model.model_.network, fitted.model.model_.encoder.preprocessor.spec
    )
    table = layer_table(evidence)
    assert [row[0] for row in table.rows] == [row.name for row in found.rows]
    assert str(fitted.model.summary()) == str(fitted.summary()) == str(found)


def test_a_certificate_knows_what_is_built_in(single):
    class Mean(nn.Module):
        def __init__(self):
            super().__init__()
            self.output = nn.Linear(1, 3)

        def forward(self, x):
            return self.output(x.mean((2, 3)))

    images, y = digits(30)
    evidence = gather(Classifier(network=Mean(), **QUICK).fit(images, y % 3), images, y % 3)
    found = {each.group: each.relative for each in certificates(evidence)[0]}
    assert found["flip"] < 1e-4 and found["rotation90"] < 1e-4 < found["shift"]
    assert found["cyclic_shift"] < 1e-4
    assert "up to rounding: cyclic_shift, flip, rotation90" in robustness(evidence).lead


def test_numbers_on_images_show_the_worst_first(counts):
    rate = counts.distribution.mean.numpy()
    surprise = -stats.poisson(rate).logpmf(counts.value.numpy())
    rows = next(part for part in cases(counts).parts if hasattr(part, "rows")).rows
    order = np.argsort(-surprise)[:3]
    assert [row[0] for row in rows[:3]] == [f"no. {k + 1}" for k in order]
    assert [row[3] for row in rows[:3]] == pytest.approx(surprise[order], rel=1e-6)


def naive_dice(y, codes):
    seen = y >= 0
    both = (y == 1) & (codes == 1) & seen
    return 2 * both.sum() / ((seen & (y == 1)).sum() + (seen & (codes == 1)).sum())


def test_errors_of_masks_count_images_not_cells(masks):
    each = [naive_dice(y, c) for y, c in zip(masks.outcome.numpy(), masks.point, strict=True)]
    found = {c.metric: c for c in compare(masks)}
    assert found["dice"].scores["model"].value == pytest.approx(np.mean(each))
    error = np.std(each, ddof=1) / len(each) ** 0.5
    assert found["dice"].scores["model"].error == pytest.approx(error)
    row = next(r for r in by_class(masks).parts[0].rows if r[:2] == ["1", "model"])
    assert row[2] == f"{np.mean(each):.3f}"


def test_cells_without_a_label_have_no_say(masks):
    (likelihood, raw), y, outcome = masks.predictive(), masks.outcome, masks.model.outcome
    whole = outcome.row_losses(Predictive(likelihood, raw), y)
    assert_close(whole, outcome.row_losses(Predictive(likelihood, raw[:, 3:]), y[:, 3:]))
    assert bool((sample_pixels(masks).codes >= 0).all())


def test_the_calibration_of_pixels_is_reported_in_images(masks):
    probs = masks.model.outcome.probabilities(masks.predictive())
    said, top = (t[:, 3:].double() for t in probs.max(-1))
    right = (top == masks.outcome[:, 3:]).double()
    gap = 100 * (right - said).mean((1, 2))
    told = float(
        re.search(r"difference of (−?[\d.]+) ±", pixel_calibration(masks))[1].replace("−", "-")
    )
    assert told == pytest.approx(float(gap.mean()), abs=0.06)


def test_overlays_rank_images_by_dice(masks):
    each = [naive_dice(y, c) for y, c in zip(masks.outcome.numpy(), masks.point, strict=True)]
    alt = overlays(masks).parts[0].alt
    assert f"best {max(each):.3f}" in alt and f"worst {min(each):.3f}" in alt


def test_an_ensemble_shows_where_it_disagrees_and_what_its_temperature_did(single):
    images, y = discs(12)
    y[:, :3] = -1
    settings = {"inference": "ensemble", "members": 2, **QUICK}
    model = Segmenter(network="linear_pixels", **settings).fit(images[:8], y[:8])
    evidence = gather(model, images[8:], y[8:])
    shown = overlays(evidence).parts[0]
    assert "members of the ensemble disagree" in shown.caption and "disagreement" in shown.svg
    before = model._without_recalibration().evaluate(images[8:], y[8:])["nll"]
    after = model.evaluate(images[8:], y[8:])["nll"]
    told = re.search(r"([\d.]+) before, ([\d.]+) after", mask_recalibration(evidence).lead)
    assert float(told[1]) == pytest.approx(before, rel=1e-3)
    assert float(told[2]) == pytest.approx(after, rel=1e-3)


def test_models_of_masks_are_compared_image_by_image(masks):
    images, y = discs(30)
    y[:, :3] = -1
    arrays = {"x": images, "mask": y}
    fits = [
        ansatz.fit(arrays, network="linear_pixels", options={**QUICK, "learning_rate": rate})
        for rate in (1e-2, 1e-4)
    ]
    found = ansatz.compare(*fits)
    test = replay(fits[0]).test
    each = [
        [
            naive_dice(t, c)
            for t, c in zip(test.y.numpy(), fit.model.predict(test.rows).astype(int), strict=True)
        ]
        for fit in fits
    ]
    assert found.scores[0].name == "dice"
    gain = np.subtract(*each).mean()
    assert found.scores[0].difference.mean == pytest.approx(gain, abs=1e-9)


def test_signals_are_drawn_as_curves_and_volumes_as_middle_slices():
    rise = torch.linspace(0, 1, 30).reshape(1, 1, 30)
    (curve,) = pictures_of(Grids(rise))
    inked = (curve < 255).any(-1)
    assert inked.any(0).all()  # in every column
    middle = np.array([np.flatnonzero(column).mean() for column in inked.T])
    assert (np.diff(middle) <= 0).all()  # rows are counted from the top
    volume = torch.arange(2 * 5 * 3 * 4).reshape(2, 1, 5, 3, 4).float()
    assert_close(pictures_of(Grids(volume))[..., 0], volume[:, 0, 2].numpy())
    assert slices_of(np.zeros((2, 5, 3, 4))).shape == (2, 3, 4)


@pytest.mark.parametrize("size", [(20,), (6, 6, 6)])
def test_no_section_fails_for_signals_and_volumes(size, single):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 24)
    x = rng.normal(size=(24, 1, *size)).astype(np.float32) + y.reshape(-1, 1, *(1 for _ in size))
    grids = Grids(torch.from_numpy(x.astype(np.float32)))
    model = Classifier(network="linear_grid", **QUICK).fit(grids, y)
    evidence = gather(model, grids, y)
    assert mistakes(evidence).title and examples(evidence).parts
    assert robustness(evidence).title == "Symmetries"
    segmented = (x[:, 0] > 0).astype(int)
    model = Segmenter(network="linear_pixels", **QUICK).fit(grids, segmented)
    assert "Dice" in overlays(gather(model, grids, segmented)).lead


def test_many_examples_are_evaluated_on_a_sample_that_is_reported(fitted, monkeypatch):
    monkeypatch.setattr(pictures, "FEWEST", 20)
    monkeypatch.setattr(pictures, "WORK", 1.0)
    evidence = replayed(replay(fitted))
    assert len(evidence.outcome) == len(evidence.X) == len(evidence.y) == 20
    assert evidence.total == fitted.rows["test"]


def test_what_classes_of_images_lack_is_said(fitted):
    images, y = digits(10)
    with pytest.raises(UsageError, match="classes have no intervals: predict_proba"):
        fitted.model.interval(images)
    with pytest.raises(UsageError, match="classes have no intervals"):
        fitted.model.calibrate(images, y)


def test_the_command_that_repeats_a_fit_to_signals_names_them(tmp_path, single):
    rng = np.random.default_rng(0)
    rows = ["a,b,c,d,e,f,g,h,kind"]
    rows += [
        ",".join(f"{v:.3f}" for v in rng.normal(size=8)) + f",{'uv'[k % 2]}" for k in range(30)
    ]
    (tmp_path / "s.csv").write_text("\n".join(rows))
    fit = ansatz.fit(tmp_path / "s.csv", x="grid", target="kind", network="linear_grid")
    evidence = replayed(replay(fit))
    assert f"{tmp_path / 's.csv'} --target kind --x grid --network" in command_line(evidence)
    assert "x='grid'" in python_lines(evidence)


def test_boundaries_of_two_classes_count_as_much_as_their_image_weighs():
    y, said = (torch.from_numpy(discs(count)[1][:3]) for count in (3, 4))
    alone = [float(boundary_f1(y[k : k + 1], said[k : k + 1], classes=2)) for k in range(3)]
    weight = torch.tensor([1.0, 3.0, 0.0])
    nothing, found = _edges(y, said, torch.ones(y.shape), weight, 2)
    assert np.isnan(nothing) and len(set(alone)) == 3
    assert found == pytest.approx((alone[0] + 3 * alone[1]) / 4)
