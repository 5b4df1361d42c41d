import mpmath
import pytest
import torch
from scipy import special
from torch.testing import assert_close

from ansatz.likelihoods import beta_binomial as beta_binomial_tail
from ansatz.likelihoods.beta_binomial import BetaBinomialDistribution
from ansatz.likelihoods.special.beta import log_betainc, log_betaincc, log_sum_below
from ansatz.likelihoods.special.gamma import digamma_gap

# Shapes and arguments in every branch: series, either quadrature, exchanged sides, far tails.
POINTS = [
    (0.01, 0.3, 0.2),
    (1e-6, 3.0, 1e-8),
    (0.5, 1e-6, 0.9),
    (2.0, 3.0, 0.3),
    (2.0, 3.0, 0.999),
    (30.0, 50.0, 0.35),
    (30.0, 50.0, 0.6),
    (500.0, 2.0, 1e-3),
    (2.0, 800.0, 0.9),
    (4000.0, 1e-3, 0.9999),
    (3.0, 1e5, 4e-5),
    (0.2, 1e4, 1e-3),
]


def exact(a, b, x, upper):
    """log I or log(1 - I) from the hypergeometric series with positive terms, 1 - I by exchange."""
    if x > 0.5:
        return exact(b, a, 1 - x, not upper)
    terms = mpmath.hyp2f1(a + b, 1, a + 1, x)
    log_lower = a * mpmath.log(x) + b * mpmath.log1p(-x) - mpmath.log(a) + mpmath.log(terms)
    log_lower -= mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b)
    return mpmath.log1p(-mpmath.exp(log_lower)) if upper else log_lower


@pytest.mark.parametrize("upper", [False, True], ids=["I", "1 - I"])
@pytest.mark.parametrize("a, b, x", POINTS)
def test_value_and_the_three_derivatives_are_mpmaths(a, b, x, upper):
    A, B, X = (torch.tensor(v, requires_grad=True) for v in (a, b, x))
    value = (log_betaincc if upper else log_betainc)(A, B, X)
    slopes = torch.autograd.grad(value, (A, B, X))
    with mpmath.workdps(60):
        arguments = [mpmath.mpf(v) for v in (a, b, x)]
        h = mpmath.mpf(10) ** -15
        assert value.item() == pytest.approx(float(exact(*arguments, upper)), rel=1e-11)
        for i, slope in enumerate(slopes):
            near = [
                exact(*(v * (1 + s * h) if j == i else v for j, v in enumerate(arguments)), upper)
                for s in (1, -1)
            ]
            difference = (near[0] - near[1]) / (2 * h * arguments[i])
            assert slope.item() == pytest.approx(float(difference), rel=1e-9)


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("a, b, z", [(3e5, 5e7, -5.12), (1e8, 1e8, 1e-4), (7.0, 1e8, -16.0)])
def test_large_shapes_keep_their_digits(a, b, z, sign):
    """By quadrature of the density in the logit, with 40 digits."""
    a, b, z = (a, b, z) if sign < 0 else (b, a, -z)
    with mpmath.workdps(40):
        A, B, Z = (mpmath.mpf(v) for v in (a, b, z))
        side = 1 if (Z > mpmath.log(A / B)) else -1  # the tail away from the mode
        x, y = 1 / (1 + mpmath.exp(-Z)), 1 / (1 + mpmath.exp(Z))

        def relative(u):
            t = Z + side * u
            logs = A * mpmath.log1p(mpmath.exp(-Z)) + B * mpmath.log1p(mpmath.exp(Z))
            return mpmath.exp(
                logs - A * mpmath.log1p(mpmath.exp(-t)) - B * mpmath.log1p(mpmath.exp(t))
            )

        end = 30 / mpmath.sqrt((A + B) * x * y)
        mass = mpmath.quad(relative, mpmath.linspace(0, end, 9))
        tail = A * mpmath.log(x) + B * mpmath.log(y) + mpmath.log(mass)
        tail -= mpmath.loggamma(A) + mpmath.loggamma(B) - mpmath.loggamma(A + B)
    function = log_betaincc if side == 1 else log_betainc
    found = function(torch.tensor(a), torch.tensor(b), torch.tensor(z), logit=True)
    assert found.item() == pytest.approx(float(tail), rel=1e-10)


