import itertools

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz.data import Batch, TensorSource
from ansatz.errors import UsageError
from ansatz.metrics import neighbour_precision
from ansatz.training import GradientStep, PairMargin, Trainer, TripletMargin

x, y = torch.randn(9, 3, dtype=torch.float64), torch.tensor([0, 1, 2, 0, 1, 0, 1, 0, 3])
identity = nn.Identity()


def distance(a, b):
    return ((a - b) ** 2).sum() ** 0.5


def pairs(z, weight, margin):
    """The mean over pairs, transcribed."""
    total, mass = 0.0, 0.0
    for i, j in itertools.combinations(range(len(z)), 2):
        d = distance(z[i], z[j])
        term = d**2 / 2 if y[i] == y[j] else max(0, margin - d) ** 2 / 2
        total, mass = total + weight[i] * weight[j] * term, mass + weight[i] * weight[j]
    return total / mass


def triplets(z, weight, margin):
    total, mass = 0.0, 0.0
    for a, p, n in itertools.permutations(range(len(z)), 3):
        if y[a] == y[p] != y[n]:
            w = weight[a] * weight[p] * weight[n]
            term = max(0, distance(z[a], z[p]) - distance(z[a], z[n]) + margin)
            total, mass = total + w * term, mass + w
    return total / mass


def hardest(z, weight, margin):
    total, mass = 0.0, 0.0
    for a in range(len(z)):
        own = [distance(z[a], z[p]) for p in range(len(z)) if p != a and y[p] == y[a] and weight[p]]
        others = [distance(z[a], z[n]) for n in range(len(z)) if y[n] != y[a] and weight[n]]
        if own and others:
            total += weight[a] * max(0, max(own) - min(others) + margin)
            mass += weight[a]
    return total / mass


LOSSES = {
    "pairs": (PairMargin, pairs),
    "triplets": (TripletMargin, triplets),
    "hardest": (lambda *given, **how: TripletMargin(*given, mining="hardest", **how), hardest),
}
each = pytest.mark.parametrize(("make", "formula"), LOSSES.values(), ids=LOSSES)


@each
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("normalize", [False, True])
def test_is_the_formula(make, formula, weighted, normalize):
    weight = torch.tensor([1.0, 2, 0, 1, 0.5, 3, 1, 0, 1]) if weighted else torch.ones(9)
    batch = Batch.of(x, y)._replace(weight=weight)
    z = x / (x**2).sum(1, keepdim=True) ** 0.5 if normalize else x
    loss = make(0.7, normalize=normalize)(identity, batch)
    assert_close(loss.total / loss.count, formula(z, weight, 0.7))


@each
def test_gradients_exist_also_where_rows_are_equal(make, formula):
    z = torch.zeros(9, 3, requires_grad=True)
    loss = make(0.7, normalize=False)(identity, Batch.of(z, y))
    (loss.total / loss.count).backward()
    assert z.grad.isfinite().all()
    assert torch.autograd.gradcheck(
        lambda t: make(0.7)(identity, Batch.of(t, y)).total, x.clone().requires_grad_()
    )


def test_triplets_agree_with_torchs_loss():
    a, p, n = zip(
        *(i for i in itertools.permutations(range(9), 3) if y[i[0]] == y[i[1]] != y[i[2]]),
        strict=True,
    )
    expected = nn.TripletMarginLoss(margin=0.5, eps=0)(x[list(a)], x[list(p)], x[list(n)])
    loss = TripletMargin(0.5, normalize=False)(identity, Batch.of(x, y))
    assert_close(loss.total / loss.count, expected)


def test_a_batch_of_one_class_has_no_triplet():
    for mining in ("all", "hardest"):
        loss = TripletMargin(mining=mining)(identity, Batch.of(x, torch.zeros(9).long()))
        assert loss.total == 0 == loss.count


def test_training_brings_classes_together():
    draw = torch.Generator().manual_seed(0)
    codes = torch.arange(120) % 3
    rows = torch.randn(120, 24, generator=draw)
    rows[torch.arange(120), codes] += 3  # three of 24 columns tell the class
    network = nn.Linear(24, 2, bias=False)
    step = GradientStep(network, TripletMargin(0.3), torch.optim.Adam(network.parameters(), 0.02))
    source = TensorSource(Batch.of(rows[:90], codes[:90]), 30)
    before = nn.functional.normalize(network(rows[90:]).detach())
    Trainer(steps=60, progress=0).fit(step, source)
    after = nn.functional.normalize(network(rows[90:]).detach())
    found = [neighbour_precision(codes[90:], z, k=None) for z in (before, after)]
    assert found[1] > found[0] + 0.2


@pytest.mark.parametrize("mistake", [0.0, -1.0, float("nan")])
def test_a_margin_is_positive(mistake):
    with pytest.raises(UsageError, match="positive distance"):
        PairMargin(mistake)


def test_mistakes_are_named():
    with pytest.raises(UsageError, match="'all' or 'hardest', got 'easy'"):
        TripletMargin(mining="easy")
    with pytest.raises(UsageError, match=r"embeddings \(B, D\), got \(9,\)"):
        TripletMargin()(identity, Batch.of(x[:, 0], y))
    with pytest.raises(UsageError, match=r"class code per row, got \(9, 3\)"):
        PairMargin()(identity, Batch.of(x, x))
