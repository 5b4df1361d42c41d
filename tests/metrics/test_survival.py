import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from torch.testing import assert_close

from ansatz.errors import DataError
from ansatz.metrics import (
    aalen_johansen,
    antolini_c,
    brier_skill,
    brier_survival,
    d_calibration,
    harrell_c,
    integrated_brier,
    kaplan_meier,
    names,
    nelson_aalen,
    uno_c,
)


def rows(n, *, causes=1, entries=False):
    time = torch.randint(2, 14, (n,)).double()  # many ties
    event = torch.randint(0, causes + 2, (n,)).clamp(max=causes) * (torch.rand(n) < 0.7)
    entry = (time * torch.rand(n)).floor().clamp(max=time - 1) if entries else None
    return time, event, entry


def repeat(weight, *tensors):
    return [None if t is None else t.repeat_interleave(weight, 0) for t in tensors]


@pytest.mark.parametrize("entries", [False, True])
def test_curves_are_the_products_and_sums(entries):
    time, event, entry = rows(60, causes=2, entries=entries)
    late = torch.full((60,), -torch.inf) if entry is None else entry
    survival, hazard, incidence = 1.0, 0.0, {1: 0.0, 2: 0.0}
    km = kaplan_meier(time, (event > 0).long(), None, entry)
    na = nelson_aalen(time, event, None, entry)
    aj = {c: aalen_johansen(time, event, c, None, entry) for c in (1, 2)}
    for k, t in enumerate(time[event > 0].unique()):
        at_risk = ((late < t) & (time >= t)).sum()
        for c in (1, 2):
            died = ((time == t) & (event == c)).sum()
            incidence[c] = incidence[c] + survival * died / at_risk
            assert_close(aj[c].values[k], incidence[c])
        died = ((time == t) & (event > 0)).sum()
        survival, hazard = survival * (1 - died / at_risk), hazard + died / at_risk
        assert km.times[k] == t
        assert_close(km.values[k], survival)
        assert_close(na.values[k], hazard)
    assert_close(aj[1].values + aj[2].values, 1 - km.values)


def test_kaplan_meier_is_statsmodels():
    function = pytest.importorskip("statsmodels.duration.survfunc").SurvfuncRight
    time, event, _ = rows(80)
    exact = function(time.numpy(), event.numpy())
    curve = kaplan_meier(time, event)
    assert_close(curve.at(torch.tensor(exact.surv_times)), torch.tensor(exact.surv_prob))
    assert_close(curve.before(curve.times[1:]), curve.values[:-1])
    assert curve.at(torch.tensor([0.0])) == 1


def test_weights_are_repetitions():
    time, event, entry = rows(50, entries=True)
    score, weight = torch.randint(0, 9, (50,)).double(), torch.randint(0, 4, (50,))
    time[weight == 0] = torch.nan  # an absent row may hold anything
    again = repeat(weight, time, event, entry, score)
    one = kaplan_meier(time, event, weight, entry)
    two = kaplan_meier(*again[:2], None, again[2])
    assert_close(one, two)
    for late, late_again in ((None, None), (entry, again[2])):
        found = harrell_c(time, event, score, weight, late)
        assert_close(found, harrell_c(again[0], again[1], again[3], None, late_again))


def test_kaplan_meier_is_refused_where_causes_compete():
    with pytest.raises(DataError, match=r"got codes up to 2.*Use aalen_johansen"):
        kaplan_meier(torch.ones(2), torch.tensor([1, 2]))


def naive_c(time, event, score, factor, entry=None):
    won = total = 0.0
    for i in range(len(time)):
        for j in range(len(time)):
            later = time[j] > time[i] or (time[j] == time[i] and not event[j])
            at_risk = entry is None or entry[j] < time[i]
            if event[i] and later and at_risk and i != j:
                total += factor[i]
                won += factor[i] * ((score[i] > score[j]) + 0.5 * (score[i] == score[j]))
    return float(won / total)


@pytest.mark.parametrize("n", [2, 3, 17, 64, 65])
def test_harrells_c_is_the_double_loop(n):
    time, event, _ = rows(n)
    time[0], event[0] = 1.0, 1  # at least one pair
    score = torch.randint(0, 6, (n,)).double()  # ties
    exact = naive_c(time, event, score, torch.ones(n))
    assert harrell_c(time, event, score).item() == pytest.approx(exact)


