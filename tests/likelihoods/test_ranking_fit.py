import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import optimize
from torch.testing import assert_close

from ansatz.errors import DataError
from ansatz.likelihoods import PlackettLuce
from ansatz.likelihoods.plackett_luce import ranking_loss
from ansatz.likelihoods.ranking_fit import compare, fit_scores

RANKINGS = Path(os.environ.get("ANSATZ_DATA", "nowhere")) / "rankings"
needs_data = pytest.mark.skipif(not RANKINGS.exists(), reason="ANSATZ_DATA is not set")


def log_likelihood(scores, order, unranked, weight=None):
    weight = torch.ones(len(order)) if weight is None else weight
    return -(weight * ranking_loss(scores.expand(len(order), -1), order, unranked)).sum().item()


def draws(scores, rows, places=None):
    generator = torch.Generator().manual_seed(3)
    distribution = PlackettLuce().distribution(scores.expand(rows, -1))
    order = distribution.sample((), generator)
    return order[:, :places]


# The graph.


def test_a_cycle_of_wins_connects_the_items():
    assert compare(np.array([[0, 1], [1, 2], [2, 0]]), 3, "absent").connected
    assert not compare(np.array([[0, 1], [1, 2], [0, 2]]), 3, "absent").connected


def test_levels_follow_the_longest_chain_of_losses():
    # 0 and 1 beat each other; 2 lost to them, 3 to 2 and to 0; 4 beat all.
    found = compare(np.array([[0, 1], [1, 0], [1, 2], [2, 3], [0, 3], [4, 0]]), 5, "absent")
    assert found.level[found.group].tolist() == [0, 0, -1, -2, 1]
    assert found.linked.all()


def test_groups_that_never_met_are_apart():
    found = compare(np.array([[0, 1, 2], [2, 1, 0], [3, 4, -1], [4, 3, -1]]), 6, "absent")
    assert [items.tolist() for items in found.apart()] == [[3, 4]]
    assert found.compared.tolist() == [True] * 5 + [False]


def test_an_item_that_is_left_out_lost_or_was_not_there():
    order = np.array([[0, 1], [1, 0]])
    found = compare(order, 3, "last")
    assert found.level[found.group].tolist() == [0, 0, -1]
    assert not compare(order, 3, "absent").compared[2]


def test_two_losers_that_never_met_stand_on_one_level():
    found = compare(np.array([[0, 1, 2], [1, 0, 3]]), 4, "absent")
    assert found.level[found.group].tolist() == [0, 0, -1, -1]


# The maximum.


def test_two_items_have_the_log_odds_of_their_wins():
    order = torch.tensor([[0, 1], [1, 0]])
    fit = fit_scores(order, torch.tensor([5.0, 2.0]), 2)
    assert_close(fit.scores[0] - fit.scores[1], torch.tensor(2.5).log())


def test_first_choices_alone_are_class_frequencies():
    order = torch.tensor([0, 0, 0, 1, 2, 2, 3]).unsqueeze(1)
    fit = fit_scores(order, torch.ones(7), 4, unranked="last")
    assert_close(fit.scores.softmax(0), torch.tensor([3.0, 1, 2, 1]) / 7)


@pytest.mark.parametrize("unranked, places", [("last", 5), ("last", 2), ("absent", 5)])
def test_the_maximum_is_that_of_a_general_optimiser(unranked, places):
    order = draws(torch.linspace(-1, 1, 5), 60, places)
    if unranked == "absent":  # each ranking of three of the five
        order = order[:, :3]
    weight = torch.randint(1, 4, (60,)).double()
    fit = fit_scores(order, weight, 5, unranked=unranked)

    def loss(s):
        return -log_likelihood(torch.as_tensor(s), order, unranked, weight)

    found = optimize.minimize(loss, np.zeros(5), method="BFGS", options={"gtol": 1e-7})
    assert_close(fit.scores, torch.as_tensor(found.x - found.x.mean()), atol=1e-5, rtol=0)
    assert fit.gradient < 1e-9
    assert fit.notes == []
    assert fit.scores.sum().abs() < 1e-12


