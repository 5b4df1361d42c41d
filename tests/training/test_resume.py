import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings

import pytest
import torch
from tests.training.training_run import (
    SCRIPT,
    make_step,
    outcome,
    rows,
    train,
)

from ansatz.data import TensorSource
from ansatz.errors import (
    AnsatzError,
    BusyError,
    ModelError,
    NumericalError,
    ResourceError,
    UsageError,
)
from ansatz.storage import (
    Checkpoints,
    RunLock,
    pack_state,
    read_json,
    read_tensors,
    unpack_state,
    write_folder,
)
from ansatz.storage.folder import MANIFEST, decode_manifest
from ansatz.training import Callback, Interrupted, Trainer


def start(**options):
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), json.dumps(options, default=str)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def finished(process):
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return json.loads(out.splitlines()[-1])


def wait_for_step(process, number):
    for line in process.stdout:
        if int(line) >= number:
            return
    raise AssertionError(f"ended before step {number}: {process.stderr.read()}")


@pytest.fixture(scope="module")
def uninterrupted():
    torch.set_num_threads(1)
    return json.loads(json.dumps(train(traced=True)[2]))


@pytest.mark.slow  # the next test compares a fresh process from a checkpoint on
def test_a_fresh_process_gives_the_same_run_bit_for_bit(uninterrupted):
    assert finished(start(traced=True)) == uninterrupted


@pytest.mark.parametrize("accumulate", [pytest.param(1, marks=pytest.mark.slow), 4])
def test_restored_in_a_fresh_process_it_continues_exactly_as_the_run_did(accumulate, tmp_path):
    """Save mid-epoch, let the run go on, and compare a restored one with that continuation.

    Sources are pure and in this process: there are no loader workers whose state could be lost.
    """
    whole = train(tmp_path / "a", accumulate, traced=True, checkpoint_every=17, keep=9)[2]
    (tmp_path / "b").mkdir()
    shutil.copytree(tmp_path / "a" / "step-000000017", tmp_path / "b" / "step-000000017")
    resumed = finished(
        start(folder=tmp_path / "b", accumulate=accumulate, traced=True, checkpoint_every=17)
    )
    whole = json.loads(json.dumps(whole))
    assert resumed["trace"][0][0] == 17  # states, random numbers and rows from step 18 on
    assert resumed["trace"] == whole["trace"][17:]
    whole.pop("trace"), resumed.pop("trace")
    assert resumed == whole


def kill_and_resume(folder, kills, seed):
    """SIGKILL at random moments while every step writes a checkpoint, resumed until it ends.

    The end is trained here: the tests above resume in fresh processes.
    """
    chance = random.Random(seed)
    for _ in range(kills):
        process = start(folder=folder, pause=0.002)
        process.stdout.readline()  # it is underway
        time.sleep(chance.uniform(0, 0.08))
        process.kill()
        process.communicate()
        if (folder / "step-000000001").exists() or list(folder.glob("step-*")):
            assert Checkpoints(folder).latest() is not None
    return json.loads(json.dumps(train(folder)[2]))


def compare_killed(uninterrupted, resumed):
    assert {k: v for k, v in resumed.items() if k != "trace"} == {
        k: v for k, v in uninterrupted.items() if k != "trace"
    }


def test_killed_at_random_moments_it_ends_with_the_same_bits(uninterrupted, tmp_path):
    compare_killed(uninterrupted, kill_and_resume(tmp_path / "run", kills=1, seed=1))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(5))
def test_killed_fifty_times_it_ends_with_the_same_bits(uninterrupted, tmp_path, seed):
    compare_killed(uninterrupted, kill_and_resume(tmp_path / "run", kills=10, seed=seed))


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_a_signal_finishes_the_step_saves_and_exits_as_shells_expect(
    number, uninterrupted, tmp_path
):
    process = start(folder=tmp_path / "run", pause=0.01, checkpoint_every=1000)
    wait_for_step(process, 8)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "resume=True continues" in err and "Traceback" not in err
    _, manifest = Checkpoints(tmp_path / "run").latest()
    assert manifest.header["step"] >= 8 and manifest.header["finished"] is None
    resumed = json.loads(json.dumps(train(tmp_path / "run", checkpoint_every=1000)[2]))
    compare_killed(uninterrupted, resumed)


