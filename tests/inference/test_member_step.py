"""Members trained together are members trained alone."""

import copy

import pytest
import torch

from ansatz import likelihoods
from ansatz.data import Batch
from ansatz.data.batch import map_tensors
from ansatz.data.source import MemberSource
from ansatz.errors import NumericalError
from ansatz.inference.member_step import MemberStep
from ansatz.inference.members import MemberObjective, Members
from ansatz.networks import MLP
from ansatz.spec import TargetSpec
from ansatz.training import AnalyticStep, Supervised, Trainer

LIKELIHOODS = {
    "normal": {},
    "laplace": {"dispersion": "constant"},
    "poisson": {},
    "bernoulli": {},
    "gamma": {},
    "student_t": {"dispersion": "constant"},
    "mse": {},
}
CONSTANT = {"normal": {"dispersion": "constant"}}


def rows(name, members=3, count=24, targets=()):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(members, count, 4, dtype=torch.float64, generator=generator)
    y = torch.randn(members, count, *targets, dtype=torch.float64, generator=generator)
    if name in ("poisson", "bernoulli"):
        y = (y > 0).double()
    if name == "gamma":
        y = y.exp()
    weight = torch.rand(members, count, dtype=torch.float64, generator=generator) + 0.5
    return Batch.of(x, y)._replace(weight=weight, index=torch.arange(count).repeat(members, 1))


