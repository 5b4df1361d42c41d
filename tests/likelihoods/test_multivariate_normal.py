import copy

import pytest
import torch
from scipy import stats
from torch.testing import assert_close

from ansatz.errors import DataError
from ansatz.likelihoods import MultivariateNormal, MultivariateNormalDistribution, Normal
from ansatz.likelihoods.distribution import VectorDistribution
from ansatz.spec import TargetSpec

K = 3
P = {"full": 9, "diagonal": 6, "constant": 3}


def make(kind):
    likelihood = MultivariateNormal(
        covariance="diagonal" if kind == "diagonal" else "full",
        dispersion="constant" if kind == "constant" else "predicted",
    )
    assert likelihood.outputs(TargetSpec(event=(K,))) == P[kind]
    if kind == "constant":
        y = sample(50)
        likelihood.observe(y, torch.ones(50))
        likelihood.start(y, torch.ones(50))
    return likelihood


def sample(n):
    """Dependent numbers of very different units."""
    return (torch.randn(n, K) @ torch.randn(K, K) + 2) * torch.tensor([1.0, 100.0, 1e-3])


every_kind = pytest.mark.parametrize("kind", P)


@every_kind
def test_loss_is_minus_scipys_log_density(kind):
    likelihood, raw = make(kind), torch.randn(6, P[kind])
    d = likelihood.distribution(raw)
    y = d.sample()
    unit = d.variance.sqrt().detach()  # scipy takes a matrix of mixed units for a singular one
    for i in range(6):
        correlation = d.covariance[i].detach() / unit[i] / unit[i][:, None]
        theirs = stats.multivariate_normal(d.mean[i].detach() / unit[i], correlation)
        exact = theirs.logpdf(y[i] / unit[i]) - unit[i].log().sum()
        assert likelihood.loss(raw, y)[i].item() == pytest.approx(-exact.item(), rel=1e-9, abs=1e-9)
        assert d.entropy[i].item() == pytest.approx(theirs.entropy() + unit[i].log().sum().item())


def test_the_diagonal_case_is_k_normal_likelihoods_in_training_too():
    y = sample(40)
    likelihood, normal = MultivariateNormal(covariance="diagonal"), Normal()
    starts = []
    for one in (likelihood, normal):
        one.observe(y, torch.ones(40))
        starts.append(one.start(y, torch.ones(40)))
    raw = starts[0][0] + torch.randn(40, 2 * K)
    pairs = torch.stack([raw[:, :K], raw[:, K:]], -1)  # (B, K, 2)
    assert_close(likelihood.loss(raw, y), normal.loss(pairs, y).sum(-1))
    assert_close(likelihood.training_loss(raw, y), normal.training_loss(pairs, y).sum(-1))
    assert_close(starts[0][0].reshape(2, K).T, starts[1][0])


def test_every_covariance_matrix_has_its_chain_of_regressions():
    root = torch.randn(5, 4, 4)
    covariance = root @ root.mT + 0.1 * torch.eye(4)
    d = MultivariateNormalDistribution.of(torch.zeros(5, 4), covariance)
    assert_close(d.covariance, covariance)
    assert_close(d.variance, covariance.diagonal(dim1=-2, dim2=-1))
    assert_close(d.scale_tril, torch.linalg.cholesky(covariance))


@every_kind
def test_start_is_the_empirical_mean_and_covariance(kind):
    y, weight = sample(60), torch.randint(0, 4, (60,)).double()
    y[weight == 0] = torch.nan
    likelihood = make(kind)
    likelihood.observe(y, weight)
    shift, scale = likelihood.start(y, weight)
    again = y[weight > 0].repeat_interleave(weight[weight > 0].long(), 0)
    covariance = torch.as_tensor(again.T.cov(correction=0))
    if kind == "diagonal":
        covariance = covariance.diag().diag()
    found = likelihood.distribution(shift)
    assert_close(found.mean, again.mean(0))
    assert_close(found.covariance, covariance)
    assert (scale > 0).all()
    leaf = shift.clone().requires_grad_()
    risk = likelihood.loss(leaf.expand(len(again), -1), again).mean()
    for gradient in torch.autograd.grad(risk, [leaf, *likelihood.parameters()]):
        assert (gradient * (scale if gradient.shape == scale.shape else 1)).abs().max() < 1e-9


def test_numbers_that_determine_each_other_and_single_rows_do_not_break_the_start():
    one = torch.randn(20, 1)
    for y in (torch.cat([one, 2 * one, one + 1], 1), torch.ones(4, 3), torch.randn(1, 3)):
        likelihood = MultivariateNormal()
        likelihood.observe(y, torch.ones(len(y)))
        shift, scale = likelihood.start(y, torch.ones(len(y)))
        leaf = shift.clone().requires_grad_()
        terms = likelihood.training_loss(leaf.expand(len(y), -1), y)
        (gradient,) = torch.autograd.grad(terms.sum(), leaf)
        assert terms.isfinite().all() and gradient.isfinite().all() and (scale > 0).all()


@every_kind
def test_score_has_mean_zero(kind):
    likelihood = make(kind)
    raw = torch.randn(1, P[kind]).repeat(20_000, 1).requires_grad_()
    y = likelihood.distribution(raw.detach()).sample((), torch.Generator().manual_seed(0))
    (score,) = torch.autograd.grad(likelihood.loss(raw, y).sum(), raw)
    assert (score.mean(0).abs() < 5 * score.std(0) / len(score) ** 0.5).all()


