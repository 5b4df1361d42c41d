import math

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import beta
from torch import nn
from torch.testing import assert_close

import ansatz
from ansatz import Classifier, Regressor
from ansatz.cli.main import run
from ansatz.errors import DataError, UsageError
from ansatz.inference.certificate import SCALES, Certificate, bound
from ansatz.inference.row_noise import RowNoise
from ansatz.theory import gaussian_kl, pac_bayes_risk

QUICK = {"epochs": 10, "widths": (8,)}


def table(count=400, seed=0):
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(count, 3))
    kind = np.where(x[:, 0] + 0.3 * draw.normal(size=count) > 0, "up", "down")
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "kind": kind})


@pytest.fixture(scope="module")
def fit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bound")
    table().to_csv(folder / "table.csv", index=False)
    return ansatz.fit(
        folder / "table.csv", target="kind", inference="pac_bayes", options=QUICK,
        out=folder / "model",
    )  # fmt: skip


def test_the_bound_is_the_formula_with_both_prices():
    found = Certificate(0.02, 7.0, 2_000, 10_000, level=0.05)

    def kl(p, r):
        return p * math.log(p / r) + (1 - p) * math.log((1 - p) / (1 - r))

    # The largest empirical error that the simulation allows, at a tenth of the level.
    grid = np.linspace(0.02, 0.1, 200_001)
    allowed = grid[[kl(0.02, r) <= math.log(1 / 0.005) / 10_000 for r in grid]][-1]
    expected = pac_bayes_risk(float(allowed), 7.0, 2_000, 0.045 / len(SCALES))
    assert found.bound == pytest.approx(expected, abs=1e-6)
    assert Certificate(0.02, 7.0, 2_000, 10_000, level=0.01).bound > found.bound
    assert found.test_bound is None
    tested = found._replace(test_errors=3, test_rows=100)
    assert tested.test_bound == pytest.approx(beta.ppf(0.95, 4, 97))
    # 1 - 0.05^(1/n) without an error: the rule of three
    zero = found._replace(test_errors=0, test_rows=100).test_bound
    assert zero == pytest.approx(1 - 0.05**0.01)


def field():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    found = RowNoise(network, (torch.zeros(1, 3),), 0.3)
    with torch.no_grad():
        for p in (*found.shift, *found.log_ratio):
            p.copy_(0.3 * torch.randn_like(p))
    return network, found


def test_the_divergence_is_that_of_normal_distributions():
    _, found = field()
    scale = float(found.log_scale.detach().exp())
    expected = 0.0
    for (_, _, mean, sd), base, unit in zip(found.weights(), found.base, found.units, strict=True):
        prior = torch.tensor(scale * unit)
        expected += float(gaussian_kl(mean.detach(), sd.detach(), base, prior))
    assert float(found.kl().detach()) == pytest.approx(expected, rel=1e-9)


def test_outputs_have_the_law_of_weights_drawn_for_every_row():
    network, found = field()
    x = torch.randn(1, 3)
    source, count = torch.Generator().manual_seed(1), 40_000
    with torch.no_grad(), found.noise(source):
        fast = network(x.expand(count, 3))
    layers = {}
    for part, name, mean, sd in found.weights():
        noise = torch.randn(count, *mean.shape, generator=source)
        layers[part, name] = (mean + sd * noise).detach()
    h = x.expand(count, 3)
    for k, part in enumerate(found.maps):
        h = torch.einsum("noi,ni->no", layers[part, "weight"], h) + layers[part, "bias"]
        h = h.tanh() if k == 0 else h
    error = h.std(0) / count**0.5
    assert bool(((fast.mean(0) - h.mean(0)).abs() < 6 * error).all())
    assert_close(fast.T.cov(), h.T.cov(), rtol=0.06, atol=0.02)


def test_convolutions_are_not_drawn_and_a_network_without_linear_maps_is_refused():
    network = nn.Sequential(nn.Conv1d(1, 2, 3), nn.Flatten(), nn.Linear(4, 2))
    found = RowNoise(network, (torch.zeros(1, 1, 4),), 0.1)
    assert [type(part) for part in found.maps] == [nn.Linear]
    with pytest.raises(UsageError, match="linear maps of whole rows"):
        RowNoise(nn.Conv1d(1, 2, 3), (torch.zeros(1, 1, 4),), 0.1)


def test_the_bound_holds_on_many_new_rows(fit):
    found = bound(fit)
    assert found.rows == 160 and found.error < found.bound < 0.5
    new = table(5_000, 9)
    rows = fit.model.read_again(new.drop(columns="kind"), new["kind"]).rows
    parts = fit.fitted.posterior.components(rows)
    kinds = torch.stack([each.raw[:, 0] > 0 for _, each in parts])
    wrong = (kinds.numpy() != (new["kind"] == "up").to_numpy()).mean()
    assert wrong < found.bound
    assert any("errs on at most" in note for note in fit.notes)


def test_the_command_prints_the_bound_and_the_test_rows(fit, capsys):
    assert run(["bound", str(fit.folder), "--level", "0.1"]) == 0
    printed = capsys.readouterr().out
    assert "With probability 0.9" in printed and "Clopper and Pearson" in printed
    again = bound(fit.folder, level=0.1)
    assert f"{again.bound:.2%}" in printed and again == bound(fit, level=0.1)


def test_another_model_is_fitted_again_with_a_bound():
    other = ansatz.fit(table(), target="kind", inference="point", options=QUICK)
    found = bound(other, table(), prior_share=0.25)
    assert found.rows == 240 and found.bound < 0.6


def test_what_has_no_bound_is_refused():
    frame = table(80)
    with pytest.raises(DataError, match="10 rows for its prior and 10 others, got 8 and 7"):
        few = frame.head(15)
        Classifier(inference="pac_bayes", **QUICK).fit(few[["a", "b"]], few["kind"])
    with pytest.raises(UsageError, match="bounds the error of classes, got normal"):
        Regressor("normal", inference="pac_bayes", **QUICK).fit(frame[["a"]], frame["b"])
    model = Classifier(**QUICK).fit(frame[["a", "b"]], frame["kind"])
    with pytest.raises(DataError, match="no rows left for a bound"):
        bound(model, (frame[["a", "b"]], frame["kind"]))
    with pytest.raises(UsageError, match=r"level must be in \(0, 1\), got 2"):
        bound(model, level=2)