def both(name, options, batch, *, activation="silu", clip=5.0, targets=()):
    """A step of three members, and three steps of one."""
    likelihood = likelihoods.create(name, **options).double()
    outputs = likelihood.outputs(TargetSpec(shape=targets)) * (targets[0] if targets else 1)
    shift = scale = None
    if targets:
        shift = torch.zeros(targets[0], outputs // targets[0], dtype=torch.float64)
        scale = torch.ones_like(shift)
        likelihood.observe(batch.target[0], batch.weight[0])
    networks = [
        MLP(4, outputs, widths=(8, 6), activation=activation, generator=_seeded(k)).double()
        for k in range(3)
    ]
    objective = Supervised(likelihood, shift, scale)
    alone = [
        AnalyticStep(copy.deepcopy(n), copy.deepcopy(objective), learning_rate=0.01, clip=clip)
        for n in networks
    ]
    together = MemberStep(
        Members(networks), MemberObjective(objective, 3), learning_rate=0.01, clip=clip
    )
    return together, alone, networks


def _seeded(k):
    return torch.Generator().manual_seed(k)


@pytest.mark.parametrize("name, options", [*LIKELIHOODS.items(), *CONSTANT.items()])
@pytest.mark.parametrize("clip", [5.0, 0.05])
def test_the_path_of_each_member_is_its_path_alone(name, options, clip):
    batch = rows(name)
    together, alone, networks = both(name, options, batch, clip=clip)
    for _ in range(5):
        together.step(batch)
        for k, step in enumerate(alone):
            step.step(map_tensors(lambda t, k=k: t[k], batch))
    for k, step in enumerate(alone):
        mine = together.members.member(k, networks[k])
        for a, b in zip(mine.parameters(), step.network.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-10)
        for name_, value in together.losses.of_member(k).items():
            expected = dict(step.objective.likelihood.named_parameters())[name_]
            torch.testing.assert_close(value, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("activation", ["relu", "tanh", "gelu", "sigmoid", "elu", "softplus"])
def test_every_activation_has_its_own_derivative(activation):
    batch = rows("normal")
    together, alone, networks = both("normal", {}, batch, activation=activation)
    together.step(batch)
    for k, step in enumerate(alone):
        step.step(map_tensors(lambda t, k=k: t[k], batch))
        mine = together.members.member(k, networks[k])
        for a, b in zip(mine.parameters(), step.network.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-10)


def test_several_targets_count_as_their_mean():
    batch = rows("normal", targets=(2,))
    together, alone, networks = both("normal", {}, batch, targets=(2,))
    together.step(batch)
    for k, step in enumerate(alone):
        step.step(map_tensors(lambda t, k=k: t[k], batch))
        mine = together.members.member(k, networks[k])
        for a, b in zip(mine.parameters(), step.network.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-10)


def test_evaluation_is_the_members_own_mean_loss():
    batch = rows("gamma")
    together, alone, _ = both("gamma", {}, batch)
    stopping = together.stopping(3)
    loss = together.evaluate(batch)
    singles = [s.evaluate(map_tensors(lambda t, k=k: t[k], batch)) for k, s in enumerate(alone)]
    expected = torch.stack([s.total / s.count for s in singles])
    torch.testing.assert_close(stopping.latest, expected.double())
    torch.testing.assert_close(loss.total, sum(s.total for s in singles))


def test_dropout_leaves_the_first_members_alone():
    batch = rows("normal")
    plain, _, networks = both("normal", {}, batch)
    dropped = MemberStep(
        Members(networks),
        MemberObjective(Supervised(likelihoods.create("normal").double()), 3),
        learning_rate=0.01,
        clip=5.0,
        dropout=[0.0, 0.5, 0.5],
    )
    plain.step(batch)
    dropped.step(batch)
    for a, b in zip(plain.members.weights, dropped.members.weights, strict=True):
        assert torch.equal(a[0], b[0]) and not torch.equal(a[1], b[1])


def test_a_loss_that_is_not_finite_changes_nothing():
    batch = rows("normal")
    together, _, _ = both("normal", {}, batch)
    before = [p.clone() for p in together.members.parameters()]
    bad = batch.target.clone()
    bad[1, 3] = torch.nan
    with pytest.raises(NumericalError, match="member 2 of 3"):
        together.step(batch._replace(target=bad))
    after = list(together.members.parameters())
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


def source(seed=0):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(40, 4, generator=generator)
    members = [torch.arange(40)[torch.arange(40) % 4 != k] for k in range(3)]
    return MemberSource(Batch.of(x, x.sum(1)), members, batch_size=8, seed=seed)


def test_batches_are_each_members_own_rows_in_a_new_order_every_epoch():
    train = source()
    first = list(train.batches(0))
    assert len(first) == len(train) == 3
    for k in range(3):
        seen = torch.cat([batch.index[k] for batch in first])
        assert len(seen.unique()) == 24 and bool((seen % 4 != k).all())
    again = [batch.index for batch in train.batches(0, start=1)]
    assert all(torch.equal(a, b.index) for a, b in zip(again, first[1:], strict=True))
    other = next(train.batches(1)).index
    assert not torch.equal(other, first[0].index)


def test_all_rows_at_once_fill_up_with_weight_zero():
    whole = MemberSource(
        Batch.of(torch.ones(5, 1), torch.arange(5.0)), [torch.arange(3), torch.arange(5)], 0
    )
    (batch,) = whole.batches(0)
    assert batch.weight.tolist() == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]


def trained(steps, *, dropout=0.2, drops=False, average=None, patience=2, **options):
    """Parameters at the end, how many members still learned, and the number of steps."""
    networks = [MLP(4, 1, widths=(8,), generator=_seeded(k)) for k in range(3)]
    likelihood = likelihoods.create("normal", dispersion="constant")
    step = MemberStep(
        Members(networks),
        MemberObjective(Supervised(likelihood), 3),
        dropout=[0.0, dropout, dropout],
        learning_rate=0.05,
        drop_finished=drops,
    )
    held_out = MemberSource(source().rows, [torch.arange(k, 40, 4) for k in range(3)], 0)
    trainer = Trainer(
        steps=steps, evaluate_every=3, patience=patience, average=average, progress=0, **options
    )
    history = trainer.fit(step, source(), held_out)
    learning = len(step.optimizer.values[0])
    step.restore_best()
    found = [*step.members.parameters(), *step.losses.own]
    return [p.detach().clone() for p in found], learning, history.steps


@pytest.mark.parametrize("options", [{"average": "ema", "patience": 20}, {"drops": True}])
def test_a_run_cut_in_two_ends_at_the_same_bits(tmp_path, options):
    saving = {"checkpoint_every": 7, **options}
    whole = trained(40, checkpoint=tmp_path / "whole", **saving)
    trained(26, checkpoint=tmp_path / "cut", **saving)
    again = trained(40, checkpoint=tmp_path / "cut", resume=True, **saving)
    assert whole[1:] == again[1:] and (whole[1] < 3) == ("drops" in options)
    assert all(torch.equal(a, b) for a, b in zip(whole[0], again[0], strict=True))


def test_members_that_have_stopped_leave_without_a_trace():
    left, stayed = (trained(60, dropout=0.0, drops=drops) for drops in (True, False))
    assert left[1] < 3 == stayed[1] and left[2] == stayed[2]
    for one, other in zip(left[0], stayed[0], strict=True):
        torch.testing.assert_close(one, other)