@every_kind
def test_gradient_of_the_loss(kind):
    likelihood, raw = make(kind), torch.randn(4, P[kind]).requires_grad_()
    y = likelihood.distribution(raw.detach()).sample()
    assert torch.autograd.gradcheck(lambda raw: likelihood.loss(raw, y), raw)
    assert torch.autograd.gradgradcheck(lambda raw: likelihood.loss(raw, y), raw)


@every_kind
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_extreme_raw_numbers_give_finite_losses_and_gradients(kind, dtype):
    likelihood = make(kind).to(dtype)
    sizes = torch.tensor([0.0, 50.0, -50.0, 1e4, -1e4])
    raw = torch.cat([sizes[:, None].expand(-1, P[kind]), torch.diag(torch.full((P[kind],), 1e4))])
    for value in (-1e4, 0.0, 1e4):
        leaf = raw.to(dtype).requires_grad_()
        for loss in (likelihood.loss, likelihood.training_loss):
            terms = loss(leaf, torch.full((len(raw), K), value, dtype=dtype))
            gradients = torch.autograd.grad(terms.sum(), [leaf, *likelihood.parameters()])
            assert terms.isfinite().all() and terms.dtype == dtype
            assert all(g.isfinite().all() for g in gradients)


def test_learned_shapes_may_differ_from_row_to_row():
    """The linear model replaces constants by one value per row."""
    likelihood, raw, y = make("constant"), torch.randn(4, K), sample(4)
    names = dict(likelihood.named_parameters())
    rows = {name: p.detach() + 0.1 * torch.randn(4, *p.shape) for name, p in names.items()}

    class Loss(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.likelihood = likelihood

        def forward(self, raw, y):
            return self.likelihood.loss(raw, y)

    state = {f"likelihood.{name}": value for name, value in rows.items()}
    together = torch.func.functional_call(Loss(), state, (raw, y))
    for i in range(4):
        state = {f"likelihood.{name}": value[i] for name, value in rows.items()}
        alone = torch.func.functional_call(Loss(), state, (raw[i : i + 1], y[i : i + 1]))
        assert_close(together[i], alone[0])


@every_kind
def test_state_dict_round_trip(kind):
    y, likelihood = sample(30), make(kind)
    likelihood.observe(y, torch.ones(30))
    shift, _ = likelihood.start(y, torch.ones(30))
    fresh = MultivariateNormal(**likelihood.options).double()
    fresh.load_state_dict(likelihood.state_dict())
    raw = shift.expand(30, -1)
    assert torch.equal(fresh.loss(raw, y), likelihood.loss(raw, y))
    assert torch.equal(copy.deepcopy(likelihood).loss(raw, y), likelihood.loss(raw, y))


def test_marginals_and_intervals_are_those_of_single_numbers():
    likelihood, raw = make("full"), torch.randn(5, 9)
    d = likelihood.distribution(raw)
    y = d.sample((40_000,), torch.Generator().manual_seed(0))
    assert_close(y.mean(0), d.mean, atol=5 * float(d.variance.max() / 40_000) ** 0.5, rtol=0)
    lower, upper = d.interval(0.9)
    inside = ((y >= lower) & (y <= upper)).double().mean(0)
    assert_close(inside, torch.full((5, K), 0.9), atol=0.01, rtol=0)
    with pytest.raises(TypeError, match="distribution of vectors"):
        d.cdf(y[0])


def test_the_energy_score_is_the_expected_one():
    """For K = 1 it is the CRPS; and it does not depend on the size of the blocks."""
    d = MultivariateNormalDistribution(torch.zeros(4, 1), torch.ones(4, 1), torch.zeros(4, 1, 1))
    y = torch.tensor([[0.0], [1.0], [-2.0], [5.0]])
    score = d.energy_score(y, 20_000, torch.Generator().manual_seed(0))
    # sd of |Y - y| and of |Y - Y'| / 2 are below 1
    assert_close(score, d.marginal.crps(y).squeeze(-1), atol=5 * 1.5 / 20_000**0.5, rtol=0)
    assert torch.equal(d.energy_score(y), d.energy_score(y))
    with pytest.raises(ValueError, match="at least 2 draws"):
        d.energy_score(y, 1)


def test_a_wrong_shape_is_named():
    likelihood = make("full")
    with pytest.raises(ValueError, match=r"raw \(4, 9\) goes with y \(4, 3\), got y \(4, 2\)"):
        likelihood.loss(torch.zeros(4, 9), torch.zeros(4, 2))
    with pytest.raises(ValueError, match="8 raw numbers do not describe vectors of 3"):
        likelihood.distribution(torch.zeros(4, 8))
    with pytest.raises(ValueError, match=r"event=\(K,\)"):
        likelihood.outputs(TargetSpec())
    with pytest.raises(DataError, match=r"finite numbers, got nan at y\[1, 0\]"):
        likelihood.check(torch.tensor([[1.0, 2.0], [torch.nan, 1.0]]))
    with pytest.raises(ValueError, match=r"shape \(B, K\), got \(3,\)"):
        likelihood.check(torch.ones(3))


def test_a_distribution_of_vectors_without_marginals_says_so():
    with pytest.raises(TypeError, match="defines no marginals"):
        _ = VectorDistribution().marginal
