"""Files are written whole or not at all; what dead writers left is removed."""

import errno
import os
import re
import subprocess
import sys
import time

import pytest

from ansatz.errors import AnsatzError, ResourceError, UsageError
from ansatz.storage import write_file
from ansatz.storage.disk import (
    explain,
    forget,
    host_digest,
    is_alive,
    is_orphan,
    new_name,
    remove_orphans,
)

CALLS = 4  # write, fsync, replace, fsync of the folder


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("n", range(1, CALLS + 1))
def test_any_one_failing_call_leaves_a_whole_file_and_nothing_else(tmp_path, faulty_fs, n, exists):
    path = tmp_path / "out.csv"
    if exists:
        write_file(path, b"old")
    with faulty_fs(n) as disk, pytest.raises(ResourceError, match=r"cannot write .*out.csv"):
        write_file(path, b"new", overwrite=exists)
    renamed = n == CALLS  # only the folder's own sync failed: the name is already the new file's
    assert path.exists() == (exists or renamed)
    assert not path.exists() or path.read_bytes() == (b"new" if renamed else b"old")
    assert os.listdir(tmp_path) in ([], ["out.csv"]) and disk.count == n


def test_a_folder_in_its_place_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"is a folder"):
        write_file(tmp_path, b"", overwrite=True)


@pytest.mark.parametrize("code", sorted(errno.errorcode))
def test_every_error_of_the_system_becomes_one_sentence_of_ours(tmp_path, code):
    error = explain(OSError(code, os.strerror(code)), tmp_path / "run", 100)
    assert isinstance(error, AnsatzError) and error.exit_status in (2, 5)
    assert str(tmp_path / "run") in str(error) and "\n" not in str(error)


@pytest.fixture
def dead_pid():
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    return done.pid


def name_of(host, pid):
    return f".tmp-{host}-{pid}-{'0' * 32}"


def test_processes_live_or_not(dead_pid):
    assert is_alive(os.getpid()) and is_alive(os.getppid())
    assert not any(map(is_alive, (dead_pid, 0, -1, 10**30)))


def test_our_own_is_no_orphan_until_we_forget_it(tmp_path):
    name = new_name()
    assert not is_orphan(tmp_path / name)
    forget(name)
    assert is_orphan(tmp_path / name)


def test_names_differ():
    assert len({new_name() for _ in range(100)}) == 100


def test_what_a_dead_process_left_is_removed_and_the_rest_is_not(tmp_path, dead_pid):
    living, dead = name_of(host_digest(), os.getppid()), name_of(host_digest(), dead_pid)
    young, old = name_of("0" * 8, dead_pid), name_of("1" * 8, dead_pid)
    others = [".tmp-mine", "tmp-0", ".tmp-" + "0" * 32]
    for name in [living, dead, young, old, *others]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("x")
    past = time.time() - 100_000
    os.utime(tmp_path / old, (past, past))
    remove_orphans(tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted([living, young, *others])


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_an_orphan_that_is_a_link_is_removed_and_not_followed(tmp_path, dead_pid):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("x")
    (tmp_path / name_of(host_digest(), dead_pid)).symlink_to(tmp_path / "precious")
    remove_orphans(tmp_path)
    assert os.listdir(tmp_path) == ["precious"] and os.listdir(tmp_path / "precious") == ["file"]


def test_the_name_tells_nothing_but_host_digest_and_process():
    assert re.fullmatch(rf"\.tmp-{host_digest()}-{os.getpid()}-[0-9a-f]{{32}}", new_name())
