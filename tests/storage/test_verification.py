import os
import shutil
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

import ansatz
from ansatz.errors import ModelError
from ansatz.storage import folder as module
from ansatz.storage import read_json, read_tensors, verify_folder, write_folder
from ansatz.storage.folder import MIGRATIONS, FileEntry, Manifest, encode_manifest

FIXTURES = Path(__file__).parents[1] / "fixtures"
NAMES = ["model.safetensors", "optim.safetensors", "state.json", "manifest.json"]
every_file = pytest.mark.parametrize("name", NAMES)


@pytest.fixture
def saved(tmp_path, files):
    return write_folder(tmp_path / "run", files(1), kind="checkpoint", header={"step": 1})


def refused(path, name):
    with pytest.raises(ModelError, match=rf"run: .*{name}") as caught:
        verify_folder(path, "checkpoint")
    assert "\n" not in str(caught.value)
    return str(caught.value)


# Damage (R3): always found, and the file is named.


@every_file
@pytest.mark.parametrize("percent", range(0, 100, 5))
def test_a_truncated_file_is_found(saved, name, percent):
    content = (saved / name).read_bytes()
    (saved / name).write_bytes(content[: len(content) * percent // 100])
    refused(saved, name)


def flip(path, bit):
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


@every_file
def test_a_flipped_bit_is_found_wherever_it_is(saved, name):
    bits = 8 * (saved / name).stat().st_size
    for bit in range(0, bits, max(bits // 60, 1)):
        flip(saved / name, bit)
        refused(saved, name if name != "manifest.json" else "")
        flip(saved / name, bit)
    verify_folder(saved, "checkpoint")


@pytest.mark.slow
@every_file
def test_every_flipped_bit_is_found(saved, name):
    for bit in range(8 * (saved / name).stat().st_size):
        flip(saved / name, bit)
        with pytest.raises(ModelError):
            verify_folder(saved, "checkpoint")
        flip(saved / name, bit)


@every_file
def test_a_missing_file_is_found(saved, name):
    (saved / name).unlink()
    assert "missing" in refused(saved, name)


@every_file
def test_an_empty_file_is_found(saved, name):
    (saved / name).write_bytes(b"")
    refused(saved, name)


@every_file
def test_an_appended_byte_is_found(saved, name):
    with open(saved / name, "ab") as file:
        file.write(b"\n")
    refused(saved, name)


def test_files_exchanged_are_found(saved):
    a, b = saved / "model.safetensors", saved / "optim.safetensors"
    content = a.read_bytes()
    a.write_bytes(b.read_bytes())
    b.write_bytes(content)
    refused(saved, "model.safetensors")


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
@every_file
def test_a_link_is_refused_though_its_content_fits(saved, tmp_path, name):
    shutil.move(saved / name, tmp_path / "elsewhere")
    (saved / name).symlink_to(tmp_path / "elsewhere")
    assert "a link" in refused(saved, name)


@every_file
def test_a_folder_in_a_files_place_is_refused(saved, name):
    (saved / name).unlink()
    (saved / name).mkdir()
    assert "not a regular file" in refused(saved, name)


def test_an_unlisted_file_that_could_be_taken_for_a_part_is_refused(saved):
    (saved / "extra.safetensors").write_bytes(b"")
    assert "not listed" in refused(saved, "extra.safetensors")


def test_notes_and_pictures_beside_the_model_are_nobodys_business(saved):
    for name in ("NOTES.md", ".DS_Store", "report.html", "fit.svg"):
        (saved / name).write_text("hello")
    verify_folder(saved, "checkpoint")


def test_the_kind_must_be_the_one_asked_for(saved):
    with pytest.raises(ModelError, match=r"holds a checkpoint, expected a model"):
        verify_folder(saved, "model")


@pytest.mark.parametrize("path", ["", "\0", "x" * 5000])
def test_a_path_that_cannot_be_is_a_model_error(tmp_path, path):
    with pytest.raises(ModelError):
        verify_folder(str(tmp_path / "a") + "/" + path, "model")


# A stranger's manifest: well-formed, with a right sum, and malicious.


def forged(folder, **changes):
    """A folder whose manifest passes its own sum, with some fields changed."""
    entry = FileEntry.of(b"{}")
    manifest = Manifest(1, "model", {"ansatz": "0.1.0"}, {}, {"a.json": entry})
    folder.mkdir()
    (folder / "a.json").write_bytes(b"{}")
    (folder / "manifest.json").write_bytes(encode_manifest(manifest._replace(**changes)))
    return folder


def test_the_forgery_itself_is_sound(tmp_path):
    assert verify_folder(forged(tmp_path / "run"), "model").header == {}


@pytest.mark.parametrize(
    "name", ["../secret.json", "/etc/passwd", "a/../b.json", "..", "sub/a.json", "a\\b", "con", ""]
)
def test_a_listed_path_is_refused_and_never_opened(tmp_path, name):
    (tmp_path / "secret.json").write_bytes(b"{}")
    path = forged(tmp_path / "run", files={name: FileEntry.of(b"{}")})
    with pytest.raises(ModelError, match=r"not a plain file name"):
        verify_folder(path, "model")


def test_names_that_differ_by_case_only_are_refused(tmp_path):
    entry = FileEntry.of(b"{}")
    with pytest.raises(ModelError, match=r"twice"):
        verify_folder(forged(tmp_path / "run", files={"a.json": entry, "A.json": entry}), "model")


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "zip"},
        {"kind": None},
        {"versions": {"ansatz": 3}},
        {"versions": []},
        {"header": []},
        {"files": {"a.json": FileEntry(-1, "0" * 64)}},
        {"files": {"a.json": FileEntry(2.0, "0" * 64)}},
        {"files": {"a.json": FileEntry(True, "0" * 64)}},
        {"files": {"a.json": FileEntry(2, "../x")}},
        {"files": {"a.json": FileEntry(2, None)}},
        {"files": {"a.json": FileEntry(10**30, "0" * 64)}},
        {"format": 0},
        {"format": -1},
        {"format": 1.0},
        {"format": True},
        {"format": "1"},
        {"format": None},
    ],
    ids=str,
)
def test_wrong_fields_are_refused(tmp_path, changes):
    with pytest.raises(ModelError):
        verify_folder(forged(tmp_path / "run", **changes), "model")


# Formats, for ever (R11).


def test_a_newer_format_says_who_made_it_and_what_to_do(tmp_path):
    path = forged(tmp_path / "run", format=7, versions={"ansatz": "3.2.1"})
    this = f"this is ansatz {ansatz.__version__}"
    ours = rf"{this} \(format {module.FORMAT}\)"
    with pytest.raises(ModelError, match=rf"ansatz 3.2.1 \(format 7\), {ours}: upgra"):
        verify_folder(path, "model")


def test_a_newer_format_need_not_look_like_ours(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "manifest.json").write_bytes(b'{"format": 9, "versions": 3}')
    with pytest.raises(ModelError, match=r"made by ansatz \? \(format 9\)"):
        verify_folder(tmp_path / "run", "model")


@pytest.mark.parametrize("content", [b"{}", b'{"format": "2"}', b'{"format": 0}'])
def test_a_format_is_a_whole_number(tmp_path, content):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "manifest.json").write_bytes(content)
    with pytest.raises(ModelError, match=r"its format must be a whole number >= 1, got "):
        verify_folder(tmp_path / "run", "model")


