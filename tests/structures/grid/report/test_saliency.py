"""What predictions of signals, images and volumes rest on: sums, windows, slices and words."""

import re
from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from ansatz import Classifier, Ranker, Regressor, SurvivalRegressor
from ansatz.attribution import score
from ansatz.data.grids import Grids
from ansatz.figures.page import render
from ansatz.report import gather
from ansatz.report.outcome_report import outcome_words
from ansatz.structures.grid.report.attributions import PARTS, attributions, explained
from ansatz.structures.grid.report.network import inputs_of
from ansatz.structures.grid.report.saliency import (
    POINTS,
    _thinned,
    _tinted,
    section,
    sliced,
    strongest_slices,
)

SIZES = {"signal": (21,), "image": (9, 8), "volume": (5, 6, 7)}
every_grid = pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
LINEAR = {"network": "linear_grid", "epochs": 1, "holdout": 0.0}


def small(size):
    """A convolution and a linear map of everything, to three outputs."""
    conv = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}[len(size)]
    head = nn.Linear(3 * int(np.prod(size)), 3)
    return nn.Sequential(conv(2, 3, 3, padding=1), nn.Tanh(), nn.Flatten(), head)


@every_grid
def test_integrated_gradients_add_up_to_the_difference_of_the_outputs(size):
    network, x = small(size), torch.randn(3, 2, *size)
    found = attributions(network, x, torch.tensor([2, 0, 1]), baseline=0.5)
    with torch.no_grad():
        here, there = network(x), network(torch.full_like(x, 0.5))
    gain = np.array([(here[i, k] - there[i, k]).item() for i, k in enumerate((2, 0, 1))])
    total = found.maps["integrated gradients"].reshape(3, -1).sum(1)
    assert_allclose(total, gain, rtol=1e-9, atol=1e-9)
    assert_allclose(found.gain, gain, rtol=1e-12)
    assert_allclose(found.gap, total - gain, atol=1e-12)
    assert found.steps == 32 and all(v.shape == (3, *size) for v in found.maps.values())


def test_points_are_doubled_while_a_sum_is_off_by_a_hundredth():
    """A rise that begins late on the way, between two points of the rule."""

    class Late(nn.Module):
        def forward(self, x):
            return 50 * (x.flatten(1).mean(1) - 0.98).relu()

    x = torch.ones(1, 1, 4)
    few, many = (attributions(Late(), x, 0, most=most) for most in (32, 256))
    assert few.steps == 32 < many.steps
    assert abs(many.gap[0]) <= 0.01 * abs(many.gain[0]) < abs(few.gap[0])
    assert f"with {many.steps} points" in many.completeness()
    assert f"({100 * abs(many.gap[0]):.2f}".rstrip("0") in many.completeness()


