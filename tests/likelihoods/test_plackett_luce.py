import copy
import math
from itertools import permutations

import pytest
import torch
from scipy import stats
from torch.testing import assert_close

from ansatz.errors import DataError
from ansatz.likelihoods import PlackettLuce, RankingDistribution, create
from ansatz.spec import TargetSpec

BOTH = pytest.mark.parametrize("unranked", ["last", "absent"])


def product(scores, order, unranked):
    """The probability of an order, place by place."""
    worth = [math.exp(s) for s in scores.tolist()]
    ranked = [k for k in order if k >= 0]
    left = set(range(len(worth))) if unranked == "last" else set(ranked)
    p = 1.0
    for item in ranked:
        p *= worth[item] / sum(worth[k] for k in left)
        left.remove(item)
    return p


def partial_orders(rows, items):
    order = torch.rand(rows, items).argsort(1)
    return torch.where(torch.arange(items) < torch.randint(1, items + 1, (rows, 1)), order, -1)


def likelihood(K=5, **options):
    made = PlackettLuce(**options)
    made.outputs(TargetSpec(classes=K, event=(K,)))
    return made


@BOTH
def test_loss_is_the_product_over_places(unranked):
    raw, y = torch.randn(40, 5), partial_orders(40, 5)
    exact = [product(s, o, unranked) for s, o in zip(raw, y.tolist(), strict=True)]
    found = likelihood(unranked=unranked).loss(raw, y)
    assert_close(found, -torch.tensor(exact).log(), rtol=1e-12, atol=1e-12)
    log_prob = likelihood(unranked=unranked).distribution(raw).log_prob(y)
    assert_close(log_prob, torch.tensor(exact).log(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("K", [1, 2, 3, 6])
def test_probabilities_of_all_orders_add_up_to_one(K):
    orders = torch.tensor(list(permutations(range(K))))
    for scores in (torch.randn(K), 40 * torch.randn(K)):
        total = RankingDistribution(scores).log_prob(orders).logsumexp(0)
        assert_close(total, torch.zeros(()), atol=1e-12, rtol=0)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_top_k_ranking_sums_over_what_may_follow_it(k):
    scores, orders = torch.randn(5), torch.tensor(list(permutations(range(5))))
    first = torch.tensor([3, 0, 4])[:k]
    follows = (orders[:, :k] == first).all(1)
    found = RankingDistribution(scores)
    assert_close(found.log_prob(first), found.log_prob(orders[follows]).logsumexp(0))


def test_a_subset_ranking_sums_over_where_the_absent_could_be():
    """Luce's axiom: who else takes part does not change the odds between two."""
    scores, orders = torch.randn(5), torch.tensor(list(permutations(range(5))))
    part = [3, 0, 4]
    agrees = torch.tensor([[k for k in o if k in part] == part for o in orders.tolist()])
    total = RankingDistribution(scores).log_prob(orders[agrees]).logsumexp(0)
    assert_close(RankingDistribution(scores, "absent").log_prob(torch.tensor(part)), total)


@BOTH
def test_pads_change_nothing(unranked):
    raw, y = torch.randn(6, 4).requires_grad_(), torch.rand(6, 4).argsort(1)[:, :2]
    padded = torch.cat([y, torch.full((6, 5), -1)], 1)
    short, long = (
        likelihood(4, unranked=unranked).loss(raw, y),
        likelihood(4, unranked=unranked).loss(raw, padded),
    )
    assert_close(long, short, rtol=1e-14, atol=1e-14)
    gradients = [torch.autograd.grad(v.sum(), raw, retain_graph=True)[0] for v in (short, long)]
    assert_close(*gradients, rtol=1e-12, atol=1e-13)


def test_an_absent_item_gets_no_gradient():
    raw = torch.randn(1, 4).requires_grad_()
    y = torch.tensor([[2, 0, -1, -1]])
    (gradient,) = torch.autograd.grad(likelihood(4, unranked="absent").loss(raw, y).sum(), raw)
    assert_close(gradient[0, [1, 3]], torch.zeros(2), atol=1e-15, rtol=0)
    (gradient,) = torch.autograd.grad(likelihood(4).loss(raw, y).sum(), raw)
    assert (gradient[0, [1, 3]] > 0).all()


def test_codes_are_items_and_not_ranks():
    """Item 2 first, then 0, then 1: the best score belongs to item 2."""
    right, wrong = torch.tensor([[0.0, -3.0, 3.0]]), torch.tensor([[3.0, 0.0, -3.0]])
    y = torch.tensor([[2, 0, 1]])
    assert likelihood(3).loss(right, y) < 0.2 < 3 < likelihood(3).loss(wrong, y)


@pytest.mark.filterwarnings("ignore:.torch.jit.script")  # torch's own, at its first jvp
@BOTH
def test_gradients_are_exact_twice_in_both_modes(unranked):
    """Forward over reverse as well: torch.logcumsumexp gets that wrong for scores 50 apart."""
    raw, y = 3 * torch.randn(8, 4), partial_orders(8, 4)
    made = likelihood(4, unranked=unranked)
    leaf = raw.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda r: made.loss(r, y), leaf)
    assert torch.autograd.gradgradcheck(lambda r: made.loss(r, y), leaf)

    def naive(r):
        total = r.new_zeros(())
        for s, order in zip(r, y.tolist(), strict=True):
            ranked = [k for k in order if k >= 0]
            left = [k for k in range(4) if k not in ranked] if unranked == "last" else []
            for place, item in enumerate(ranked):
                total = total + s[ranked[place:] + left].logsumexp(0) - s[item]
        return total

    for scale in (1.0, 50.0):
        found = torch.func.hessian(lambda r: made.loss(r, y).sum())(scale * raw)
        assert_close(found, torch.func.hessian(naive)(scale * raw), rtol=1e-9, atol=1e-12)


@BOTH
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_extreme_scores_give_finite_losses_and_gradients(unranked, dtype):
    extremes = torch.tensor([0.0, 50.0, -50.0, 1e4, -1e4], dtype=dtype)
    raw = torch.cartesian_prod(extremes, extremes, extremes).requires_grad_()
    for y in ([0, 1, 2], [2, 0, -1], [1, -1, -1]):
        loss = likelihood(3, unranked=unranked).loss(raw, torch.tensor(y).expand(len(raw), 3))
        (gradient,) = torch.autograd.grad(loss.sum(), raw)
        assert loss.dtype == dtype
        assert loss.isfinite().all() and gradient.isfinite().all()
        assert (loss >= 0).all()
        assert (gradient.abs() <= 3).all()  # one share of each place


def test_a_thousand_items_do_not_overflow():
    raw = torch.linspace(-300, 300, 1000).expand(2, -1).requires_grad_()
    y = torch.stack([torch.arange(1000), torch.arange(999, -1, -1)])
    loss = likelihood(1000).loss(raw, y)
    exact = raw.detach()[0].logcumsumexp(0)  # the worst order: each place against all below
    assert_close(loss[1].detach(), (exact - raw.detach()[0]).sum(), rtol=1e-10, atol=1e-10)
    (gradient,) = torch.autograd.grad(loss.sum(), raw)
    assert gradient.isfinite().all()


def test_float32_agrees_with_float64():
    raw, y = torch.randn(64, 7).float().double(), partial_orders(64, 7)
    half = likelihood(7).float().loss(raw.float(), y)
    assert half.dtype == torch.float32
    assert_close(half.double(), likelihood(7).loss(raw, y), rtol=1e-5, atol=1e-5)


def test_runs_on_the_meta_device():
    raw = torch.randn(5, 4, device="meta", requires_grad=True)
    y = torch.empty(5, 3, device="meta", dtype=torch.long)
    made = likelihood(4, prior=1.0).to("meta")
    made.training_loss(raw, y).sum().backward()
    assert made.loss(raw, y).shape == (5,)
    assert made.point(raw).shape == (5, 4)


def test_score_has_mean_zero():
    raw = torch.randn(1, 4).repeat(50_000, 1).requires_grad_()
    y = likelihood(4).distribution(raw.detach()).sample((), torch.Generator().manual_seed(1))
    for order in (y, torch.cat([y[:, :2], torch.full((50_000, 2), -1)], 1)):
        (score,) = torch.autograd.grad(likelihood(4).loss(raw, order).sum(), raw)
        assert (score.mean(0).abs() < 5 * score.std(0) / len(score) ** 0.5).all()


# The distribution.


def test_samples_follow_the_probabilities_of_the_orders():
    scores = torch.tensor([1.0, 0.0, -0.5, 0.3])
    found = RankingDistribution(scores)
    orders = torch.tensor(list(permutations(range(4))))
    y = found.sample((20_000,), torch.Generator().manual_seed(2))
    key = torch.tensor([64, 16, 4, 1])
    observed = ((y @ key).unsqueeze(1) == orders @ key).sum(0)
    assert observed.sum() == 20_000
    expected = 20_000 * found.log_prob(orders).exp()
    assert stats.chisquare(observed.numpy(), expected.numpy()).pvalue > 1e-6


def test_sampling_takes_a_generator_and_a_shape():
    found = RankingDistribution(torch.randn(3, 6))
    a, b = (found.sample((5,), torch.Generator().manual_seed(7)) for _ in range(2))
    assert a.shape == (5, 3, 6) and a.dtype == torch.long
    assert torch.equal(a, b)
    assert torch.equal(a.sort(-1).values, torch.arange(6).expand_as(a))
    assert found.batch_shape == (3,)


def test_scores_that_float_cannot_exponentiate_are_sampled():
    y = RankingDistribution(torch.tensor([0.0, 900.0, -900.0])).sample((100,))
    assert (y == torch.tensor([1, 0, 2])).all()


def test_the_mode_is_the_most_probable_order():
    scores, orders = torch.randn(20, 5), torch.tensor(list(permutations(range(5))))
    for s, mode in zip(scores, RankingDistribution(scores).mode, strict=True):
        best = RankingDistribution(s).log_prob(orders).argmax()
        assert torch.equal(mode, orders[best])
    assert RankingDistribution(torch.zeros(3)).mode.tolist() == [0, 1, 2]


def test_ranks_places_and_pairs_are_sums_over_all_orders():
    scores = torch.tensor([0.5, -1.0, 2.0, 0.0, -3.0])
    found, orders = RankingDistribution(scores), torch.tensor(list(permutations(range(5))))
    p = found.log_prob(orders).exp()
    place = orders.argsort(1)  # (120, K)
    assert_close(found.ranks, p @ (1.0 + place))
    exact = torch.stack([p @ (place == r).double() for r in range(5)], 1)  # (K, places)
    assert_close(found.places(5), exact, rtol=1e-12, atol=1e-14)
    assert_close(found.places(1)[:, 0], found.probs, rtol=1e-12, atol=1e-14)
    assert_close(found.top(2), p @ (place < 2).double())
    assert_close(found.prefers(0, 3), p @ (place[:, 0] < place[:, 3]).double())


def test_places_of_rows_of_scores_far_apart():
    scores = 20 * torch.randn(3, 6)
    found = RankingDistribution(scores)
    for way in (-1, -2):  # each item is somewhere, each place is someone's
        assert_close(found.places(6).sum(way), torch.ones(3, 6), rtol=1e-11, atol=1e-11)
    assert_close((found.places(6) * torch.arange(1.0, 7.0)).sum(-1), found.ranks)
    with pytest.raises(ValueError, match="from 1 to the 6 items, got 7"):
        found.top(7)


def test_what_is_no_order_has_probability_zero():
    found = RankingDistribution(torch.randn(3))
    for order in ([0, 0, 1], [0, 1, 3], [0, -1, 1], [0.5, 1, 2], [-2, 0, 1]):
        assert found.log_prob(torch.tensor(order)) == -torch.inf


def test_an_order_is_no_number():
    found = RankingDistribution(torch.randn(3))
    for name in ("mean", "variance"):
        with pytest.raises(TypeError, match=f"defines no {name}"):
            getattr(found, name)
    with pytest.raises(TypeError, match="an order is not a number"):
        found.crps(torch.tensor([0, 1, 2]))


# The likelihood.


def test_scores_add_up_to_zero_and_a_constant_changes_nothing():
    raw, y = torch.randn(6, 4), partial_orders(6, 4)
    assert_close(likelihood(4).scores(raw).sum(-1), torch.zeros(6))
    assert_close(likelihood(4).loss(raw + 7.0, y), likelihood(4).loss(raw, y))
    assert_close(likelihood(4).probs(raw), raw.softmax(-1))


def test_a_reference_leaves_out_the_first_item():
    whole, short = likelihood(4), likelihood(4, reference=True)
    assert short.outputs(TargetSpec(classes=4)) == 3
    raw, y = torch.randn(6, 4), partial_orders(6, 4)
    less = (raw - raw[:, :1])[:, 1:]
    assert_close(short.loss(less, y), whole.loss(raw, y))
    assert_close(short.scores(less), whole.scores(raw))
    y = torch.rand(60, 4).argsort(1)
    (a, _), (b, _) = whole.start(y, torch.ones(60)), short.start(y, torch.ones(60))
    assert_close(whole.scores(a), short.scores(b))


@BOTH
@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize("prior", [0.0, 2.5])
def test_start_is_the_minimum_of_the_training_loss(unranked, reference, prior):
    made = likelihood(4, unranked=unranked, reference=reference, prior=prior)
    y, weight = partial_orders(80, 4), torch.randint(1, 4, (80,)).double()
    made.check(y)
    made.observe(y, weight)
    shift, scale = made.start(y, weight)
    assert shift.shape == scale.shape == (made.outputs(TargetSpec(classes=4)),)
    leaf = shift.clone().requires_grad_()
    risk = (weight * made.training_loss(leaf.expand(80, -1), y)).sum() / weight.sum()
    (gradient,) = torch.autograd.grad(risk, leaf)
    assert_close(gradient, torch.zeros_like(gradient), atol=1e-9, rtol=0)


def test_weights_are_repetitions():
    y, weight = partial_orders(40, 4), torch.randint(0, 4, (40,)).double()
    again = y.repeat_interleave(weight.long(), 0)
    for prior in (0.0, 1.0):
        a, b = likelihood(4, prior=prior), likelihood(4, prior=prior)
        a.observe(y, weight)
        b.observe(again, torch.ones(len(again)))
        assert_close(a.start(y, weight), b.start(again, torch.ones(len(again))))
        assert_close(dict(a.state_dict()), dict(b.state_dict()))


def test_an_unobserved_row_may_be_nan():
    y = partial_orders(30, 4).double()
    weight = torch.ones(30)
    weight[3] = 0
    expected = likelihood(4).start(y, weight)
    y[3] = torch.nan
    assert_close(likelihood(4).start(y, weight), expected)


def test_outcomes_may_be_whole_floats():
    raw, y = torch.randn(6, 4), partial_orders(6, 4)
    likelihood(4).check(y.double())
    assert_close(likelihood(4).loss(raw, y.double()), likelihood(4).loss(raw, y))


REFUSED = {
    "half an item": ([0.5, 1], r"whole numbers >= 0, got 0.5 at y\[1, 0\]"),
    "nan": ([math.nan, 1], r"whole numbers >= 0, got nan at y\[1, 0\]"),
    "below -1": ([0, -2], r"whole numbers >= 0, got -2.0 at y\[1, 1\]"),
    "unknown": ([0, 3], r"below the number of items, 3, got 3.0 at y\[1, 1\]"),
    "twice": ([2, 2], r"An item has one place, got 2.0 at y\[1, 1\]"),
    "a gap": ([-1, 2], r"No item may follow a pad of -1, got 2.0 at y\[1, 1\]"),
    "nothing": ([-1, -1], r"must name an item, got -1.0 at y\[1, 0\].*Drop the row"),
}


@pytest.mark.parametrize("row, message", REFUSED.values(), ids=REFUSED)
def test_check_names_the_row_and_the_value(row, message):
    with pytest.raises(DataError, match=message):
        likelihood(3).check(torch.tensor([[0.0, 1.0], row]))


def test_wrong_shapes_and_options_are_named():
    with pytest.raises(ValueError, match=r"rankings y of shape \(B, L\).*got \(2,\)"):
        likelihood(3).check(torch.tensor([0, 1]))
    with pytest.raises(ValueError, match=r"raw \(5, 3\) goes with y \(5, 2\), got y \(4, 2\)"):
        likelihood(3).loss(torch.zeros(5, 3), torch.zeros(4, 2).long())
    with pytest.raises(ValueError, match="unranked must be 'last' or 'absent', got 'first'"):
        PlackettLuce(unranked="first")
    for prior in (-1, math.inf, "one", True):
        with pytest.raises(ValueError, match="prior must be a number of comparisons >= 0"):
            PlackettLuce(prior=prior)
    with pytest.raises(ValueError, match="needs the number of items"):
        PlackettLuce().outputs(TargetSpec())


def test_notes_name_the_items_without_a_finite_score():
    made = likelihood(3)
    made.start(torch.tensor([[0, 1, 2], [1, 0, 2]]), torch.ones(2))
    assert made.notes[0].startswith("item 2 lost every comparison")
    made.item_names = ["tea", "milk", "rum"]
    made.start(torch.tensor([[0, 1, 2], [1, 0, 2]]), torch.ones(2))
    assert made.notes[0].startswith("rum lost every comparison")
    assert "prior=0.0" in repr(made)


def test_name_and_options_remake_it():
    made = create("plackett_luce", unranked="absent", prior=2.0)
    made.observe(torch.tensor([[0, 1]]), torch.tensor([3.0]))
    again = create(made.name, **made.options)
    again.load_state_dict(made.state_dict())
    again.outputs(TargetSpec(classes=3))
    raw, y = torch.randn(4, 3), partial_orders(4, 3)
    assert torch.equal(again.training_loss(raw, y), made.training_loss(raw, y))
    assert torch.equal(copy.deepcopy(made).loss(raw, y), made.loss(raw, y))