def test_a_second_interrupt_stops_at_once_and_leaves_a_whole_checkpoint(tmp_path):
    class Stuck(Callback):
        """A step that a single Ctrl-C waits for, for ever."""

        def on_step(self, run, logs):
            if run.number == 7:
                signal.raise_signal(signal.SIGINT)
                signal.raise_signal(signal.SIGINT)
                raise AssertionError("the second one did not stop it")

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(Interrupted):
        fit(tmp_path / "run", callbacks=[Stuck()], checkpoint_every=5)
    assert signal.getsignal(signal.SIGINT) is before
    assert Checkpoints(tmp_path / "run").latest()[1].header["step"] == 5


# --- within this process --------------------------------------------------------------------------

DEFAULT = {"epochs": 3, "evaluate_every": 5, "progress": 0, "device": "cpu"}


def fit(folder=None, batch_size=7, **options):
    step = make_step()
    if folder is not None:
        options = {"checkpoint": folder, **options}
    trainer = Trainer(**{**DEFAULT, **options})
    trainer.fit(step, TensorSource(rows(), batch_size, seed=3), TensorSource(rows(40, 1), 16))
    return step, trainer


class Crash(Callback):
    def __init__(self, number):
        self.number = number

    def on_step(self, run, logs):
        if run.number == self.number:
            raise RuntimeError("the machine went away")


@pytest.mark.parametrize("last_saved", [0, 1, 11, 12, 13, 24, 35, 36])
def test_resumed_anywhere_no_step_is_skipped_or_repeated(last_saved, tmp_path):
    """12 batches an epoch: before the start, around the end of an epoch, at the last step."""
    whole = outcome(*fit())
    with pytest.raises(RuntimeError, match="went away"):
        crash = Crash(last_saved + 1) if last_saved < 36 else CrashAtEnd()
        fit(tmp_path, checkpoint_every=max(last_saved, 1), callbacks=[crash])
    assert outcome(*fit(tmp_path, resume=True)) == whole


class CrashAtEnd(Callback):
    def on_evaluation(self, run, record):
        if run.number == 36:
            raise RuntimeError("the machine went away")


def test_a_finished_run_has_nothing_to_do_and_changes_nothing(tmp_path):
    step, trainer = fit(tmp_path)
    files = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")}
    again, second = fit(tmp_path, resume=True)
    assert second.nothing_to_do and not trainer.nothing_to_do
    assert second.history == trainer.history
    assert outcome(again, second) == outcome(step, trainer)
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")} == files


def test_a_finished_run_goes_on_when_its_budget_grows(tmp_path):
    fit(tmp_path, epochs=2)
    step, trainer = fit(tmp_path, epochs=3, resume=True)
    assert (trainer.history.steps, trainer.history.epochs) == (36, 3)
    # 24 is no multiple of 5: the end of the first budget was evaluated, the weights are the same.
    assert step.state_dict()["number"] == 36


def test_a_run_that_never_began_is_begun_by_resume(tmp_path):
    assert outcome(*fit(tmp_path, resume=True)) == outcome(*fit())


def test_checkpoints_of_another_run_are_not_overwritten(tmp_path):
    fit(tmp_path)
    with pytest.raises(UsageError, match=r"holds the checkpoints of a run.*resume=True"):
        fit(tmp_path)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"fingerprint": {"data": "b"}}, "'data' was 'a', is 'b'"),
        ({"fingerprint": {"data": "a"}, "seed": 1}, "'seed' was 0, is 1"),
        ({"fingerprint": {"data": "a"}, "batch_size": 5}, "'batches per epoch' was 12, is 17"),
        ({}, "'data' was 'a', is None"),
    ],
)
def test_changed_data_or_settings_are_refused_in_words(options, words, tmp_path):
    fit(tmp_path, fingerprint={"data": "a"})
    with pytest.raises(UsageError, match=f"another run: {words}.*or use force"):
        fit(tmp_path, resume=True, epochs=4, **options)


def test_force_resumes_changed_data_and_is_recorded(tmp_path):
    fit(tmp_path, fingerprint={"data": "a"})
    changed = {"fingerprint": {"data": "b"}, "resume": True, "force": True, "epochs": 4}
    with pytest.warns(UserWarning, match="resumed by force although 'data' was 'a'"):
        _, trainer = fit(tmp_path, **changed)
    assert any("by force" in note for note in trainer.history.notes)
    assert trainer.history.epochs == 4


def test_other_threads_and_another_torch_are_warned_about_in_words(tmp_path, monkeypatch):
    fit(tmp_path, threads=1, epochs=1)
    monkeypatch.setattr(torch, "__version__", "9.9.9")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(tmp_path, resume=True, threads=2)
    words = " ".join(str(w.message) for w in caught)
    assert "threads 1 and goes on with 2" in words and "torch 2." in words
    assert "will not be bit for bit" in words


