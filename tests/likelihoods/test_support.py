import pytest
import torch

from ansatz.errors import DataError
from ansatz.likelihoods import create, laws_that_fit
from ansatz.likelihoods.support import refuse_outside


@pytest.mark.parametrize(
    "values, narrowest",
    [
        ([0.0, 1.0], "bernoulli"),
        ([0.0, 7.0], "categorical"),
        ([0.5, 7.0], "gamma"),
        ([-1.0], "normal"),
    ],
)
def test_the_laws_that_fit_accept_the_values_and_the_others_refuse_them(values, narrowest):
    y = torch.tensor(values)
    laws = laws_that_fit(y)
    assert laws[0] == narrowest
    for name in ("bernoulli", "categorical", "poisson", "gamma", "normal", "laplace", "student_t"):
        if name in laws:
            create(name).check(y)
        else:
            with pytest.raises(DataError):
                create(name).check(y)


def test_no_law_fits_what_is_not_finite():
    y = torch.tensor([1.0, torch.nan])
    assert laws_that_fit(y) == []
    with pytest.raises(DataError, match=r"got nan at y\[1\]\. No law produces it: drop the row"):
        refuse_outside(y.isnan(), y, "Numbers must be finite")
