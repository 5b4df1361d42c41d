"""One writer at a time; the newest whole checkpoint is always there."""

import errno
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ansatz.errors import AnsatzError, BusyError, ResourceError, UsageError
from ansatz.storage import Checkpoints, RunLock, read_json, verify_folder, write_folder

HOLDER = """
import sys
from ansatz.storage import RunLock
with RunLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder_of(lock):
    return read_json(lock.path.read_bytes()[1:])


def test_the_file_names_process_host_and_time_and_goes_with_the_lock(tmp_path):
    with RunLock(tmp_path / "run") as lock:
        holder = holder_of(lock)
        assert holder["pid"] == os.getpid() and holder["host"] == socket.gethostname()
        assert holder["since"][:2] == "20" and os.listdir(tmp_path) == ["run.lock"]
    assert os.listdir(tmp_path) == [] and lock.note is None


def test_another_process_is_named_and_outlived(tmp_path):
    """R7: two real processes; then the first is killed and the second takes over with a note."""
    run = tmp_path / "run"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(run)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"held\n"
        before = (tmp_path / "run.lock").read_bytes()
        for _ in range(2):
            with pytest.raises(
                BusyError, match=rf"process {other.pid} on .*{socket.gethostname()}"
            ):
                RunLock(run).acquire()
        assert (tmp_path / "run.lock").read_bytes() == before
        assert os.listdir(tmp_path) == ["run.lock"]
        other.send_signal(signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
        other.wait()
    with RunLock(run) as lock:
        assert f"left by process {other.pid}" in lock.note and "no longer running" in lock.note
        assert holder_of(lock)["pid"] == os.getpid()
    with RunLock(run) as lock:
        assert lock.note is None


def test_a_lock_file_left_by_a_dead_process_is_taken_over_with_a_note(tmp_path):
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    text = f'\n{{"pid": {done.pid}, "host": "{socket.gethostname()}", "since": "2026-01-02"}}'
    (tmp_path / "run.lock").write_text(text)
    with RunLock(tmp_path / "run") as lock:
        assert f"process {done.pid}" in lock.note and "no longer running" in lock.note


@pytest.mark.parametrize(
    "content", [b"", b"x", b"\xff" * 100, b"\n{}", b'\n{"pid": "1"}', b" " * 10_000, b"\n[[["]
)
def test_whatever_a_lock_file_says_it_is_taken(tmp_path, content):
    (tmp_path / "run.lock").write_bytes(content)
    with RunLock(tmp_path / "run") as lock:
        assert holder_of(lock)["pid"] == os.getpid() and lock.note is None


def test_one_process_excludes_itself_too(tmp_path):
    with RunLock(tmp_path / "run"):
        with pytest.raises(BusyError, match=rf"process {os.getpid()} "):
            RunLock(tmp_path / "run").acquire()
        with RunLock(tmp_path / "other"):
            pass


def test_the_same_folder_by_another_spelling_is_the_same_lock(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with RunLock("run"), pytest.raises(BusyError):
        RunLock(tmp_path / "x" / ".." / "run").acquire()


def test_it_is_released_whatever_happens(tmp_path):
    for error in (ValueError, KeyboardInterrupt, SystemExit):
        with pytest.raises(error), RunLock(tmp_path / "run"):
            raise error
        with RunLock(tmp_path / "run") as lock:
            assert lock.note is None
    lock.release()
    assert os.listdir(tmp_path) == []


def test_it_can_be_taken_again(tmp_path):
    lock = RunLock(tmp_path / "run")
    for _ in range(2):
        with lock:
            assert lock.path.exists()


def test_a_failure_to_say_who_holds_it_releases_it(tmp_path, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(ResourceError, match=r"cannot write .*run.lock: the disk is full"):
            RunLock(tmp_path / "run").acquire()
    with RunLock(tmp_path / "run"):
        pass


def test_an_impossible_place_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(AnsatzError, match=r"cannot write"):
        RunLock(tmp_path / "file" / "run").acquire()


def steps(checkpoints):
    return [int(path.name[5:]) for path in checkpoints.paths()]


@pytest.fixture
def run(tmp_path, files):
    """A run with checkpoints of steps 1, 2 and 3, all kept."""
    checkpoints = Checkpoints(tmp_path / "run", keep=3)
    for step in (1, 2, 3):
        checkpoints.save(step, files(step))
    return checkpoints


def test_a_new_run_has_none(tmp_path):
    checkpoints = Checkpoints(tmp_path / "new")
    assert checkpoints.latest() is None and checkpoints.best() is None and steps(checkpoints) == []


def test_the_latest_is_what_was_saved_last(run, files):
    path, manifest = run.latest()
    assert path.name == "step-000000003" and manifest.header == {"step": 3, "best": False}
    assert read_json(path / "state.json") == files(3)["state.json"]


def test_the_order_is_that_of_steps_not_of_clocks(run, files):
    """R10: a clock set back, and several checkpoints in the same second."""
    run.save(10, files(10))
    for number, path in enumerate(run.paths()):
        os.utime(path, (1e9 + number, 1e9 + number))
        os.utime(path / "manifest.json", (1e9 + number, 1e9 + number))
    assert steps(run) == [10, 3, 2] and run.latest()[0].name == "step-000000010"


def test_steps_beyond_nine_digits_are_ordered_as_numbers(tmp_path, files):
    checkpoints = Checkpoints(tmp_path, keep=3)
    for step in (999_999_999, 10_000_000_000, 5):
        checkpoints.save(step, files())
    assert steps(checkpoints) == [10_000_000_000, 999_999_999, 5]
    assert checkpoints.latest()[1].header["step"] == 10_000_000_000


@pytest.mark.parametrize("keep", [1, 2, 4])
def test_the_last_ones_are_kept(tmp_path, files, keep):
    checkpoints = Checkpoints(tmp_path, keep=keep)
    for step in range(6):
        checkpoints.save(step, files(step))
    assert steps(checkpoints) == [5, 4, 3, 2][:keep] and len(os.listdir(tmp_path)) == keep


def test_the_best_outlives_the_last_ones_until_there_is_a_better(tmp_path, files):
    checkpoints = Checkpoints(tmp_path, keep=1)
    for step, best in [(1, True), (2, False), (3, False)]:
        checkpoints.save(step, files(step), best=best)
    assert steps(checkpoints) == [3, 1] and checkpoints.best()[1].header["step"] == 1
    checkpoints.save(4, files(4), best=True)
    assert steps(checkpoints) == [4] and checkpoints.best()[1].header["step"] == 4
    checkpoints.save(5, files(5))
    assert steps(checkpoints) == [5, 4]


def test_the_old_goes_only_after_the_new_is_verified(tmp_path, files, monkeypatch):
    from ansatz.storage import run_folder as module

    checkpoints = Checkpoints(tmp_path, keep=1)
    checkpoints.save(1, files(1))

    def damaged(path, *args, **options):
        path = write_folder(path, *args, **options)
        (path / "state.json").write_bytes(b"the disk lied")

    monkeypatch.setattr(module, "write_folder", damaged)
    with pytest.raises(AnsatzError, match=r"step-000000002: state.json: truncated"):
        checkpoints.save(2, files(2))
    assert checkpoints.latest()[0].name == "step-000000001"


# Damage (R3): the reader falls back and says so.


def truncate(path):
    path.write_bytes(path.read_bytes()[:-1])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [truncate, flip, empty, Path.unlink])
@pytest.mark.parametrize(
    "name", ["model.safetensors", "optim.safetensors", "state.json", "manifest.json"]
)
def test_a_damaged_latest_is_skipped_with_its_reason(run, damage, name):
    damage(run.folder / "step-000000003" / name)
    path, manifest = run.latest()
    assert path.name == "step-000000002" and manifest.header["step"] == 2
    [(skipped, reason)] = run.skipped
    assert skipped.name == "step-000000003" and name in reason


def test_all_damaged_is_none_with_all_reasons(run):
    for path in run.paths():
        empty(path / "state.json")
    assert run.latest() is None and len(run.skipped) == 3


def test_a_checkpoint_under_another_steps_name_is_skipped(run):
    os.rename(run.folder / "step-000000003", run.folder / "step-000000009")
    assert run.latest()[0].name == "step-000000002" and "another step" in run.skipped[0][1]


@pytest.mark.parametrize("damage", [flip, Path.unlink])
def test_a_damaged_step_is_replaced_when_the_run_comes_by_again(run, files, damage):
    damage(run.folder / "step-000000003" / "manifest.json")
    assert run.latest()[0].name == "step-000000002"
    run.save(3, files(3))
    assert run.latest()[0].name == "step-000000003" and run.skipped == []


def test_damaged_ones_do_not_count_and_go_in_time(run, files):
    run.keep = 2
    for step in (2, 3):
        empty(run.folder / f"step-00000000{step}" / "state.json")
    assert run.latest()[0].name == "step-000000001"
    run.save(4, files(4))
    assert steps(run) == [4, 1] and run.latest()[0].name == "step-000000004"


# Faults of the disk, call by call.


def calls(folder, files, faulty_fs):
    checkpoints = Checkpoints(folder, keep=1)
    checkpoints.save(1, files(1))
    with faulty_fs() as disk:
        checkpoints.save(2, files(2))
    return disk.count


def test_any_one_failing_call_leaves_a_whole_checkpoint(tmp_path, files, faulty_fs):
    for n in range(1, calls(tmp_path / "0", files, faulty_fs) + 1):
        checkpoints = Checkpoints(tmp_path / str(n), keep=1)
        checkpoints.save(1, files(1))
        with faulty_fs(n), pytest.raises(ResourceError, match=r"cannot write"):
            checkpoints.save(2, files(2))
        assert checkpoints.latest() is not None and checkpoints.skipped == []
        assert not list(checkpoints.folder.glob(".*"))


def test_a_crash_at_any_call_leaves_a_whole_checkpoint(tmp_path, files, faulty_fs, crash):
    for n in range(1, calls(tmp_path / "0", files, faulty_fs) + 1):
        checkpoints = Checkpoints(tmp_path / str(n), keep=1)
        checkpoints.save(1, files(1))
        with faulty_fs(n, crash=True), pytest.raises(crash):
            checkpoints.save(2, files(2))
        reopened = Checkpoints(tmp_path / str(n), keep=1)
        assert reopened.latest() is not None and reopened.skipped == []
        assert not list(reopened.folder.glob(".*"))
        reopened.save(3, files(3))
        assert os.listdir(reopened.folder) == ["step-000000003"]


def test_a_crash_while_a_step_is_replaced_leaves_it_whole(tmp_path, files, faulty_fs, crash):
    for n in range(1, 15):
        checkpoints = Checkpoints(tmp_path / str(n), keep=1)
        checkpoints.save(1, files(1))
        with faulty_fs(n, crash=True), pytest.raises(crash):
            checkpoints.save(1, files(2))
        reopened = Checkpoints(tmp_path / str(n), keep=1)
        assert reopened.latest()[0].name == "step-000000001"
        assert read_json(reopened.latest()[0] / "state.json")["epoch"] in (1, 2)
        reopened.save(2, files(2))
        assert os.listdir(reopened.folder) == ["step-000000002"]


def test_a_reader_leaves_a_living_writers_folder_alone(tmp_path, files, monkeypatch):
    checkpoints = Checkpoints(tmp_path)
    real, seen = os.fsync, []

    def look(file):
        seen.append(len(list(Checkpoints(tmp_path).folder.glob(".tmp-*"))))
        real(file)

    monkeypatch.setattr(os, "fsync", look)
    checkpoints.save(1, files(1))
    assert seen[0] == 1 and checkpoints.latest() is not None


def test_a_folder_deleted_during_the_run_is_an_error_not_a_new_folder(run, files):
    import shutil

    shutil.rmtree(run.folder)
    with pytest.raises(ResourceError, match=r"deleted during the run.*elsewhere"):
        run.save(4, files(4))
    assert not run.folder.exists()


def test_a_file_in_the_folders_place_is_named(tmp_path):
    (tmp_path / "run").write_text("mine")
    with pytest.raises(AnsatzError, match=r"cannot write .*run"):
        Checkpoints(tmp_path / "run")
    assert (tmp_path / "run").read_text() == "mine"


@pytest.mark.parametrize("step", [-1, 1.0, True, "1", 10**18])
def test_a_step_is_a_whole_number(run, step):
    with pytest.raises(UsageError, match=r"step must be"):
        run.save(step, {})


@pytest.mark.parametrize("keep", [0, -1, 1.5, True])
def test_at_least_one_is_kept(tmp_path, keep):
    with pytest.raises(UsageError, match=r"keep must be"):
        Checkpoints(tmp_path, keep=keep)


# kill -9 of a saver, again and again.

SAVER = """
import os, random, signal, sys, time
import torch
from ansatz.storage import Checkpoints

folder, kills = sys.argv[1], int(sys.argv[2])
random.seed(0)
last = 0
for _ in range(kills):
    child = os.fork()
    if child == 0:
        checkpoints = Checkpoints(folder)
        for step in range(last + 1, last + 100_000):
            tensors = {"w": torch.full((5000,), float(step))}
            checkpoints.save(step, {"model.safetensors": tensors, "state.json": {"step": step}})
    time.sleep(random.uniform(0.01, 0.2))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    checkpoints = Checkpoints(folder)
    found = checkpoints.latest()
    assert not checkpoints.skipped, checkpoints.skipped
    assert not [n for n in os.listdir(folder) if not n.startswith("step-")], os.listdir(folder)
    assert found is not None or last == 0
    step = found[1].header["step"] if found else 0
    assert step >= last, (step, last)
    last = step
print(last)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("kills", [3, pytest.param(50, marks=pytest.mark.slow)])
def test_a_killed_saver_always_leaves_a_whole_checkpoint(tmp_path, kills):
    done = subprocess.run(
        [sys.executable, "-c", SAVER, str(tmp_path / "run"), str(kills)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0
    assert verify_folder(Checkpoints(tmp_path / "run").latest()[0], "checkpoint")
