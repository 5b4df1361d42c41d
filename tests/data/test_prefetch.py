"""Sources that transform and prefetch keep the contract of every source."""

import threading
import time

import pytest
import torch
from torch import nn

from ansatz.data import Batch, Prefetch, TensorSource, Transformed
from ansatz.data.augmentation import Affine, Noise, OnBatches
from ansatz.errors import UsageError


def rows(n=11):
    return Batch.of(torch.arange(n * 16.0).view(n, 1, 4, 4), torch.arange(float(n)))


def transformed(n=11, seed=5):
    return Transformed(TensorSource(rows(n), 4, seed=1), OnBatches(Noise(0.1)), seed=seed)


SOURCES = {
    "transformed": transformed,
    "prefetched": lambda: Prefetch(TensorSource(rows(), 4, seed=1)),
    "both": lambda: Prefetch(transformed(), depth=3),
    "the other way round": lambda: Transformed(
        Prefetch(TensorSource(rows(), 4, seed=1)), OnBatches(Noise(0.1)), seed=5
    ),
}
every_source = pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)


def contents(source, epoch, start=0):
    return [
        (batch.index.tolist(), batch.inputs[0].tolist()) for batch in source.batches(epoch, start)
    ]


def workers():
    return [each for each in threading.enumerate() if each.name == "ansatz-prefetch"]


@every_source
def test_batches_are_a_function_of_seed_epoch_and_position(make):
    source = make()
    whole = contents(source, 2)
    torch.randn(3)
    assert len(whole) == len(source) == 3
    assert contents(make(), 2) == whole != contents(source, 3)
    for start in range(4):
        assert contents(source, 2, start) == whole[start:]
    assert not workers()


def test_prefetching_changes_no_batch():
    assert contents(Prefetch(transformed()), 7) == contents(transformed(), 7)


def test_every_batch_and_every_seed_has_draws_of_its_own():
    def noise(seed, epoch):
        x = rows().inputs[0]
        return [
            (batch.inputs[0] - x[batch.index])[0].flatten()[0].item()
            for batch in transformed(seed=seed).batches(epoch)
        ]

    drawn = [*noise(0, 0), *noise(0, 1), *noise(1, 0)]
    assert len({round(each, 9) for each in drawn}) == 9


class Slow:
    """Counts how far it was asked ahead, and fails where it is told to."""

    def __init__(self, count, fails_at=None):
        self.count, self.fails_at, self.made = count, fails_at, 0

    def __len__(self):
        return self.count

    def batches(self, epoch, start=0):
        for position in range(start, self.count):
            if position == self.fails_at:
                raise OSError(f"image {position} cannot be read")
            self.made += 1
            yield Batch.of(torch.full((1, 1), float(position)), torch.zeros(1))


def settled(condition):
    end = time.monotonic() + 5
    while not condition() and time.monotonic() < end:
        time.sleep(0.001)
    return condition()


@pytest.mark.parametrize("depth", [1, 3])
def test_only_so_many_batches_are_ready_ahead(depth):
    source = Slow(20)
    batches = Prefetch(source, depth=depth).batches(0)
    next(batches)
    assert settled(lambda: source.made == 1 + depth)
    time.sleep(0.02)
    assert source.made == 1 + depth
    batches.close()


def test_an_error_comes_where_its_batch_would_have_come():
    batches = Prefetch(Slow(5, fails_at=2)).batches(0)
    assert [float(next(batches).inputs[0]) for _ in range(2)] == [0, 1]
    with pytest.raises(OSError, match="image 2 cannot be read"):
        next(batches)
    assert not workers()


def test_the_thread_ends_with_the_iterator():
    batches = Prefetch(Slow(100)).batches(0)
    next(batches)
    assert len(workers()) == 1
    batches.close()
    assert not workers()
    for _ in Prefetch(Slow(100)).batches(0):  # and when a loop is left
        break
    assert not workers()


def test_an_iterator_that_nobody_began_starts_no_thread():
    Prefetch(Slow(3)).batches(0)
    assert not workers()


def test_a_depth_of_nothing_is_refused():
    with pytest.raises(UsageError, match="depth of Prefetch must be a whole number from 1 on"):
        Prefetch(Slow(3), depth=0)


def test_a_fit_cut_in_the_middle_of_an_epoch_ends_with_the_same_weights(tmp_path):
    from ansatz.likelihoods import Normal
    from ansatz.training import GradientStep, Supervised, Trainer

    data = Batch.of(torch.rand(22, 1, 6, 6), torch.randn(22))
    augment = OnBatches(Affine(20, scale=0.1, shift=1))
    source = Prefetch(Transformed(TensorSource(data, 4, seed=1), augment, seed=2))

    def fit(steps, **options):
        torch.manual_seed(3)
        net = nn.Sequential(nn.Flatten(), nn.Linear(36, 1))
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9)
        step = GradientStep(net, Supervised(Normal(dispersion=1.0)), optimizer)
        Trainer(steps=steps, progress=0, device="cpu", threads=1, **options).fit(step, source)
        return net[1].weight.detach().clone()

    whole, folder = fit(14), tmp_path / "run"
    assert not torch.equal(fit(9, checkpoint=folder), whole)  # epochs have 6 batches
    assert torch.equal(fit(14, checkpoint=folder, resume=True), whole)
    assert not workers()