def test_gradients_follow_the_values_of_large_shapes():
    """Richardson's extrapolation of central differences, which rounding limits to 1e-6."""
    a, b = torch.tensor([3e5, 2e4, 50.0]), torch.tensor([5e5, 90.0, 4e6])
    z = a.log() - b.log() + torch.tensor([1.0, -2.0, 0.5]) * (1 / a + 1 / b).sqrt()
    for function in (log_betainc, log_betaincc):
        leaves = [v.clone().requires_grad_() for v in (a, b, z)]
        slopes = torch.autograd.grad(function(*leaves, logit=True).sum(), leaves)
        for i, slope in enumerate(slopes):

            def change(h, i=i, function=function):
                unit = (1, 1, (1 / a + 1 / b).sqrt())[i] * (1 if i == 2 else (a, b)[i].sqrt())
                up, down = (
                    [v + s * h * unit * (j == i) for j, v in enumerate((a, b, z))] for s in (1, -1)
                )
                return (function(*up, logit=True) - function(*down, logit=True)) / (2 * h * unit)

            assert_close(slope, (4 * change(1e-3) - change(2e-3)) / 3, rtol=1e-6, atol=0)


def test_a_logit_holds_what_an_argument_near_one_has_lost():
    a, b = torch.tensor(1e8), torch.tensor(2.0)
    z = torch.tensor(20.0)  # 1 - x = 2e-9
    found = log_betaincc(a, b, z, logit=True)
    assert_close(found, torch.as_tensor(special.betainc(2.0, 1e8, special.expit(-20.0))).log())


def test_the_grid_of_all_shapes_is_finite_in_both_precisions():
    shapes = torch.tensor([1e-6, 1e-3, 0.3, 1.0, 30.0, 1e3, 1e5, 1e8])
    logits = torch.tensor([-800.0, -100.0, -10.0, -1e-5, 0.0, 3.0, 50.0, 1000.0])
    grid = torch.cartesian_prod(shapes, shapes, logits)
    for dtype in (torch.float32, torch.float64):
        leaves = [v.to(dtype).clone().requires_grad_() for v in grid.unbind(1)]
        for function in (log_betainc, log_betaincc):
            value = function(*leaves, logit=True)
            assert value.dtype == dtype
            assert value.isfinite().all()
            assert (value <= 0).all()
            for slope in torch.autograd.grad(value.sum(), leaves):
                assert slope.isfinite().all()


def test_the_ends_of_the_support_are_exact_and_have_no_slope():
    a, b = (torch.full((2,), v, requires_grad=True) for v in (3.0, 0.5))
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    lower, upper = log_betainc(a, b, x), log_betaincc(a, b, x)
    assert_close(lower.detach(), torch.tensor([-torch.inf, 0.0]))
    assert_close(upper.detach(), torch.tensor([0.0, -torch.inf]))
    for value in (lower, upper):
        for slope in torch.autograd.grad(value.nan_to_num().sum(), (a, b, x)):
            assert_close(slope, torch.zeros(2))


def test_a_second_derivative_is_refused_and_not_zero():
    x = torch.tensor(0.3, requires_grad=True)
    value = log_betainc(torch.tensor(2.0), torch.tensor(2.0), x)
    with pytest.raises(RuntimeError, match="first derivatives only"):
        torch.autograd.grad(value, x, create_graph=True)


def test_far_and_near_evaluations_meet():
    """Where I falls below 1e-290 another formula takes over: no step shows there."""
    x = torch.linspace(0.15, 0.3, 400)
    value = log_betainc(torch.tensor(1000.0), torch.tensor(300.0), x)
    assert value[0] < -668 < value[-1]  # log 1e-290 = -668
    second = value.diff().diff()
    assert (second < 0).all()
    assert (second.diff().abs() < 3e-2 * second[1:].abs()).all()


