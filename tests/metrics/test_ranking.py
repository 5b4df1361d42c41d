import math

import pytest
import torch
from scipy import stats
from torch.testing import assert_close

from ansatz.likelihoods.plackett_luce import RankingDistribution
from ansatz.metrics import compute_metrics, kendall_tau, names, top_one_accuracy


def orders(rows, items):
    return torch.rand(rows, items).argsort(1)


def naive_tau(y, order, unranked):
    """Pair by pair."""
    place = {item: k for k, item in enumerate(y) if item >= 0}
    said = {item: k for k, item in enumerate(order)}
    score = pairs = 0
    for a in order:
        for b in order:
            known = a in place and (place[b] > place[a] if b in place else unranked == "last")
            if a != b and known:
                pairs += 1
                score += 1 if said[a] < said[b] else -1
    return score / pairs if pairs else math.nan


def test_of_whole_rankings_is_scipys_kendall_tau():
    y, order = orders(20, 6), orders(20, 6)
    exact = [
        stats.kendalltau(a.argsort(), b.argsort()).statistic for a, b in zip(y, order, strict=True)
    ]
    assert_close(kendall_tau(y, order), torch.tensor(exact).mean())


@pytest.mark.parametrize("unranked", ["last", "absent"])
def test_of_partial_rankings_counts_the_observed_pairs(unranked):
    y, order = orders(30, 6), orders(30, 6)
    length = torch.randint(1, 7, (30, 1))
    y = torch.where(torch.arange(6) < length, y, -1)
    rows = zip(y.tolist(), order.tolist(), strict=True)
    exact = torch.tensor([naive_tau(a, b, unranked) for a, b in rows])
    weight = torch.randint(0, 3, (30,)).double()
    used = weight * exact.isfinite()
    assert_close(
        kendall_tau(y, order, weight, unranked=unranked),
        (used * exact.nan_to_num()).sum() / used.sum(),
    )


def test_the_first_of_those_present_counts():
    y = torch.tensor([[1, 0, -1], [2, -1, -1], [0, 2, 1]])
    order = torch.tensor([[2, 1, 0], [2, 1, 0], [2, 1, 0]])
    assert_close(top_one_accuracy(y, order), torch.tensor(1 / 3))
    # Among 0 and 1 the order prefers 1: right. 2 alone: no prediction. Of all three it names 2.
    assert_close(top_one_accuracy(y, order, unranked="absent"), torch.tensor(1 / 2))


def test_rankings_of_a_single_item_have_no_score():
    y, order = torch.tensor([[1, -1], [0, -1]]), torch.tensor([[1, 0], [1, 0]])
    for metric in (kendall_tau, top_one_accuracy):
        assert math.isnan(metric(y, order, unranked="absent").item())
        assert not math.isnan(metric(y, order).item())


def test_a_weight_is_a_repetition():
    y, order, weight = orders(9, 4), orders(9, 4), torch.randint(0, 4, (9,))
    again = [t.repeat_interleave(weight, 0) for t in (y, order)]
    for metric in (kendall_tau, top_one_accuracy):
        assert_close(metric(y, order, weight.double()), metric(*again))


def test_the_evaluate_of_rankings():
    scores, y = torch.randn(12, 4), orders(12, 4)
    distribution = RankingDistribution(scores)
    found = compute_metrics(y, point=distribution.mode, distribution=distribution)
    assert set(found) == {"nll", "kendall_tau", "top_one_accuracy"}
    assert found["nll"] == pytest.approx(-distribution.log_prob(y).mean().item())
    assert found["kendall_tau"] == pytest.approx(kendall_tau(y, distribution.mode).item())
    assert {"kendall_tau", "top_one_accuracy"} <= set(names())


def test_shapes_and_unknown_items_are_named():
    with pytest.raises(
        ValueError, match=r"y \(N, L\) and orders \(N, K\), got \(3,\) and \(3, 2\)"
    ):
        kendall_tau(torch.zeros(3), torch.zeros(3, 2))
    with pytest.raises(ValueError, match="orders of all items, got 2 of them and item 2 in y"):
        top_one_accuracy(torch.tensor([[2, 0]]), torch.tensor([[0, 1]]))
