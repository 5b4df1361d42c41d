import errno
import os

import pytest

from ansatz.errors import AnsatzError, ResourceError, UsageError
from ansatz.storage import write_file
from ansatz.storage.disk import explain

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
