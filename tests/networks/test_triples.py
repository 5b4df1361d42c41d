"""Scores of triples are their formulas."""

import pytest
import torch
from torch.testing import assert_close

from ansatz import networks
from ansatz.errors import UsageError
from ansatz.networks.triples import RULED_OUT
from ansatz.spec import InputSpec

E, R, D = 5, 4, 6
SPEC = InputSpec("triples", cardinalities=(E, R))
CODES = torch.tensor([[0, 1], [3, 2], [4, 0]])


def made(name):
    return networks.create(name, SPEC, E, width=D).double().eval()


def complex_score(h, w, t):
    h, w, t = (torch.complex(each[: D // 2], each[D // 2 :]) for each in (h, w, t))
    return (h * w * t.conj()).sum().real


FORMULAS = {
    "dot": lambda h, w, t: (h + w) @ t,
    "distmult": lambda h, w, t: (h * w * t).sum(),
    "complex": complex_score,
    "transe": lambda h, w, t: -5.0 * (h + w - t).norm(),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_scores_are_the_formula(name):
    network = made(name)
    e, w = network.entities.weight.detach(), network.relations.weight.detach()
    expected = [[FORMULAS[name](e[h], w[r], e[t]) for t in range(E)] for h, r in CODES.tolist()]
    assert_close(network(CODES), torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("name", [*FORMULAS, "tail_frequencies"])
def test_a_row_alone_is_the_row_in_a_batch_and_gradients_are_right(name):
    network = made(name) if name in FORMULAS else networks.create(name, SPEC, E).double()
    assert_close(network(CODES)[1:2], network(CODES[1:2]), atol=1e-12, rtol=0)
    for weight in network.parameters():
        torch.nn.init.normal_(weight)

    def answer(weight):
        return torch.func.functional_call(network, {first: weight}, (CODES,))

    first, weight = next(iter(network.named_parameters()))
    assert torch.autograd.gradcheck(answer, weight.detach().requires_grad_())


def test_distmult_is_symmetric_and_complex_is_not():
    h, t, r = 0, 3, 1
    for name, symmetric in (("distmult", True), ("complex", False)):
        scores = made(name)(torch.tensor([[h, r], [t, r]]))
        assert (scores[0, t] - scores[1, h]).abs().lt(1e-12).item() is symmetric


def test_entities_are_ruled_out():
    without = torch.zeros(3, E, dtype=torch.bool)
    without[1, 2] = True
    assert made("complex")(CODES, without)[1, 2] == RULED_OUT


def test_wrong_sizes_are_refused():
    with pytest.raises(UsageError, match="as many outputs as entities"):
        networks.create("complex", SPEC, E + 1)
    with pytest.raises(UsageError, match="even number"):
        networks.create("complex", SPEC, E, width=5)
