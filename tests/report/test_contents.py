"""The order of the page: what is announced to a waiting user, for a table, images and masks."""

import numpy as np
import pytest

from ansatz import Classifier, Ranker, Regressor, Segmenter, SurvivalRegressor
from ansatz.fitting.contracts.structure import Structure
from ansatz.report import build, gather
from ansatz.report.assembly import chapters
from ansatz.report.evidence import Contribution, contribution

NUMBERS = [
    "predicted and observed",
    "probability integral transform",
    "distributions of vectors",
    "errors of direction",
    "coverage of intervals",
    "reliability of probabilities",
    "quantile residuals",
    "residual panels",
    "recalibration",
]
FIRST = ["what was fitted", "scores beside other models", "the posterior"]
NETWORK = ["filters and feature maps", "perturbations and symmetries"]
ANNOUNCED = {
    "table": [
        "what was fitted",
        "coefficients",
        "penalised coefficients",
        "scores beside other models",
        "the posterior",
        *NUMBERS,
        "importance of columns",
        "effects of columns",
        "subgroups",
        "extrapolation",
        "worst-fitted rows",
        "decisions from costs",
        "the data",
    ],
    "images": [
        *FIRST,
        *NUMBERS,
        "confused classes",
        "confident mistakes",
        "best and worst examples",
        "attributions",
        *NETWORK,
        "decisions from costs",
        "the data",
    ],
    "masks": [
        *FIRST,
        "masks over images",
        "scores of each class",
        "reliability of the pixels' probabilities",
        "recalibration",
        *NETWORK,
        "the data",
    ],
}
TITLES = {
    "table": [
        "What was fitted",
        "Coefficients",
        "Scores",
        "Predicted and observed",
        "Calibration of the predictions",
        "Coverage of the intervals",
        "Quantile residuals",
        "Residual panels",
        "Recalibration, before and after",
        "Importance of columns",
        "Effects",
        "Subgroups",
        "Extrapolation",
        "Rows with the largest loss",
        "Decisions from costs",
        "The data",
    ],
    "images": [
        "What was fitted",
        "Scores",
        "Reliability of the probabilities",
        "Recalibration, before and after",
        "Confusion of classes",
        "The most confident mistakes",
        "Attributions",
        "Accuracy under shifts, rotations and noise",
        "Decisions from costs",
        "What the images look like",
    ],
    "masks": [
        "What was fitted",
        "Scores",
        "Masks, from the best to the worst",
        "Scores of each class",
        "Reliability of pixel probabilities",
        "Recalibration, before and after",
        "Filters and feature maps",
        "Symmetries",
        "The data",
    ],
}


def evidence_of(what):
    rng = np.random.default_rng(0)
    if what == "table":
        x = rng.normal(size=(60, 2))
        y = x[:, 0] + rng.normal(size=60)
        model = Regressor("normal", network="linear").fit(x, y)
        return gather(model, x, y, settings={"refits": 0, "costs": {"under": 2.0, "over": 1.0}})
    images = rng.normal(size=(20, 8, 8)).astype(np.float32)
    if what == "images":
        model = Classifier(network="linear_grid", epochs=1).fit(images, np.arange(20) % 2)
        costs = {"miss": 2.0, "alarm": 1.0}
        return gather(model, images, np.arange(20) % 2, settings={"costs": costs})
    model = Segmenter(network="linear_pixels", epochs=1).fit(images, images > 0)
    return gather(model, images, images > 0)


@pytest.mark.parametrize("what", TITLES)
def test_the_order_of_the_page(what, blank):
    announced = []
    report = build(evidence_of(what), announced.append)
    assert announced == ANNOUNCED[what]
    assert [section.title for section in report.sections] == TITLES[what]


def test_chapters_of_one_outcome_are_announced_for_it_alone():
    x, time = np.arange(9.0).reshape(-1, 1), np.arange(1.0, 10.0)
    lived = SurvivalRegressor("weibull", network="linear").fit(x, time + time % 2)
    order = np.array([["a", "b"], ["b", "a"], ["a", "b"]])
    ranked = Ranker(network="linear").fit(None, order)
    words = [
        [chapter.words for chapter in chapters(evidence)]
        for evidence in (gather(lived, x, time), gather(ranked, None, order))
    ]
    assert "calibration of survival" in words[0] and "first places of rankings" in words[1]
    assert not set(words[1]) & {"calibration of survival"}
    assert not set(words[0]) & {"first places of rankings"}


def test_a_structure_that_adds_nothing_has_the_general_chapters(blank):
    evidence = evidence_of("table")
    evidence.contribution = contribution(type("Bags", (Structure,), {}))
    assert type(evidence.contribution) is Contribution
    announced = []
    report = build(evidence, announced.append)
    assert announced == [*FIRST, *NUMBERS, "decisions from costs"]
    assert "Computed from the rows that were given" in report.page
    assert "Could not be computed" not in report.page