def test_every_older_format_has_its_migration_and_its_fixture():
    assert set(MIGRATIONS) == set(range(1, module.FORMAT))
    for number in range(1, module.FORMAT + 1):
        assert (FIXTURES / f"format-{number}" / "model" / "manifest.json").is_file()


def test_the_stored_model_of_format_1_is_read():
    path = FIXTURES / "format-1" / "model"
    manifest = verify_folder(path, "model")
    assert manifest.versions["ansatz"] == "0.1.0" and manifest.header == {"data": "none"}
    assert read_json(path / "ansatz.json") == {"likelihood": "normal", "seed": 0, "width": 0.1}
    expected = {
        "bias": torch.tensor([0.5, -0.25], dtype=torch.float32),
        "count": torch.tensor(7),
        "weight": torch.arange(6, dtype=torch.float64).view(2, 3),
    }
    assert_close(read_tensors(path / "weights.safetensors"), expected, rtol=0, atol=0)


def test_the_stored_checkpoint_of_format_1_is_read():
    path = FIXTURES / "format-1" / "step-000000012"
    assert verify_folder(path, "checkpoint").header == {"step": 12, "best": True}


def test_an_older_format_is_migrated_step_by_step(monkeypatch):
    def second(row):
        return {**row, "format": 2, "header": {"source": row["header"]["data"]}}

    def third(row):
        return {**row, "format": 3, "header": {**row["header"], "year": 2026}}

    monkeypatch.setattr(module, "FORMAT", 3)
    monkeypatch.setattr(module, "MIGRATIONS", {1: second, 2: third})
    manifest = verify_folder(FIXTURES / "format-1" / "model", "model")
    assert manifest.format == 3 and manifest.header == {"source": "none", "year": 2026}