def test_with_entries_a_partner_must_be_under_observation():
    time, event, entry = rows(60, entries=True)
    score = torch.randint(0, 6, (60,)).double()
    exact = naive_c(time, event, score, torch.ones(60), entry)
    assert harrell_c(time, event, score, None, entry).item() == pytest.approx(exact)
    assert exact != pytest.approx(harrell_c(time, event, score).item())


def test_no_pair_is_nan_and_a_perfect_order_is_one():
    assert harrell_c(torch.ones(3), torch.ones(3), torch.randn(3)).isnan()
    time = torch.rand(100)
    assert harrell_c(time, torch.rand(100) < 0.5, -time).item() == 1
    assert harrell_c(time, torch.rand(100) < 0.5, torch.zeros(100)).item() == 0.5


def test_unos_c_is_the_weighted_double_loop():
    time, event, _ = rows(60)
    score = torch.randn(60).round(decimals=1)
    train_time, train_event, _ = rows(90)
    censoring = kaplan_meier(train_time, 1 - train_event)
    factor = censoring.before(time) ** -2 * (time < 9)
    found = uno_c(time, event, score, train_time, train_event, tau=9.0)
    assert found.item() == pytest.approx(naive_c(time, event, score, factor))
    nobody = torch.ones(90)  # without censoring it is Harrell's
    everyone = uno_c(time, event, score, train_time + 20, nobody)
    assert_close(everyone, harrell_c(time, event, score))


def test_unos_c_names_a_horizon_that_training_never_saw():
    time, event = torch.tensor([1.0, 5.0, 6.0]), torch.tensor([1, 1, 0])
    with pytest.raises(DataError, match=r"up to time 5.0.*smaller tau"):
        uno_c(time, event, -time, torch.tensor([1.0, 2.0]), torch.tensor([1, 0]), tau=8.0)


def test_antolinis_c_is_the_double_loop_and_harrells_for_proportional_hazards():
    time, event, _ = rows(50)
    times = torch.arange(1.0, 15)
    curves = torch.rand(50, 14).sort(1, descending=True).values.round(decimals=1)
    won = total = 0.0
    for i in range(50):
        for j in range(50):
            if event[i] and (time[j] > time[i] or (time[j] == time[i] and not event[j])):
                k = int(time[i]) - 1
                total += 1
                won += float(curves[i, k] < curves[j, k]) + 0.5 * float(
                    curves[i, k] == curves[j, k]
                )
    assert antolini_c(curves, times, time, event).item() == pytest.approx(won / total)
    eta = torch.randn(50)
    proportional = (-times * 0.1 * eta.exp().unsqueeze(1)).exp()
    assert_close(antolini_c(proportional, times, time, event), harrell_c(time, event, eta))


def test_the_brier_score_is_the_formula():
    time, event, _ = rows(40)
    train_time, train_event, _ = rows(80)
    times, weight = torch.tensor([2.5, 5.0, 8.0]), torch.randint(1, 4, (40,)).double()
    survival = torch.rand(40, 3)
    G = kaplan_meier(train_time, 1 - train_event)
    found = brier_survival(survival, times, time, event, train_time, train_event, weight=weight)
    for k, t in enumerate(times):
        total = 0.0
        for i in range(40):
            if time[i] <= t and event[i]:
                total += weight[i] * survival[i, k] ** 2 / G.before(time[i : i + 1])
            elif time[i] > t:
                total += weight[i] * (1 - survival[i, k]) ** 2 / G.at(times[k : k + 1])
        assert_close(found[k], (total / weight.sum())[0])
    mean = integrated_brier(survival, times, time, event, train_time, train_event, weight=weight)
    assert mean.item() == pytest.approx(np.trapezoid(found, times) / 5.5)


def test_the_brier_score_does_not_depend_on_the_censoring():
    """With the true distribution: E[BS(t)] = E[S (1 - S)]; censoring only adds noise."""
    generator = torch.Generator().manual_seed(0)
    n, rate = 40_000, torch.rand(40_000, generator=generator) + 0.5
    time = -torch.rand(n, generator=generator).log() / rate
    censoring = -torch.rand(n, generator=generator).log() / 0.6
    seen, event = torch.minimum(time, censoring), (time <= censoring).long()
    times = torch.tensor([0.3, 0.8, 1.5])
    S = (-rate.unsqueeze(1) * times).exp()
    found = brier_survival(S, times, seen, event, seen, event)
    exact = (S * (1 - S)).mean(0)
    # a term is at most 1 / G, and its sd below 1 / sqrt(G) * 1/2
    error = 5 * 0.5 / (-0.6 * times).exp().sqrt() / n**0.5
    assert ((found - exact).abs() < error).all()