def test_another_network_is_refused(tmp_path):
    fit(tmp_path)
    step = make_step()
    step.network[0] = torch.nn.Linear(4, 16)
    trainer = Trainer(**{**DEFAULT, "epochs": 9}, checkpoint=tmp_path, resume=True)
    with pytest.raises(ModelError, match=r"0\.weight"):
        trainer.fit(step, TensorSource(rows(), 7, seed=3), TensorSource(rows(40, 1), 16))


def test_a_damaged_checkpoint_is_skipped_for_the_one_before(tmp_path):
    whole = outcome(*fit())
    with pytest.raises(RuntimeError, match="went away"):
        fit(tmp_path, checkpoint_every=4, callbacks=[Crash(14)])
    file = tmp_path / "step-000000012" / "state.safetensors"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.warns(UserWarning, match=r"skipped a damaged checkpoint.*state\.safetensors"):
        step, trainer = fit(tmp_path, resume=True)
    assert outcome(step, trainer) == whole


def test_when_no_checkpoint_is_whole_nothing_is_started_over_silently(tmp_path):
    fit(tmp_path)
    for file in tmp_path.rglob("*.safetensors"):
        file.write_bytes(b"")
    with pytest.warns(UserWarning), pytest.raises(ModelError, match="none of its checkpoints"):
        fit(tmp_path, resume=True)


def test_two_runs_cannot_share_a_folder(tmp_path):
    with RunLock(tmp_path / "run"), pytest.raises(BusyError, match="in use by process"):
        fit(tmp_path / "run")
    assert not (tmp_path / "run").exists()


class Breaks(Callback):
    """Lets saving fail from some step on, as a full disk does."""

    def __init__(self, monkeypatch, number):
        self.monkeypatch, self.number = monkeypatch, number

    def on_step(self, run, logs):
        if run.number == self.number:

            def full(*_, **__):
                raise ResourceError("needs 9000 bytes, 12 are free")

            self.monkeypatch.setattr(Checkpoints, "save", full)


def test_a_full_disk_keeps_the_old_checkpoint_and_training_goes_on(tmp_path, monkeypatch):
    with pytest.warns(UserWarning, match="not written: needs 9000 bytes, 12 are free") as caught:
        step, trainer = fit(tmp_path, checkpoint_every=4, callbacks=[Breaks(monkeypatch, 10)])
    assert len(caught) == 2  # the first failure and the last, not one for each
    assert outcome(step, trainer) == outcome(*fit())
    assert any("step 36 was not written" in note for note in trainer.history.notes)
    assert Checkpoints(tmp_path).latest()[1].header["step"] == 8


def test_a_full_disk_stops_training_by_policy(tmp_path, monkeypatch):
    broken = {"callbacks": [Breaks(monkeypatch, 10)], "on_checkpoint_error": "stop"}
    with pytest.raises(ResourceError, match="12 are free"):
        fit(tmp_path, checkpoint_every=4, **broken)
    monkeypatch.undo()
    assert outcome(*fit(tmp_path, resume=True)) == outcome(*fit())


def test_a_folder_deleted_on_the_way_costs_the_checkpoints_and_not_the_model(tmp_path):
    class Delete(Callback):
        def on_step(self, run, logs):
            if run.number == 10:
                shutil.rmtree(tmp_path / "run")

    with pytest.warns(UserWarning, match="deleted during the run. Save the model elsewhere"):
        step, trainer = fit(tmp_path / "run", checkpoint_every=4, callbacks=[Delete()])
    assert outcome(step, trainer) == outcome(*fit())
    assert "deleted during the run" in trainer.history.notes[-1]
    assert not (tmp_path / "run").exists()


def test_a_folder_that_cannot_be_written_is_found_out_before_training(tmp_path):
    (tmp_path / "file").write_text("mine")

    class Never(Callback):
        def on_step(self, run, logs):
            raise AssertionError("it trained")

    for folder in (tmp_path / "file", tmp_path / ("x" * 300), tmp_path / "file" / "below"):
        with pytest.raises(AnsatzError) as caught:
            fit(folder, callbacks=[Never()])
        assert "\n" not in str(caught.value)
    assert (tmp_path / "file").read_text() == "mine"


def test_spaces_and_unicode_in_the_path_are_fine(tmp_path):
    folder = tmp_path / "my rüns ✓" / "a b"
    with pytest.raises(RuntimeError, match="went away"):
        fit(folder, checkpoint_every=4, callbacks=[Crash(14)])
    assert outcome(*fit(folder, resume=True)) == outcome(*fit())


