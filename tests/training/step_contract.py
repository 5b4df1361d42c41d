"""What every step must do; a test class per step inherits it and says how to make one."""

import copy

import pytest
import torch
from torch.testing import assert_close

from ansatz.data import Batch, TensorSource
from ansatz.errors import NumericalError
from ansatz.storage import encode_json, encode_tensors, pack_state, unpack_state
from ansatz.training import Callback, Trainer
from ansatz.training.run import restore, snapshot


def example_rows(count=23):
    """Rows that an MLP with 3 inputs and a likelihood with real outcomes can learn from."""
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(count, 3, generator=generator)
    return Batch.of(x, x[:, 0] - x[:, 1] * x[:, 2])


def cut(batch, rows):
    return Batch(
        tuple(x[rows] for x in batch.inputs),
        batch.target[rows],
        batch.weight[rows],
        None,
        batch.index[rows],
    )


def to_bytes(state):
    """All of a state, to the last bit."""
    packed, tensors = pack_state(state)
    return encode_json(packed) + encode_tensors(tensors)


def weights_equal(a, b):
    assert a.keys() == b.keys()
    for name in a:
        assert torch.equal(a[name], b[name]), name


class Killed(Exception):
    pass


class KillAfter(Callback):
    """Ends a run without giving it a chance to save."""

    def __init__(self, number):
        self.number = number

    def on_step(self, run, logs):
        if run.number == self.number:
            raise Killed


class StepContract:
    """Subclasses define ``make_step(dropout=0.0)``: inputs (B, 3), a real outcome per row."""

    def make_step(self, dropout=0.0):
        raise TypeError("a subclass says how to make its step")

    def test_the_logged_loss_is_the_mean_before_the_update(self):
        step, batch = self.make_step(), example_rows()
        with torch.no_grad():
            loss = step.objective(step.network, batch)
        assert step.step(batch)["loss"] == pytest.approx(float(loss.total / loss.count), rel=1e-12)

    def test_it_learns(self):
        step, batch = self.make_step(), example_rows()
        losses = [step.step(batch)["loss"] for _ in range(50)]
        assert losses[-1] < losses[0] - 0.01

    def test_evaluating_changes_nothing(self):
        step, batch = self.make_step(dropout=0.5), example_rows()
        step.step(batch)
        before, random = snapshot(step), torch.get_rng_state()
        state = to_bytes(step.state_dict())
        modes = [part.training for part in step.network.modules()]
        first, second = step.evaluate(batch), step.evaluate(batch)
        assert torch.equal(first.total, second.total) and not first.total.requires_grad
        weights_equal(before, snapshot(step))
        assert state == to_bytes(step.state_dict())
        assert torch.equal(random, torch.get_rng_state())
        assert modes == [part.training for part in step.network.modules()]

    def test_evaluation_adds_up_over_any_split_of_the_rows(self):
        step, batch = self.make_step(), example_rows()
        whole = step.evaluate(batch)
        parts = [step.evaluate(cut(batch, rows)) for rows in torch.arange(23).split(5)]
        assert_close(sum(part.total for part in parts), whole.total)
        assert_close(sum(part.count for part in parts), whole.count)

    def test_a_row_of_weight_zero_is_an_absent_row(self):
        batch = example_rows()
        target, weight = batch.target.clone(), batch.weight.clone()
        target[4], weight[4] = torch.nan, 0.0
        one, other = self.make_step(), self.make_step()
        restore(other, snapshot(one))
        keep = torch.arange(23) != 4
        for _ in range(3):
            a = one.step(batch._replace(target=target, weight=weight))["loss"]
            b = other.step(cut(batch, keep))["loss"]
            assert a == pytest.approx(b, rel=1e-10)
        assert_close(snapshot(one), snapshot(other), rtol=1e-8, atol=1e-10)

    def test_a_weight_is_a_repetition(self):
        batch = example_rows(6)
        weight = torch.tensor([1.0, 2.0, 1.0, 3.0, 1.0, 1.0])
        one, other = self.make_step(), self.make_step()
        restore(other, snapshot(one))
        repeated = torch.arange(6).repeat_interleave(weight.long())
        for _ in range(3):
            one.step(batch._replace(weight=weight))
            other.step(cut(batch, repeated))
        assert_close(snapshot(one), snapshot(other), rtol=1e-8, atol=1e-10)

    def test_its_state_is_all_that_it_remembers(self):
        batches = [cut(example_rows(), rows) for rows in torch.arange(23).split(5)]
        step = self.make_step(dropout=0.3)
        for batch in batches[:3]:
            step.step(batch)
        kept, random = snapshot(step), torch.get_rng_state()
        packed = copy.deepcopy(pack_state(step.state_dict()))
        for batch in batches[3:]:
            step.step(batch)

        other = self.make_step(dropout=0.3)
        restore(other, kept)
        other.load_state_dict(unpack_state(*packed))
        assert to_bytes(other.state_dict()) == to_bytes(unpack_state(*packed))
        torch.set_rng_state(random)
        for batch in batches[3:]:
            other.step(batch)
        weights_equal(snapshot(step), snapshot(other))

    def test_a_bad_row_is_named_and_the_update_is_not_applied(self):
        step, batch = self.make_step(), example_rows()
        step.step(batch)
        before, state = snapshot(step), to_bytes(step.state_dict())
        x = batch.inputs[0].clone()
        x[17, 2] = torch.nan
        with pytest.raises(
            NumericalError, match=r"step 2.*input column 2 is nan.*row 17"
        ) as caught:
            step.step(batch._replace(inputs=(x,)))
        assert "\n" not in str(caught.value)
        weights_equal(before, snapshot(step))
        assert state == to_bytes(step.state_dict())

    def test_a_killed_run_resumes_bit_for_bit(self, tmp_path):
        source = TensorSource(example_rows(), 5, seed=1)  # 5 batches: step 7 is mid-epoch

        def run(**options):
            step = self.make_step(dropout=0.3)
            settings = {"steps": 17, "evaluate_every": 4, "progress": 0, "device": "cpu"}
            trainer = Trainer(**settings, **options)
            trainer.fit(step, source, source)
            return step, trainer.history

        whole, history = run()
        folder = {"checkpoint": tmp_path / "run", "checkpoint_every": 7}
        with pytest.raises(Killed):
            run(**folder, callbacks=[KillAfter(9)])
        resumed, again = run(**folder, resume=True)
        weights_equal(snapshot(whole), snapshot(resumed))
        assert to_bytes(whole.state_dict()) == to_bytes(resumed.state_dict())
        for name in ("step", "valid_loss", "running_loss"):
            assert history.losses(name) == again.losses(name)