def test_skill_of_kaplan_meier_is_zero():
    time, event, _ = rows(100)
    times = torch.tensor([3.0, 5.0, 8.0])
    curve = kaplan_meier(time, event).at(times).expand(100, 3)
    skill = brier_skill(curve, times, time, event, time, event)
    assert skill.item() == pytest.approx(0, abs=1e-12)


def test_times_beyond_the_training_rows_are_refused():
    time, event = torch.tensor([1.0, 9.0]), torch.tensor([1, 1])
    train = torch.tensor([1.0, 2.0]), torch.tensor([1, 0])
    with pytest.raises(DataError, match=r"gone by time 5.0.*earlier times"):
        brier_survival(torch.full((2, 1), 0.5), torch.tensor([5.0]), time, event, *train)
    with pytest.raises(ValueError, match="two increasing times"):
        integrated_brier(torch.ones(2, 1), torch.ones(1), time, event, time, event)


def test_right_curves_are_d_calibrated_and_wrong_ones_are_not():
    generator = torch.Generator().manual_seed(0)
    n = 5000
    time, censoring = (-torch.rand(n, generator=generator).log() for _ in range(2))
    seen, event = torch.minimum(time, censoring), (time <= censoring).long()
    right = d_calibration((-seen).exp(), event)
    assert_close(right.shares, torch.full((10,), 0.1), atol=5 * (0.09 / n) ** 0.5, rtol=0)
    assert right.p_value > 1e-3
    assert d_calibration((-1.3 * seen).exp(), event).p_value < 1e-6


def test_d_calibration_without_censoring_is_pearsons_test():
    s = torch.rand(300)
    found = d_calibration(s, torch.ones(300))
    counts = np.histogram(s.numpy(), bins=10, range=(0, 1))[0]
    exact = stats.chisquare(counts)
    assert found.statistic == pytest.approx(exact.statistic)
    assert found.p_value == pytest.approx(exact.pvalue)
    assert_close(found.shares, torch.tensor(counts / 300))
    with pytest.raises(ValueError, match=r"probabilities, got 1\.5 in row 1"):
        d_calibration(torch.tensor([0.5, 1.5]), torch.ones(2))


def test_rossis_cox_model_has_the_published_concordance():
    folder = os.environ.get("ANSATZ_DATA")
    if folder is None:
        pytest.skip("ANSATZ_DATA is not set")
    table = pd.read_csv(Path(folder) / "survival" / "rossi.csv").astype(float)
    beta = {"fin": -0.37942217, "age": -0.05743774, "race": 0.31389979, "wexp": -0.14979570}
    beta |= {"mar": -0.43370388, "paro": -0.08487108, "prio": 0.09149708}
    score = torch.tensor((table[list(beta)] * np.array(list(beta.values()))).sum(axis=1).to_numpy())
    time, event = (torch.tensor(table[c].to_numpy()) for c in ("week", "arrest"))
    assert harrell_c(time, event, score).item() == pytest.approx(0.6403, abs=5e-5)


def test_the_registry_holds_them():
    mine = {"harrell_c", "uno_c", "antolini_c", "brier_survival", "integrated_brier"}
    assert mine | {"d_calibration", "brier_skill"} <= set(names())


def test_wrong_shapes_are_named():
    one = torch.ones(3)
    with pytest.raises(ValueError, match=r"curves \(3, 2\), got \(3, 1\)"):
        antolini_c(torch.ones(3, 1), torch.ones(2), one, one)
    with pytest.raises(ValueError, match=r"curves \(3, 2\), got \(3, 1\)"):
        brier_survival(torch.ones(3, 1), torch.ones(2), one, one, one, one)
    with pytest.raises(ValueError, match=r"shape of y, \(3,\), got \(2,\)"):
        harrell_c(one, one, torch.ones(2))
    with pytest.raises(ValueError, match="one entry per row"):
        kaplan_meier(one, torch.ones(2))
