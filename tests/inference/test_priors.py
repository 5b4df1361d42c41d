import numpy as np
import pytest
import torch
from scipy import stats
from torch.testing import assert_close

from ansatz import Regressor
from ansatz.errors import UsageError
from ansatz.inference import Prior

LAWS = {
    "normal(1, 2)": stats.norm(1, 2),
    "student_t(4, 0.5, 2)": stats.t(4, 0.5, 2),
    "log_normal(0.1, 0.5)": stats.lognorm(0.5, scale=np.exp(0.1)),
    "half_normal(2)": stats.halfnorm(0, 2),
    "half_cauchy(2)": stats.halfcauchy(0, 2),
    "exponential(3)": stats.expon(scale=1 / 3),
    "gamma(2, 3)": stats.gamma(2, scale=1 / 3),
}
every_law = pytest.mark.parametrize("text, peer", LAWS.items(), ids=list(LAWS))


@every_law
def test_the_density_is_scipys_and_the_slope_its_derivative(text, peer):
    x = torch.tensor([0.3, 1.0, 2.5], requires_grad=True)
    prior = Prior.read(text)
    value, slope = prior.log_prob_and_slope(x)
    (wanted,) = torch.autograd.grad(value.sum(), x)
    assert_close(value.detach(), torch.as_tensor(peer.logpdf(x.detach().numpy())))
    assert_close(slope.detach(), wanted)


@every_law
def test_draws_follow_the_density(text, peer):
    draws = Prior.read(text).sample((2_000,), torch.Generator().manual_seed(0))
    assert stats.kstest(draws.numpy(), peer.cdf).pvalue > 0.001


def test_a_half_law_is_twice_the_whole_one_above_zero():
    x = torch.tensor([0.5, 2.0])
    half, whole = Prior.read("half_student_t(3, 0, 2.5)"), Prior.read("student_t(3, 0, 2.5)")
    assert_close(half.log_prob(x), whole.log_prob(x) + np.log(2))
    assert half.log_prob(-x).tolist() == [-np.inf] * 2


def test_what_it_prints_it_reads():
    for text in (*LAWS, "flat", "lkj(2)", "horseshoe(0.5)"):
        assert Prior.read(str(Prior.read(text))) == Prior.read(text)


@pytest.mark.parametrize(
    "text, words",
    [
        ("nrmal(0, 1)", "sigma: unknown distribution 'nrmal'. Did you mean 'normal'?"),
        ("normal(0, -1)", "scales of normal are positive"),
        ("normal(1, 2, 3)", "normal takes 0, 1"),
        ("normal(a)", "takes numbers"),
        ("normal 3", "expected a distribution like"),
        ("half_student_t(3, 1, 2)", "is 0"),
    ],
)
def test_a_wrong_law_is_named(text, words):
    with pytest.raises(UsageError, match="sigma") as error:
        Prior.read(text, "sigma")
    assert words in str(error.value)


def test_an_option_of_another_inference_is_refused():
    x, y = np.arange(20.0).reshape(-1, 1), np.arange(20.0)
    with pytest.raises(UsageError, match="'random' is not an option of inference point"):
        Regressor(inference="point", network="linear", random=["1|a"]).fit(x, y)
    with pytest.raises(UsageError, match="Did you mean 'chains'"):
        Regressor(inference="gp", inference_options={"chain": 2}).fit(x, y)
