import math

import torch
from torch.testing import assert_close

from ansatz.likelihoods.special.logarithms import continued, safe_log


def test_the_gradient_is_finite_outside_and_a_missing_value_stays_missing():
    y = torch.tensor([-1.0, 0.0, 2.0, math.inf, math.nan]).requires_grad_()
    value = continued(safe_log(y), y, -math.inf, 0.0)
    expected = torch.tensor([-math.inf, -math.inf, math.log(2), 0.0, math.nan])
    assert_close(value.detach(), expected, equal_nan=True)
    (gradient,) = torch.autograd.grad(value[:4].sum(), y)
    assert_close(gradient[:4], torch.tensor([0.0, 0.0, 0.5, 0.0]))


def test_single_precision_stays_single():
    y = torch.ones(2, dtype=torch.float32)
    assert continued(safe_log(y), y, 0.0, 1.0).dtype == torch.float32
