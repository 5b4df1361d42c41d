"""Distances of samples, two-sample trees, disclosure, and the report."""

import numpy as np
import pandas as pd
import pytest
import torch

import ansatz
from ansatz.generative.disclosure import measure_disclosure
from ansatz.generative.distances import energy_distance, mean_discrepancy, precision_and_recall
from ansatz.generative.imputation import Imputations
from ansatz.generative.two_sample import area_error, trees, two_sample_auc
from ansatz.outcomes.report.generate import column_distance

RNG = np.random.default_rng(0)


def test_the_energy_distance_is_the_naive_double_sum():
    x, y = torch.randn(9, 2), torch.randn(7, 2) + 1
    scale = x.std(0, unbiased=False)
    a, b = (x - x.mean(0)) / scale, (y - x.mean(0)) / scale

    def mean(u, v, same):
        pairs = [(p - q).norm() for i, p in enumerate(u) for j, q in enumerate(v)]
        return sum(pairs) / (len(u) * (len(v) - same))

    expected = 2 * mean(a, b, 0) - mean(a, a, 1) - mean(b, b, 1)
    assert energy_distance(x, y) == pytest.approx(float(expected))


def test_distances_of_equal_distributions_have_mean_zero():
    pairs = torch.randn(40, 2, 30, 2)
    for distance in (energy_distance, mean_discrepancy):
        found = torch.tensor([distance(*pair) for pair in pairs])
        assert abs(found.mean()) < 4 * found.std() / len(found) ** 0.5 + 0.02


def test_precision_falls_with_noise_and_recall_with_collapse():
    real = torch.randn(150, 2)
    noisy, collapsed = 6 * torch.randn(150, 2), 0.05 * torch.randn(150, 2)
    assert precision_and_recall(real, noisy)[0] < 0.5 < precision_and_recall(real, noisy)[1]
    assert precision_and_recall(real, collapsed)[0] > 0.9 > precision_and_recall(real, collapsed)[1]


def test_the_standard_error_of_an_area_is_that_of_its_draws():
    draws = []
    for _ in range(300):
        a, b = RNG.normal(1, 1, 40), RNG.normal(0, 1, 60)
        draws.append((a[:, None] > b).mean())
    assert area_error(float(np.mean(draws)), 40, 60) == pytest.approx(np.std(draws), rel=0.2)


def test_trees_cannot_tell_equal_tables_apart():
    frame = pd.DataFrame({"a": RNG.normal(size=200), "b": RNG.choice(["u", "v"], 200)})
    found = two_sample_auc(frame[:100], frame[100:])
    assert abs(found.value - 0.5) < 4 * found.error
    model = trees(frame.assign(c=np.where(frame["a"] > 0, "p", "q")), "c")
    assert model.auc(frame.assign(c=np.where(frame["a"] > 0, "p", "q"))) > 0.95


def test_the_mean_of_imputations_leaves_known_values_as_they_are():
    tables = [pd.DataFrame({"a": [0.455, k], "b": ["u", "v"]}) for k in (0.1, 0.2, 0.6)]
    made = Imputations(tables, np.array([[False, False], [True, False]]))
    assert made.mean()["a"].tolist() == [0.455, pytest.approx(0.3)]


def test_a_model_that_copies_its_rows_is_disclosed():
    train, held_out = torch.randn(2, 120, 3)
    copied = measure_disclosure(train, held_out, train)
    assert copied.duplicates == 1 and copied.held_out == 0 and copied.nearer.value == 1
    fresh = measure_disclosure(train, held_out, torch.randn(120, 3), (train[:, 0], train[:, 1]))
    assert fresh.duplicates == 0 and abs(fresh.nearer.value - 0.5) < 4 * fresh.nearer.error
    assert abs(fresh.membership.value - 0.5) < 4 * fresh.membership.error
    assert "no guarantee" in fresh.words()[-1]


def test_column_distances_are_those_of_shares():
    levels = pd.Series(["u"] * 3 + ["v"]), pd.Series(["u", "v", "v", "w"])
    assert column_distance(*levels) == pytest.approx(0.5)
    assert column_distance(pd.Series([1.0, 2.0]), pd.Series([5.0, 6.0])) == 1.0


def test_the_command_line_fits_draws_scores_fills_and_reports(tmp_path, monkeypatch):
    from ansatz.cli.main import run

    monkeypatch.chdir(tmp_path)
    x = RNG.normal(size=80)
    frame = pd.DataFrame({"a": x.round(2), "b": np.where(x > 0, "up", "down")})
    frame.to_csv("t.csv", index=False)
    frame.assign(a=frame["a"].where(frame.index % 3 > 0)).to_csv("gaps.csv", index=False)
    fit = "fit t.csv --task generate --generator ppca --generator-option latents=1 --out m"
    assert run(fit.split()) == 0
    assert run("sample m -n 7 --seed 3 --out s.csv".split()) == 0
    assert run("density m t.csv --out d.csv".split()) == 0
    assert run("impute m gaps.csv --draws 2 --out i.csv".split()) == 0
    assert run("reconstruct m t.csv --out r.csv".split()) == 0
    assert run(["report", "m"]) == 0
    drawn, dense = pd.read_csv("s.csv"), pd.read_csv("d.csv")
    assert list(drawn) == ["a", "b"] and len(drawn) == 7
    assert list(dense) == ["row", "log_density", "se", "p_value"] and len(dense) == 80
    assert pd.read_csv("i.csv")["draw"].tolist() == [1] * 80 + [2] * 80
    assert not pd.read_csv("i.csv").isna().any().any() and len(pd.read_csv("r.csv")) == 80
    page = next(tmp_path.glob("m*.html")).read_text()
    assert "no guarantee" in page and "Could not be computed" not in page


def test_images_are_drawn_as_one_picture_and_as_files(tmp_path, monkeypatch):
    from PIL import Image

    from ansatz.cli.main import run

    images = (RNG.random((40, 6, 5)) > 0.5).astype(np.uint8) * 255
    np.savez(tmp_path / "x.npz", x=images, y=np.arange(40) % 2)
    monkeypatch.chdir(tmp_path)
    options = {"latents": 2, "widths": [8]}
    fit = ansatz.fit(
        "x.npz", task="generate", generator="vae", generator_options=options,
        options={"steps": 3}, out="m",
    )  # fmt: skip
    assert fit.metrics["bits_per_dim"] > 0 and fit.baselines["independent"]["nll"] > 0
    assert run("sample m -n 5 --out grid.png".split()) == 0
    assert run("sample m -n 5 --out files".split()) == 0
    with Image.open("grid.png") as picture:
        assert picture.size == (3 * 7, 2 * 8)
    assert len(list((tmp_path / "files").glob("*.png"))) == 5