@every_grid
@pytest.mark.parametrize("overlap", [True, False])
def test_occlusion_is_the_mean_fall_over_the_windows_on_a_cell(size, overlap):
    network, x = small(size), torch.randn(2, 2, *size)
    window = [-(-n // PARTS[len(size)]) for n in size]
    steps = [max(w // 2, 1) if overlap else w for w in window]
    starts = [
        sorted({*range(0, n - w, step), n - w})
        for n, w, step in zip(size, window, steps, strict=True)
    ]
    total, count = np.zeros((2, *size)), np.zeros(size)
    with torch.no_grad():
        for corner in product(*starts):
            there = tuple(slice(a, a + w) for a, w in zip(corner, window, strict=True))
            covered = x.clone()
            covered[(slice(None), slice(None), *there)] = 0.0
            fall = (network(x) - network(covered))[:, 1].numpy()
            total[(slice(None), *there)] += fall.reshape(2, *(1,) * len(size))
            count[there] += 1
    found = attributions(network, x, 1, overlap=overlap).maps["occlusion"]
    assert_allclose(found, total / count, atol=1e-12)


def test_the_slice_with_the_largest_share_of_all_methods_is_shown():
    rng = np.random.default_rng(0)
    maps = {"a": rng.normal(size=(4, 5, 3, 2)), "b": 1e6 * rng.normal(size=(4, 5, 3, 2))}
    for i, found in enumerate(strongest_slices(maps)):
        shares = [
            sum(np.abs(heat[i, d]).sum() / np.abs(heat[i]).sum() for heat in maps.values())
            for d in range(5)
        ]
        assert found == np.argmax(shares)
        assert_allclose(sliced(maps["a"], strongest_slices(maps))[i], maps["a"][i, found])


def test_long_curves_keep_their_peaks_and_bands_their_signs():
    line = np.random.default_rng(0).normal(size=9_001)
    places, values = _thinned(line)
    assert len(values) == 2 * POINTS and (values.min(), values.max()) == (line.min(), line.max())
    assert abs(places[values.argmax()] - line.argmax()) < 9_001 / POINTS
    (band,) = _tinted(np.array([[-1.0, 0.0, 0.5, 1.0]]))
    assert band[:, 3].tolist() == [255, 0, 128, 255]
    assert band[0, 0] > band[0, 2] and band[3, 2] > band[3, 0]  # vermilion, blue


@pytest.fixture(scope="module")
def grids():
    """Signals, images and volumes whose sum tells the class, and the counts."""
    rng = np.random.default_rng(0)
    found = {}
    for size in SIZES.values():
        x = rng.normal(size=(30, 1, *size)).astype(np.float32)
        found[size] = Grids(torch.from_numpy(x)), x.sum(tuple(range(1, x.ndim)))
    return found


@every_grid
@pytest.mark.parametrize("kind", ["class", "number"])
def test_every_grid_has_its_section_in_its_words(size, kind, grids):
    x, total = grids[size]
    if kind == "class":
        y = np.where(total > 0, "<b>&", "<i>")
        model = Classifier(**LINEAR).fit(x, y)
    else:
        y = np.random.default_rng(1).poisson(np.exp(0.5 * np.tanh(total)))
        model = Regressor("poisson", **LINEAR).fit(x, y)
    evidence = gather(model, x, y)
    made = section(evidence)
    figure, note = made.parts
    subject = "the score of the predicted class" if kind == "class" else "the predicted mean"
    assert made.title == "Attributions" and subject in made.lead
    assert "points the error of their sum is at most" in figure.caption
    assert evidence.unit.one in figure.caption
    assert re.search(r"\d random ", note.text) and f"of {evidence.unit.many}: " in figure.alt
    if kind == "number":
        start = model.predict(Grids(torch.from_numpy(np.full_like(x.load()[:1], x.load().mean()))))
        assert f"where it is {start[0]:.3g}," in figure.caption
        k = int(evidence.row_losses().argmax())
        assert f"pred. {evidence.point[k]:.3g}, true {y[k]}" in figure.alt
    if evidence.unit.many == "volumes":
        assert f"of {size[0]}<" in figure.svg and ">slice<" in figure.svg
    page = render([made], title="grids")
    assert "<b>" not in page and "<i>" not in page


LIKELIHOODS = {  # what is explained, and what it is of the raw numbers
    "poisson": ("the predicted mean", lambda raw: raw[:, 0].exp()),
    "student_t": ("the prediction", lambda raw: raw[:, 0]),
    "von_mises": ("the component along the predicted direction", lambda raw: raw.norm(dim=1)),
    "generalized_pareto": ("the linear predictor (log link)", lambda raw: raw[:, 0]),
    "two targets": ("the predicted mean of y0 (the first of 2 outcomes)", lambda raw: raw[:, 0, 0]),
    "cox": ("the log-risk", lambda raw: raw[:, 0]),
    "log_normal": ("the predicted median", lambda raw: raw[:, 0].exp()),
    "discrete_hazard": ("the predicted restricted mean time", None),
    "ordinal": ("the linear predictor of the ordered classes", lambda raw: raw[:, 0]),
    "ranking": ("the log-worth of the predicted first item", None),
}


def fitted(likelihood, x):
    rng = np.random.default_rng(0)
    y = x.mean((1, 2)) + 0.1 * rng.normal(size=len(x))
    if likelihood in ("cox", "log_normal", "discrete_hazard"):
        times = pd.DataFrame({"time": np.exp(y), "event": (np.arange(len(y)) % 3 > 0).astype(int)})
        return SurvivalRegressor(likelihood, **LINEAR).fit(x, times), times
    if likelihood == "ordinal":
        codes = np.digitize(y, [-0.05, 0.05])
        return Classifier(likelihood, **LINEAR).fit(x, codes), codes
    if likelihood == "ranking":
        orders = np.stack([rng.permutation(3) for _ in y])
        return Ranker(**LINEAR).fit(x, orders), orders
    outcomes = {
        "poisson": rng.poisson(np.exp(y)),
        "generalized_pareto": rng.uniform(size=len(y)) ** -3.0,  # without a mean
        "two targets": np.stack([y, -y], 1),
    }.get(likelihood, y)
    return Regressor("normal" if likelihood == "two targets" else likelihood, **LINEAR).fit(
        x, outcomes
    ), outcomes


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_what_is_explained_is_one_number_of_the_likelihood(likelihood):
    x = np.random.default_rng(0).normal(size=(30, 6, 6)).astype(np.float32)
    model, y = fitted(likelihood, x)
    evidence, rows = gather(model, x, y), np.arange(5)
    what = explained(evidence, rows, inputs_of(evidence, rows))
    subject, expected = LIKELIHOODS[likelihood]
    assert what.subject == subject
    raw = evidence.predictive().raw[:5]
    number = expected(raw) if expected else None
    if likelihood == "discrete_hazard":
        number = evidence.likelihood.distribution(raw).mean
    if likelihood == "ranking":
        number = evidence.likelihood.scores(raw).amax(1)
    with torch.no_grad():
        found = score(what.network(inputs_of(evidence, rows)), what.target)
    assert_allclose(found.numpy(), number.numpy(), rtol=1e-5)
    assert what.subject in section(evidence).lead


def test_a_censored_time_is_said_to_be_larger():
    x = np.random.default_rng(0).normal(size=(30, 6, 6)).astype(np.float32)
    model, y = fitted("log_normal", x)
    evidence = gather(model, x, y)
    assert float(outcome_words(evidence, 0).removeprefix("> ")) == pytest.approx(
        y.time[0], rel=1e-2
    )
    assert outcome_words(evidence, 0).startswith("> ") and y.event[0] == 0
    assert float(outcome_words(evidence, 1)) == pytest.approx(y.time[1], rel=1e-2)