@pytest.mark.parametrize("spread", [1.0, 6.0, 15.0])
def test_converges_for_scores_far_apart(spread):
    scores = torch.linspace(-spread, spread, 8)
    order = torch.cat([draws(scores, 300), torch.arange(8).unsqueeze(0)])  # one upset connects all
    fit = fit_scores(order, torch.ones(301), 8)
    assert fit.gradient < 1e-9


def test_weights_are_repetitions_and_the_order_of_rows_is_nothing():
    order, weight = draws(torch.zeros(4), 30), torch.randint(0, 4, (30,))
    fit = fit_scores(order[weight > 0], weight[weight > 0].double(), 4)
    again = order.repeat_interleave(weight, 0).flip(0)
    assert_close(fit.scores, fit_scores(again, torch.ones(len(again)), 4).scores)


# No maximum.


def test_an_item_that_always_lost_leaves_the_others_as_if_it_were_not_there():
    order = torch.cat([draws(torch.linspace(-1, 1, 4), 30), torch.full((30, 1), 4)], 1)
    whole = fit_scores(order, torch.ones(30), 5)
    without = fit_scores(order[:, :4], torch.ones(30), 4)
    kept = whole.scores[:4] - whole.scores[:4].mean()
    assert_close(kept, without.scores)
    supremum = log_likelihood(without.scores, order[:, :4], "last")
    assert log_likelihood(whole.scores, order, "last") == pytest.approx(supremum, abs=1e-9)
    assert whole.scores[:4].min() - whole.scores[4] > 29.9
    assert whole.notes[0].startswith("item 4 lost every comparison with the other items")


def test_winners_go_up_and_levels_stand_apart():
    order = torch.tensor([[4, 0, 1, 2, 3], [4, 1, 0, 2, 3]])
    fit = fit_scores(order, torch.ones(2), 5, names=list("abcde"))
    s = fit.scores
    assert s[4] - s[:2].max() >= 29.9
    assert s[1] - s[2] >= 29.9 and s[2] - s[3] >= 29.9
    assert log_likelihood(s, order, "last") == pytest.approx(2 * np.log(0.5), abs=1e-9)
    assert [note.split(":")[0] for note in fit.notes] == [
        "c lost every comparison with the items nearer to the rest",
        "d lost every comparison with the items nearer to the rest",
        "e won every comparison with the other items",
    ]


def test_a_single_ranking_is_certain():
    fit = fit_scores(torch.tensor([[2, 0, 1]]), torch.ones(1), 3)
    assert fit.scores.argsort(descending=True).tolist() == [2, 0, 1]
    assert log_likelihood(fit.scores, torch.tensor([[2, 0, 1]]), "last") > -1e-9


def test_a_losing_group_has_its_own_maximum():
    order = torch.tensor([[0, 1, 2, 3], [1, 0, 2, 3], [1, 0, 3, 2], [0, 1, 2, 3]])
    fit = fit_scores(order, torch.ones(4), 4)
    assert_close(fit.scores[2] - fit.scores[3], torch.tensor(3.0).log())
    assert_close(fit.scores[0], fit.scores[1])


APART = torch.tensor([[0, 1, 2], [1, 2, 0], [2, 0, 1], [3, 4, -1], [4, 3, -1]])


def test_groups_that_never_met_ask_for_a_prior():
    with pytest.raises(DataError, match=r"how d and e compare with a, b and c: .*Pass prior=1"):
        fit_scores(APART, torch.ones(5), 5, unranked="absent", names=list("abcde"))
    fit = fit_scores(APART, torch.ones(5), 5, unranked="absent", prior=1.0)
    assert_close(fit.scores, torch.zeros(5), atol=1e-9, rtol=0)  # each group is even


