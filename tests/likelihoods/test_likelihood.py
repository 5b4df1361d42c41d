import pytest
import torch
from torch.testing import assert_close

from ansatz.likelihoods import Likelihood
from ansatz.likelihoods.likelihood import weighted_mean, weighted_median, weighted_sd


def test_weighted_statistics_are_those_of_repeated_rows():
    y, weight = torch.randn(30, 2), torch.randint(0, 4, (30,)).double()
    again = y.repeat_interleave(weight.long(), 0)
    assert_close(weighted_mean(y, weight), again.mean(0))
    assert_close(weighted_sd(y, weight), again.std(0, correction=0))
    assert_close(weighted_median(y, weight), again.quantile(0.5, dim=0))


@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_the_weighted_median_has_half_on_either_side(n):
    y = torch.randn(n)
    assert_close(weighted_median(y, torch.ones(n)), y.quantile(0.5))


def test_a_contract_that_is_not_filled_in_says_so():
    empty = Likelihood()
    empty.name = "empty"
    for call in (
        lambda: empty.outputs(None),
        lambda: empty.start(torch.zeros(1), torch.ones(1)),
        lambda: empty.loss(torch.zeros(1, 1), torch.zeros(1)),
        lambda: empty.distribution(torch.zeros(1, 1)),
        lambda: empty.variance_function(torch.zeros(1)),
    ):
        with pytest.raises(TypeError):
            call()
