"""A saved folder is believed only after every byte of it has been checked."""

import hashlib
import os
import stat
from pathlib import Path

from ansatz.errors import ModelError
from ansatz.storage.aside import recover_folder
from ansatz.storage.disk import read_bytes
from ansatz.storage.json_file import shorten
from ansatz.storage.manifest import MANIFEST, FileEntry, Manifest, decode_manifest

# A folder may hold notes and pictures besides the listed files: they are never read. An unlisted
# file of a kind that *is* read could be mistaken for a part of the model.
_KINDS_READ = (".safetensors", ".json")


def verify_folder(path: str | Path, kind: str) -> Manifest:
    """The manifest of a folder, after every listed file has been read and its sum compared.

    Args:
        path: the folder. One whose replacement was cut short is recovered first.
        kind: what it must be: ``"model"`` or ``"checkpoint"``.

    Example:
        >>> from ansatz.storage import verify_folder
        >>> verify_folder("no/such/model", "model")
        Traceback (most recent call last):
        ...
        ansatz.errors.ModelError: no/such/model: there is no such folder
    """
    path = Path(path)
    try:
        recover_folder(path)
        return _verify(path, kind)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise ModelError(f"{path}: cannot be read: {error}") from None


def _verify(path: Path, kind: str) -> Manifest:
    if not os.path.lexists(path):
        raise ModelError("there is no such folder")
    if not path.is_dir():
        raise ModelError(f"not a folder; a saved {kind} is a folder with a {MANIFEST}")
    _check_plain(path, MANIFEST)
    manifest = decode_manifest(read_bytes(path / MANIFEST))
    if manifest.kind != kind:
        raise ModelError(f"holds a {manifest.kind}, expected a {kind}")
    for name, entry in manifest.files.items():
        _check_file(path, name, entry)
    _check_unlisted(path, manifest)
    return manifest


def _check_plain(folder: Path, name: str) -> None:
    try:
        mode = os.lstat(folder / name).st_mode
    except FileNotFoundError:
        hint = " (is this a folder that ansatz wrote?)" if name == MANIFEST else ""
        raise ModelError(f"{name}: missing{hint}") from None
    if not stat.S_ISREG(mode):
        what = "a link" if stat.S_ISLNK(mode) else "not a regular file"
        raise ModelError(f"{name}: {what}; a saved folder holds plain files only")


def _check_file(folder: Path, name: str, entry: FileEntry) -> None:
    _check_plain(folder, name)
    size = os.stat(folder / name).st_size
    if size != entry.size:
        what = "empty" if size == 0 else "truncated" if size < entry.size else "too long"
        raise ModelError(f"{name}: {what}: {size} bytes, the manifest says {entry.size}")
    with open(folder / name, "rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != entry.sha256:
            raise ModelError(f"{name}: damaged: its SHA-256 differs from the manifest")


def _check_unlisted(folder: Path, manifest: Manifest) -> None:
    for path in sorted(folder.iterdir()):
        if path.name.lower().endswith(_KINDS_READ) and path.name not in {MANIFEST, *manifest.files}:
            raise ModelError(f"{shorten(path.name)}: not listed in the manifest")
