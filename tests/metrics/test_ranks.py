"""Ranks are those of the naive count, ties averaged."""

import torch
from scipy.stats import rankdata
from torch.testing import assert_close

from ansatz.metrics import answer_ranks, rank_metrics


def test_ranks_are_scipys_average_ranks_of_what_is_left():
    scores = torch.randint(0, 4, (20, 9)).double()  # many ties
    answer = torch.randint(0, 9, (20,))
    known = torch.tensor([[0, 1], [0, 2], [7, 8]])
    expected = []
    for row, place in enumerate(answer.tolist()):
        out = {b for a, b in known.tolist() if a == row} - {place}
        left = [k for k in range(9) if k not in out]
        expected.append(rankdata([-scores[row, k] for k in left])[left.index(place)])
    assert_close(answer_ranks(scores, answer, known), torch.tensor(expected, dtype=torch.float64))


def test_a_model_that_scores_all_alike_has_the_middle_rank():
    assert answer_ranks(torch.zeros(1, 9), torch.tensor([3])).item() == 5.0


def test_weights_count_rows():
    found = rank_metrics(torch.tensor([1.0, 4.0]).double(), torch.tensor([3.0, 1.0]), at=(1,))
    assert found == {"mrr": 0.8125, "hits@1": 0.75}
