import errno
import os
import shutil
import stat
import subprocess
import sys

import pytest
from torch.testing import assert_close

from ansatz.errors import AnsatzError, ResourceError, UsageError
from ansatz.storage import (
    check_target,
    read_json,
    read_tensors,
    recover_folder,
    verify_folder,
    write_folder,
)

# Calls of one replacement: folder, 4 files of write and fsync each, fsync of the folder, aside,
# rename, fsync of the parent, and the rename by which the old folder is removed.
CALLS = 1 + 4 * 2 + 1 + 3 + 1


def save(target, files, **options):
    return write_folder(target, files, kind="checkpoint", **options)


def epoch(path):
    verify_folder(path, "checkpoint")
    return read_json(path / "state.json")["epoch"]


def test_what_is_written_is_read_back(tmp_path, files):
    path = save(tmp_path / "run", files(3), header={"step": 7})
    manifest = verify_folder(path, "checkpoint")
    assert manifest.header == {"step": 7} and set(manifest.files) == set(files())
    assert_close(read_tensors(path / "model.safetensors"), files(3)["model.safetensors"])
    assert sorted(os.listdir(path)) == sorted([*files(), "manifest.json"])
    assert os.listdir(tmp_path) == ["run"]


def test_the_same_values_are_the_same_bytes(tmp_path, files):
    a, b = (save(tmp_path / name, files(1)) for name in "ab")
    for name in os.listdir(a):
        assert (a / name).read_bytes() == (b / name).read_bytes()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no umask to speak of")
@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_modes_follow_the_umask(tmp_path, files, umask):
    before = os.umask(umask)
    try:
        path = save(tmp_path / "run", files())
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o777 & ~umask
    for name in os.listdir(path):
        assert stat.S_IMODE((path / name).stat().st_mode) == 0o666 & ~umask


def test_an_existing_folder_is_refused_by_name_and_left_alone(tmp_path, files):
    path = save(tmp_path / "run", files(1))
    with pytest.raises(UsageError, match=r"run exists.*--overwrite"):
        save(path, files(2))
    assert epoch(path) == 1 and os.listdir(tmp_path) == ["run"]


def test_overwrite_replaces_it_and_leaves_nothing_else(tmp_path, files):
    path = save(tmp_path / "run", files(1))
    save(path, files(2), overwrite=True)
    assert epoch(path) == 2 and os.listdir(tmp_path) == ["run"]


def test_overwrite_refuses_a_folder_that_is_not_ours(tmp_path, files):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("precious")
    with pytest.raises(UsageError, match=r"not ours to overwrite"):
        save(tmp_path / "thesis", files(), overwrite=True)
    assert (tmp_path / "thesis" / "chapter1.tex").read_text() == "precious"


def test_an_empty_folder_counts_as_absent(tmp_path, files):
    (tmp_path / "run").mkdir()
    assert epoch(save(tmp_path / "run", files(4))) == 4
    assert os.listdir(tmp_path) == ["run"]


def test_parents_are_made_and_unmade_on_failure(tmp_path, files, faulty_fs):
    assert epoch(save(tmp_path / "a" / "b" / "run", files(1))) == 1
    with faulty_fs(4), pytest.raises(ResourceError):
        save(tmp_path / "c" / "d" / "run", files(1))
    assert os.listdir(tmp_path) == ["a"]


def test_the_number_of_calls_is_as_counted(tmp_path, files, faulty_fs):
    save(tmp_path / "run", files(1))
    with faulty_fs() as disk:
        save(tmp_path / "run", files(2), overwrite=True)
    assert disk.count == CALLS


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC, errno.EACCES])
@pytest.mark.parametrize(
    "n, overwrite",
    # A first writing has no old folder to move aside and to remove. A failure of the last call of
    # a replacement comes after its success: the next test.
    [(n, False) for n in range(1, CALLS - 1)] + [(n, True) for n in range(1, CALLS)],
)
def test_any_one_failing_call_leaves_the_old_folder_and_nothing_else(
    tmp_path, files, faulty_fs, n, overwrite, error
):
    if overwrite:
        save(tmp_path / "run", files(1))
    with faulty_fs(n, error=error), pytest.raises(ResourceError, match=r"cannot write .*run"):
        save(tmp_path / "run", files(2), overwrite=overwrite)
    assert os.listdir(tmp_path) == (["run"] if overwrite else [])
    assert not overwrite or epoch(tmp_path / "run") == 1
    save(tmp_path / "run", files(3), overwrite=overwrite)
    assert epoch(tmp_path / "run") == 3 and os.listdir(tmp_path) == ["run"]


