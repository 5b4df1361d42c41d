import errno
import os
import signal
import socket
import subprocess
import sys

import pytest

from ansatz.errors import AnsatzError, BusyError, ResourceError
from ansatz.storage import RunLock, read_json

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