def test_an_item_without_a_comparison_gets_the_mean():
    order = torch.tensor([[0, 1], [1, 0], [0, 1]])
    fit = fit_scores(order, torch.ones(3), 3, unranked="absent")
    assert fit.scores[2] == 0
    assert_close(fit.scores[0] - fit.scores[1], torch.tensor(2.0).log())
    assert "item 2 has no comparison" in fit.notes[0]


def test_the_prior_is_so_many_comparisons_with_a_mean_item():
    """One item won 3 of 3: with p = sigmoid(2 s) for the pair and sigmoid(s) for the ghost."""
    fit = fit_scores(torch.tensor([[0, 1]]), torch.tensor([3.0]), 2, prior=2.0)
    half = fit.scores[0]
    assert_close(fit.scores, torch.stack([half, -half]))
    # d/ds of 3 log sigmoid(2 s) + 2 [log sigmoid(s) + log sigmoid(-s)], both items' comparisons
    slope = 6 * torch.sigmoid(-2 * half) + 2 * (torch.sigmoid(-half) - torch.sigmoid(half))
    assert_close(slope, torch.zeros(()), atol=1e-9, rtol=0)


def test_a_vanishing_prior_is_no_prior():
    order = draws(torch.linspace(-1, 1, 4), 40)
    exact = fit_scores(order, torch.ones(40), 4).scores
    assert_close(fit_scores(order, torch.ones(40), 4, prior=1e-7).scores, exact, atol=1e-6, rtol=0)


# Published rankings.


def nascar():
    order = torch.from_numpy(pd.read_csv(RANKINGS / "nascar2002_orderings.csv").to_numpy() - 1)
    return order, pd.read_csv(RANKINGS / "nascar2002_drivers.csv")["name"].tolist()


@needs_data
def test_nascar_2002_as_hunter_published_it():
    order, names = nascar()
    fit = fit_scores(order, torch.ones(36), 87, unranked="absent", names=names)
    assert fit.gradient < 1e-9
    assert log_likelihood(fit.scores, order, "absent") == pytest.approx(-4191.097, abs=5e-4)
    worth = dict(zip(names, fit.scores.softmax(0).tolist(), strict=True))
    for name, value in (("PJ Jones", 0.1864), ("Scott Pruett", 0.1096), ("Mark Martin", 0.0235)):
        assert worth[name] == pytest.approx(value, abs=5e-5)
    (note,) = fit.notes
    assert note.startswith("Andy Hillenburg, Gary Bradberry, Jason Hedlesky and Randy Renfrow lost")


@needs_data
def test_nascar_without_the_four_who_only_came_last_has_the_same_maximum():
    order, _ = nascar()
    whole = fit_scores(order, torch.ones(36), 87, unranked="absent")
    losers = whole.scores < whole.scores.median() - 20
    assert losers.sum() == 4
    code = torch.cat([torch.where(losers, -1, (~losers).cumsum(0) - 1), torch.tensor([-1])])
    kept = code[order]
    assert all((row[row.ge(0).sum() :] == -1).all() for row in kept)  # they came last
    fit = fit_scores(kept, torch.ones(36), 83, unranked="absent")
    assert fit.notes == []
    limit = log_likelihood(whole.scores, order, "absent")
    assert log_likelihood(fit.scores, kept, "absent") == pytest.approx(limit, abs=1e-9)
    ours = whole.scores[~losers]
    assert_close(ours - ours.mean(), fit.scores, atol=1e-7, rtol=0)


@needs_data
def test_the_apa_elections_first_places():
    order = torch.from_numpy(pd.read_csv(RANKINGS / "apa_election.csv").to_numpy() - 1)
    fit = fit_scores(order[:, :1], torch.ones(len(order)), 5, unranked="last")
    shares = torch.tensor([0.184, 0.135, 0.280, 0.204, 0.197])
    assert_close(fit.scores.softmax(0), shares, atol=5e-4, rtol=0)
    assert fit_scores(order, torch.ones(len(order)), 5).gradient < 1e-9 * len(order)
