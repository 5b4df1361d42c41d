"""Promises where laws meet: wrappers, precisions, weights and wild numbers together."""

import math

import pytest
import torch
from torch.testing import assert_close

from ansatz.likelihoods import Truncated, create


@pytest.mark.parametrize(
    "law, lower, upper, y, raw",
    [
        ("gamma", None, 1e9, 2.0, [0.0, 0.0]),
        ("log_normal", None, 1e9, 2.0, [0.0, 0.0]),
        ("normal", None, 1e6, 2.0, [0.0, 20.0]),
        ("normal", -1e6, 1e6, 2.0, [0.0, -50.0]),
        ("student_t", -1e6, None, 2.0, [50.0, -50.0]),
        ("tweedie", 0.0, None, 2.0, [50.0, 0.0]),
        ("negative_binomial", None, 1e6, 2.0, [50.0, -50.0]),
        ("poisson", 0.0, None, 2.0, [50.0]),
        ("poisson", 0.0, 1.0, 1.0, [50.0]),
        ("hurdle_poisson", 0.0, None, 2.0, [50.0, 0.0]),
        ("zero_one_inflated_beta", 0.0, None, 0.3, [0.0, 50.0, 0.0, 0.0]),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_truncated_law_has_finite_gradients_for_far_bounds_and_wild_raw_numbers(
    law, lower, upper, y, raw, dtype
):
    law = Truncated(law, lower=lower, upper=upper).to(dtype)
    raw = torch.tensor([raw], dtype=dtype, requires_grad=True)
    loss = law.loss(raw, torch.tensor([y], dtype=dtype))
    (gradient,) = torch.autograd.grad(loss.sum(), raw)
    assert loss.isfinite().all() and loss.dtype == dtype
    assert gradient.isfinite().all()


def test_a_one_sided_interval_in_float32_has_the_gradient_of_its_tail():
    raw = torch.zeros(1, 2, dtype=torch.float32, requires_grad=True)
    end, none = torch.tensor([1e9], dtype=torch.float32), torch.tensor([math.inf])
    law = create("log_normal").float().distribution(raw)
    for interval, tail in (
        (law.log_interval(-none.float(), end), law.log_cdf(end)),
        (law.log_interval(end, none.float()), law.log_survival(end)),
    ):
        found, exact = (
            torch.autograd.grad(value.sum(), raw, retain_graph=True)[0]
            for value in (interval, tail)
        )
        assert_close(found, exact)