def test_a_failure_to_remove_the_old_folder_is_made_good_by_the_next(tmp_path, files, faulty_fs):
    save(tmp_path / "run", files(1))
    with faulty_fs(CALLS):
        save(tmp_path / "run", files(2), overwrite=True)
    assert epoch(tmp_path / "run") == 2 and len(os.listdir(tmp_path)) == 2
    save(tmp_path / "run", files(3), overwrite=True)
    assert epoch(tmp_path / "run") == 3 and os.listdir(tmp_path) == ["run"]


@pytest.mark.parametrize("n", range(1, CALLS))
def test_a_disk_that_goes_away_leaves_a_folder_to_recover(tmp_path, files, faulty_fs, n):
    save(tmp_path / "run", files(1))
    with faulty_fs(n, forever=True), pytest.raises(ResourceError):
        save(tmp_path / "run", files(2), overwrite=True)
    assert epoch(tmp_path / "run") in (1, 2)
    save(tmp_path / "run", files(3), overwrite=True)
    assert epoch(tmp_path / "run") == 3 and os.listdir(tmp_path) == ["run"]


@pytest.mark.parametrize("n", range(1, CALLS + 1))
def test_a_crash_at_any_call_leaves_one_whole_folder(tmp_path, files, faulty_fs, crash, n):
    save(tmp_path / "run", files(1))
    with faulty_fs(n, crash=True), pytest.raises(crash):
        save(tmp_path / "run", files(2), overwrite=True)
    # The name has changed hands once the second rename is done, which is three calls from the end.
    assert epoch(tmp_path / "run") == (1 if n <= CALLS - 2 else 2)
    save(tmp_path / "run", files(3), overwrite=True)
    assert epoch(tmp_path / "run") == 3 and os.listdir(tmp_path) == ["run"]


def test_the_newest_of_several_held_out_comes_back(tmp_path, files):
    for number in (2, 10, 9):
        save(tmp_path / f".run.old-{number}", files(number))
    save(tmp_path / ".run2.old-11", files(11))
    assert recover_folder(tmp_path / "run") == tmp_path / "run"
    assert epoch(tmp_path / "run") == 10


def test_short_writes_are_finished(tmp_path, files, faulty_fs):
    with faulty_fs(short=True) as disk:
        save(tmp_path / "run", files(5))
    assert epoch(tmp_path / "run") == 5 and disk.count > CALLS