def test_a_source_that_is_not_pure_is_saved_with_the_run(tmp_path):
    class Drifting(TensorSource):
        """Its batches depend on how many have been drawn, like a replay buffer's."""

        drawn = 0

        def batches(self, epoch, start=0):
            for batch in super().batches(epoch, start):
                self.drawn += 1
                yield batch._replace(target=batch.target + 0.1 * self.drawn)

        def state_dict(self):
            return {"drawn": self.drawn}

        def load_state_dict(self, state):
            self.drawn = state["drawn"]

    def run(folder=None, **options):
        step = make_step()
        options = options if folder is None else {"checkpoint": folder, **options}
        trainer = Trainer(**{**DEFAULT, **options})
        trainer.fit(step, Drifting(rows(), 7, seed=3))
        return outcome(step, trainer)

    with pytest.raises(RuntimeError, match="went away"):
        run(tmp_path, checkpoint_every=4, callbacks=[Crash(14)])
    assert run(tmp_path, resume=True) == run()


def test_a_generator_that_the_network_owns_is_saved_with_the_run(tmp_path):
    class Noise(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.generator = torch.Generator().manual_seed(5)

        def forward(self, x):
            return x + torch.randn(x.shape, generator=self.generator, dtype=x.dtype)

    def run(folder=None, **options):
        step = make_step()
        step.network.append(Noise())
        options = options if folder is None else {"checkpoint": folder, **options}
        trainer = Trainer(**{**DEFAULT, **options})
        trainer.fit(step, TensorSource(rows(), 7, seed=3))
        return outcome(step, trainer)

    with pytest.raises(RuntimeError, match="went away"):
        run(tmp_path, checkpoint_every=4, callbacks=[Crash(14)])
    assert run(tmp_path, resume=True) == run()


def test_a_callback_with_a_memory_gets_it_back(tmp_path):
    class Counter(Callback):
        count = 0

        def on_step(self, run, logs):
            self.count += 1

        def state_dict(self):
            return {"count": self.count}

        def load_state_dict(self, state):
            self.count = state["count"]

    with pytest.raises(RuntimeError, match="went away"):
        fit(tmp_path, checkpoint_every=4, callbacks=[Counter(), Crash(14)])
    counter = Counter()
    fit(tmp_path, resume=True, callbacks=[counter])
    assert counter.count == 36


def test_only_the_last_checkpoints_stay(tmp_path):
    fit(tmp_path, checkpoint_every=5, keep=3)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["step-000000030", "step-000000035", "step-000000036"]


def forge_state(folder, change):
    """Changes the state or the weights of the last checkpoint, under sums that agree with it."""
    (path,) = sorted(folder.glob("step-*"))[-1:]
    header = decode_manifest((path / MANIFEST).read_bytes()).header
    state = unpack_state(read_json(path / "state.json"), read_tensors(path / "state.safetensors"))
    weights = read_tensors(path / "model.safetensors")
    change(state, weights)
    packed, tensors = pack_state(state)
    files = {"model.safetensors": weights, "state.safetensors": tensors, "state.json": packed}
    write_folder(path, files, kind="checkpoint", header=header, overwrite=True)


def group(state):
    return state["step"]["optimizer"]["param_groups"][0]


FORGED = {
    "a beta is text": lambda state, weights: group(state).update(betas=["x", 0.9]),
    "three betas": lambda state, weights: group(state).update(betas=[0.9, 0.9, 0.9]),
    "one beta": lambda state, weights: group(state).update(betas=0.9),
    "eps is a list": lambda state, weights: group(state).update(eps=[1e-8]),
    "no eps": lambda state, weights: group(state).pop("eps"),
    "a moment is lost": lambda state, weights: next(
        iter(state["step"]["optimizer"]["state"].values())
    ).popitem(),
    "the number is text": lambda state, weights: state.update(number=str(state["number"])),
    "a weight is nan": lambda state, weights: weights["network.0.weight"].fill_(float("nan")),
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_a_forged_checkpoint_is_refused_in_one_line_that_names_it(tmp_path, change):
    fit(tmp_path, epochs=1)
    forge_state(tmp_path, change)
    with pytest.raises(ModelError, match=r"step-000000012\b") as caught:
        fit(tmp_path, epochs=2, resume=True)
    assert "\n" not in str(caught.value)


def overflow(state, weights):
    weights["network.0.weight"].fill_(3e38)


def test_a_numerical_failure_of_a_resumed_run_names_the_checkpoint(tmp_path):
    fit(tmp_path, epochs=1)
    forge_state(tmp_path, overflow)
    with pytest.raises(NumericalError, match=r"The run went on from .*step-000000012\.$"):
        fit(tmp_path, epochs=2, resume=True)
