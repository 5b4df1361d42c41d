import pytest
import torch
from torch.testing import assert_close

from ansatz.likelihoods import Likelihood, create
from ansatz.likelihoods.likelihood import (
    unit_and_floor,
    weighted_mean,
    weighted_median,
    weighted_sd,
)


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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_floor_knows_rounded_outcomes_from_few_ones(dtype):
    def resolution(values):
        y = torch.tensor(values, dtype=dtype)
        return float(unit_and_floor(y, torch.ones_like(y))[1]) * 12**0.5

    assert resolution([2.0, 4.1, 6.2, 7.9, 10.0, 12.1]) == pytest.approx(0.1, rel=1e-4)  # not 1.7
    assert resolution([0.25, 1.0, 1.25, 7.5, 9.75]) == pytest.approx(0.25, rel=1e-4)
    assert resolution([3.0, 4.0, 7.0, 8.0, 5.0]) == pytest.approx(1.0, rel=1e-4)
    assert resolution([21.6, 50.0, 34.7, 5.1, 5.2]) == pytest.approx(0.1, rel=1e-4)
    irrational = torch.linspace(0, 9, 12).sqrt().tolist()
    assert resolution(irrational) < 0.02  # a thousandth of the spread and no more


@pytest.mark.parametrize("name", ["categorical", "cross_entropy", "focal", "normal"])
def test_raw_numbers_along_axis_1_have_the_loss_of_torch(name):
    likelihood, raw = create(name), torch.randn(2, 3 if name != "normal" else 2, 4, 5)
    y = torch.randint(3, (2, 4, 5)) if name != "normal" else torch.randn(2, 4, 5)
    found = likelihood.loss(raw, y, axis=1)
    assert_close(found, likelihood.loss(raw.movedim(1, -1), y))
    if name in ("categorical", "cross_entropy"):
        assert_close(found, torch.nn.functional.cross_entropy(raw, y, reduction="none"))