@pytest.mark.parametrize("a, b", [(1e-3, 2.0), (5.0, 1e-5), (29.0, 1e-7), (1e4, 1e-3), (1e8, 1e9)])
def test_digamma_gap_is_mpmaths(a, b):
    with mpmath.workdps(40):
        gap = float(mpmath.digamma(mpmath.mpf(a) + mpmath.mpf(b)) - mpmath.digamma(mpmath.mpf(a)))
    assert digamma_gap(torch.tensor(a), torch.tensor(b)).item() == pytest.approx(gap, rel=1e-10)


@pytest.mark.parametrize("x", [0.2, 0.1758, 0.1668, 0.1583, 0.15])  # from 1e-250 to 1e-299
def test_tails_keep_their_digits_down_to_where_they_underflow(x):
    """SciPy's betainc(400, 20, 0.1583) is off by a twentieth."""
    with mpmath.workdps(40):
        exact = mpmath.log(mpmath.betainc(400, 20, 0, mpmath.mpf(x), regularized=True))
    a, b = torch.tensor(400.0), torch.tensor(20.0)
    assert log_betainc(a, b, torch.tensor(x)).item() == pytest.approx(float(exact), rel=1e-13)


def exact_tails(k, a, b, n):
    """Both tails as sums of probabilities, one count at a time."""
    with mpmath.workdps(40):
        a, b = mpmath.mpf(a), mpmath.mpf(b)
        mass = [
            mpmath.binomial(n, j) * mpmath.beta(j + a, n - j + b) / mpmath.beta(a, b)
            for j in range(n + 1)
        ]
        low, high = mpmath.fsum(mass[: k + 1]), mpmath.fsum(mass[k + 1 :])
        return float(mpmath.log(low)), float(mpmath.log(high))


@pytest.mark.parametrize("a, b", [(0.01, 5.0), (0.3, 0.2), (2.0, 3.0), (400.0, 100.0)])
@pytest.mark.parametrize("k", [0, 3, 20, 39])
def test_both_tails_are_the_sums(k, a, b):
    n, phi = 40, a + b
    distribution = BetaBinomialDistribution(
        torch.tensor([a / phi]).logit(), torch.tensor([1 / phi]), torch.tensor([float(n)])
    )
    at, (low, high) = torch.tensor([float(k)]), exact_tails(k, a, b, n)
    assert distribution.log_cdf(at).item() == pytest.approx(low, rel=1e-12)
    assert distribution.log_survival(at).item() == pytest.approx(high, rel=1e-12)


def test_twice_differentiable_in_both_shapes():
    y, n = torch.tensor([0.0, 1.0, 4.0, 7.0]), torch.full((4,), 8.0)
    a, b = (torch.rand(4, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(lambda a, b: log_sum_below(y, a, b, n), (a, b))
    assert torch.autograd.gradgradcheck(lambda a, b: log_sum_below(y, a, b, n), (a, b))


def test_rows_are_summed_in_any_blocks(monkeypatch):
    n = torch.randint(1, 60, (3, 50)).double()
    y = (n * torch.rand(3, 50)).floor()
    a, b = torch.rand(3, 50) + 0.1, torch.rand(3, 50) + 0.1
    whole = log_sum_below(y, a, b, n)
    monkeypatch.setattr(beta_binomial_tail, "_BLOCK", 64)
    assert_close(log_sum_below(y, a, b, n), whole, rtol=1e-14, atol=0)


def test_a_tail_that_underflows_has_a_logarithm():
    """With a huge precision the likelihood is binomial: log P(Y <= 0) = n log(1 - p)."""
    distribution = BetaBinomialDistribution(
        torch.zeros(1), torch.tensor([1e-12]), torch.tensor([1e4])
    )
    assert distribution.log_cdf(torch.zeros(1)).item() == pytest.approx(-6931.4718, rel=1e-6)
    assert distribution.log_survival(torch.tensor([9999.0])).item() == pytest.approx(
        -6931.4718, rel=1e-6
    )