def test_an_interrupt_leaves_nothing_behind(tmp_path, files, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    save(tmp_path / "run", files(1))
    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save(tmp_path / "run", files(2), overwrite=True)
    assert os.listdir(tmp_path) == ["run"] and epoch(tmp_path / "run") == 1


def test_too_little_space_is_said_in_bytes_before_anything_is_written(tmp_path, files, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=1234)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(ResourceError, match=r"needs \d+ bytes, 1234 are free"):
        save(tmp_path / "run", files())
    assert os.listdir(tmp_path) == []


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 256 kB: root can mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if not sys.platform.startswith("linux") or shutil.which("mount") is None:
        pytest.skip("a small disk needs Linux")
    done = subprocess.run(mount, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"a small disk needs the right to mount: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("foreseen", [True, False])
def test_a_full_disk_keeps_the_old_folder(small_disk, files, monkeypatch, foreseen):
    path = save(small_disk / "run", files(1))
    if not foreseen:  # somebody else fills the disk after the check
        usage = shutil.disk_usage(small_disk)
        lies = iter([usage._replace(free=2**40)])
        real = shutil.disk_usage
        monkeypatch.setattr(shutil, "disk_usage", lambda p: next(lies, None) or real(p))
    large = {**files(2), "large.json": b" " * 300_000}
    with pytest.raises(ResourceError, match=r"disk is .*full: needs \d+ bytes, \d+ are free"):
        save(path, large, overwrite=True)
    assert epoch(path) == 1 and os.listdir(small_disk) == ["run"]


@pytest.mark.parametrize("name", ["with space", "Grüße-模型-🙂", "a'b\"c", "-rf", "C:x", "100%"])
def test_odd_names_work(tmp_path, files, name):
    if os.name == "nt" and set(name) & set('":'):
        pytest.skip("not a name on Windows")
    path = save(tmp_path / name / name, files(1))
    save(path, files(2), overwrite=True)
    assert epoch(path) == 2


def file_in_its_place(folder):
    (folder / "run").write_text("mine")
    return folder / "run"


def file_above_it(folder):
    (folder / "run").write_text("mine")
    return folder / "run" / "model"


def too_long(folder):
    return folder / ("x" * 300)


def loop_above_it(folder):
    (folder / "loop").symlink_to(folder / "loop")
    return folder / "loop" / "run"


def loop_in_its_place(folder):
    (folder / "loop").symlink_to(folder / "loop")
    return folder / "loop"


def dangling_link_above_it(folder):
    (folder / "link").symlink_to(folder / "nowhere")
    return folder / "link" / "run"


def nul(folder):
    return folder / "a\0b"


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(
    "place, sentence",
    [
        (file_in_its_place, r"a file is there"),
        (file_above_it, r"not a (folder|directory)"),
        (too_long, r"too long"),
        (loop_above_it, r"loop of symbolic links"),
        (loop_in_its_place, r"a link is there"),
        (dangling_link_above_it, r"does not exist"),
        (nul, r"NUL"),
    ],
)
def test_impossible_places_are_named_before_the_work(tmp_path, files, place, sentence, overwrite):
    target = place(tmp_path)
    before = sorted(os.listdir(tmp_path))
    for attempt in (check_target, lambda *a, **k: save(a[0], files(), **k)):
        with pytest.raises(AnsatzError, match=rf"cannot write .*{sentence}") as caught:
            attempt(target, overwrite=overwrite)
        assert caught.value.exit_status in (2, 5) and "\n" not in str(caught.value)
    assert sorted(os.listdir(tmp_path)) == before


def test_a_read_only_disk_is_named_before_the_work(small_disk, files):
    path = save(small_disk / "run", files(1))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for target in (path, small_disk / "other"):
        for attempt in (check_target, lambda target, **k: save(target, files(2), **k)):
            with pytest.raises(ResourceError, match=r"disk is read-only. Choose a folder"):
                attempt(target, overwrite=True)
    assert epoch(path) == 1


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write there")
def test_a_read_only_folder_is_named_before_the_work(tmp_path):
    tmp_path.chmod(0o555)
    with pytest.raises(ResourceError, match=r"read-only"):
        check_target(tmp_path / "run")


def test_orphans_of_dead_writers_are_removed_by_the_next_writer(tmp_path, files, faulty_fs, crash):
    with faulty_fs(5, crash=True), pytest.raises(crash):
        save(tmp_path / "run", files(1))
    assert [name[:5] for name in os.listdir(tmp_path)] == [".tmp-"]
    save(tmp_path / "other", files(2))
    assert os.listdir(tmp_path) == ["other"]


@pytest.mark.parametrize(
    "name", ["../x.json", "/x.json", "a/b.json", "a\\b.json", "", ".", "..", ".hidden.json", "C:x",
             "nul.json", "COM1", "x.", "x\n.json", "manifest.json", "Manifest.JSON", "x" * 101]
)  # fmt: skip
def test_only_plain_file_names_are_written(tmp_path, name):
    with pytest.raises(UsageError, match=r"not a plain file name"):
        write_folder(tmp_path / "run", {name: b""}, kind="model")
    assert os.listdir(tmp_path) == []


def test_names_that_differ_by_case_only_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r"twice"):
        write_folder(tmp_path / "run", {"a.json": b"", "A.json": b""}, kind="model")


@pytest.mark.parametrize(
    "files, sentence",
    [
        ({"a.txt": 3}, r"a.txt: expected bytes, got int"),
        ({"a.json": {1, 2}}, r"a.json: cannot be written as JSON"),
        ({"a.json": float("nan")}, r"a.json: cannot be written as JSON"),
        ({"a.safetensors": {"w": 3.0}}, r"a.safetensors: tensor 'w': expected a tensor, got float"),
    ],
)
def test_what_cannot_be_written_is_named(tmp_path, files, sentence):
    with pytest.raises(UsageError, match=sentence):
        write_folder(tmp_path / "run", files, kind="model")
    with pytest.raises(UsageError, match=r"kind must be one of model, checkpoint, got 'zip'"):
        write_folder(tmp_path / "run", {}, kind="zip")


SAVER = """
import os, sys
from ansatz.storage import RunLock, verify_folder, write_folder
os.chdir(sys.argv[1])
with RunLock("Grüße/run"):
    files = {"b.json": {"ü": 1}, "a.json": {"z": 0, "a": [1]}}
    path = write_folder("Grüße/run", files, kind="model")
    print(verify_folder(path, "model").files["b.json"].sha256)
"""


@pytest.mark.parametrize("seed", ["0", pytest.param("1", marks=pytest.mark.slow)])
def test_neither_home_nor_language_nor_temporary_folder_nor_hash_seed_matters(tmp_path, seed):
    """P3, in a process that knows nothing but where it is."""
    hidden = ("HOME", "LANG", "USER", "XDG_CACHE_HOME", "PYTHONUTF8", "PYTHONIOENCODING")
    clean = {k: v for k, v in os.environ.items() if k not in hidden and not k.startswith("LC_")}
    clean |= {"LC_ALL": "C", "PYTHONHASHSEED": seed, "TMPDIR": str(tmp_path / "nowhere")}
    done = subprocess.run(
        [sys.executable, "-c", SAVER, str(tmp_path)], env=clean, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    path = write_folder(tmp_path / "here", {"b.json": {"ü": 1}}, kind="model")
    assert done.stdout.strip() == verify_folder(path, "model").files["b.json"].sha256
