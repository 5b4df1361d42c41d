import copy

import pytest
import torch
from tests.training.step_contract import KillAfter, Killed, weights_equal

from ansatz import optim
from ansatz.data import Batch, TensorSource
from ansatz.errors import UsageError
from ansatz.likelihoods import Categorical
from ansatz.networks import SmallResNet, discriminative_groups, layer_groups
from ansatz.training import Callback, GradientStep, Supervised, Trainer, Unfreezing

EPOCHS, PERIOD = 6, 3


def source():
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(12, 1, 4, 4, generator=generator)
    return TensorSource(Batch.of(x, (x.mean((1, 2, 3)) > 0).long()), batch_size=4)


def make():
    torch.manual_seed(0)
    network = SmallResNet(1, 2, depth=8, width=2)
    schedule = Unfreezing(network, epochs=(1, 3, 4))
    groups = discriminative_groups(network, 0.05)
    return network, schedule, GradientStep(
        network, Supervised(Categorical()), optim.create("adamw", groups, lr=0.05)
    )  # fmt: skip


class Watch(Callback):
    """Which groups moved in each epoch."""

    def __init__(self, network):
        self.network, self.moved = network, []

    def on_start(self, run):
        self.before = self.values()

    def on_step(self, run, logs):
        if run.number % run.period == 0:
            now = self.values()
            self.moved.append([a != b for a, b in zip(now, self.before, strict=True)])
            self.before = now

    def values(self):
        """Weights and running statistics of each group, to the last bit."""
        return [
            [t.tolist() for part in group for t in part.state_dict().values()]
            for group in layer_groups(self.network)
        ]


def test_groups_move_from_the_epoch_on_that_wakes_them():
    network, schedule, step = make()
    watch = Watch(network)  # hears of each step before the schedule does
    trainer = Trainer(epochs=EPOCHS, callbacks=[watch, schedule], progress=0, threads=1)
    trainer.fit(step, source())
    assert watch.moved == [
        [group >= schedule.frozen(epoch) for group in range(5)] for epoch in range(EPOCHS)
    ]
    assert [schedule.frozen(epoch) for epoch in range(EPOCHS)] == [4, 3, 3, 2, 1, 1]
    counters = [
        n for k, n in network.state_dict().items() if k.endswith("0.bn1.num_batches_tracked")
    ]
    assert [int(n) for n in counters] == [2 * PERIOD, 3 * PERIOD, 5 * PERIOD]  # of waking norms


@pytest.mark.parametrize("killed_after, average", [(3, "ema"), (3 * PERIOD + 2, None)])
def test_a_run_that_was_killed_goes_on_to_the_same_bits(tmp_path, killed_after, average):
    network, schedule, step = make()
    options = {"epochs": EPOCHS, "average": average, "progress": 0, "threads": 1}
    Trainer(callbacks=[schedule], **options).fit(step, source(), source())
    whole = copy.deepcopy(network.state_dict())
    options |= {"checkpoint": tmp_path / "run", "checkpoint_every": 2}
    _, schedule, step = make()
    with pytest.raises(Killed):
        Trainer(callbacks=[schedule, KillAfter(killed_after)], **options).fit(
            step, source(), source()
        )
    network, schedule, step = make()
    Trainer(callbacks=[schedule], resume=True, **options).fit(step, source(), source())
    weights_equal(network.state_dict(), whole)


def test_the_best_weights_come_back_whole_although_groups_woke_after_them():
    network, schedule, step = make()
    start = copy.deepcopy(network.state_dict())

    class Worse:
        """A validation loss that only rises: the first evaluation is the best."""

        def __init__(self, step):
            self.inner, self.calls = step, 0

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def evaluate(self, batch):
            self.calls += 1
            loss = self.inner.evaluate(batch)
            return loss._replace(total=loss.total * 0 + self.calls)

    trainer = Trainer(epochs=EPOCHS, callbacks=[schedule], progress=0, threads=1)
    history = trainer.fit(Worse(step), source(), source())
    assert history.best_step == PERIOD
    for key, value in network.state_dict().items():
        assert torch.equal(value, start[key]) != key.startswith("fc."), key


def test_wrong_epochs_are_refused():
    network = SmallResNet(1, 2, depth=8, width=2)
    with pytest.raises(UsageError, match=r"needs 1 to 4 epochs, .* got 5"):
        Unfreezing(network, epochs=(1, 2, 3, 4, 5))
    with pytest.raises(UsageError, match="whole numbers >= 0, got -1"):
        Unfreezing(network, epochs=(-1,))
