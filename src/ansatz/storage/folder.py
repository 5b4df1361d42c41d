"""A saved folder: written whole or not at all, and believed only after every byte is checked."""

import contextlib
import hashlib
import os
import shutil
import stat
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import ansatz
from ansatz.errors import AnsatzError, ModelError, UsageError
from ansatz.storage.disk import check_space, explain, read_bytes, sync_folder, write_bytes
from ansatz.storage.json_file import encode_json, shorten
from ansatz.storage.manifest import (
    FORMAT,
    MANIFEST,
    FileEntry,
    Manifest,
    check_names,
    decode_manifest,
    encode_manifest,
)
from ansatz.storage.owner import forget, is_orphan, new_name
from ansatz.storage.tensors import encode_tensors

# What a folder may hold besides the listed files: notes and pictures that are never read. An
# unlisted file of the formats that *are* read could be mistaken for a part of the model.
_READ = (".safetensors", ".json")


def write_folder(
    target: str | Path,
    files: Mapping[str, Any],
    *,
    kind: str,
    header: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> Path:
    """Writes a model or a checkpoint so that no crash can leave half of one under its name.

    A temporary folder beside the target is filled, every file and then the folder is synced to
    disk, the manifest last, and only then it takes the target's name by a rename. With
    ``overwrite`` the old folder steps aside (``.<name>.old-<uuid>``), is removed after the new one
    has its name, and comes back by :func:`recover_folder` if the machine stops in between.

    Args:
        target: the folder to make; an empty one counts as absent.
        files: name -> its bytes; tensors by name for ``.safetensors``; any value for ``.json``.
        kind: ``"model"`` or ``"checkpoint"``.
        header: what the manifest says besides; plain JSON.
        overwrite: replace an earlier folder of ours. Any other folder is refused.

    Example:
        >>> import tempfile, torch
        >>> from ansatz.storage import verify_folder, write_folder
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     files = {"weights.safetensors": {"w": torch.ones(2)}, "ansatz.json": {"seed": 0}}
        ...     path = write_folder(parent + "/model", files, kind="model")
        ...     sorted(verify_folder(path, "model").files)
        ['ansatz.json', 'weights.safetensors']
    """
    target = Path(target)
    contents = _contents(files)
    manifest = Manifest(
        FORMAT,
        kind,
        {"ansatz": ansatz.__version__, "torch": str(torch.__version__)},
        dict(header or {}),
        {name: FileEntry.of(content) for name, content in contents.items()},
    )
    contents[MANIFEST] = encode_manifest(manifest)  # the last to be written
    size = sum(len(content) for content in contents.values())
    try:
        _check_target(target, overwrite)
        with _new_parents(target.parent):
            recover_folder(target)
            check_space(target.parent, size, target)
            _write_and_rename(target, contents)
    except OSError as error:
        raise explain(error, target, size) from error
    return target


def verify_folder(path: str | Path, kind: str) -> Manifest:
    """The manifest of a folder, after every listed file has been read and its sum compared.

    Args:
        path: the folder.
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
        if not path.is_dir():
            found = "not a folder" if os.path.lexists(path) else "there is no such folder"
            raise ModelError(f"{path}: {found}")
        manifest = decode_manifest(_content(path, MANIFEST))
        if manifest.kind != kind:
            raise ModelError(f"holds a {shorten(manifest.kind)}, expected a {kind!r}")
        for name, entry in manifest.files.items():
            _check_file(path, name, entry)
        _check_unlisted(path, manifest)
    except ModelError as error:
        text = str(error)
        raise ModelError(text if text.startswith(str(path)) else f"{path}: {text}") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot be read: {error}") from None
    return manifest


def recover_folder(target: str | Path) -> Path | None:
    """Undoes an overwrite that was cut short: the earlier folder gets its name back.

    Returns the folder if there was something to undo. Nothing happens while ``target`` exists.

    Example:
        >>> import pathlib, tempfile
        >>> from ansatz.storage import recover_folder
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     aside = pathlib.Path(parent, ".model.old-" + 32 * "0")
        ...     aside.mkdir()
        ...     recover_folder(parent + "/model").name
        'model'
    """
    target = Path(target)
    if os.path.lexists(target):
        return None
    for aside in _asides(target):
        os.rename(aside, target)
        sync_folder(target.parent)
        return target
    return None


def remove_folder(path: Path) -> None:
    """Removes a folder so that a crash leaves an orphan, never half a folder under its name.

    Example:
        >>> import pathlib, tempfile
        >>> from ansatz.storage import remove_folder
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     (folder := pathlib.Path(parent, "step-1")).mkdir()
        ...     remove_folder(folder)
        ...     folder.exists()
        False
    """
    temporary = path.parent / new_name()
    try:
        os.rename(path, temporary)
        shutil.rmtree(temporary)
    except OSError as error:
        raise explain(error, path) from error
    finally:
        forget(temporary.name)


def remove_orphans(parent: Path) -> None:
    """Removes the temporary folders and files that dead writers left.

    Example:
        >>> import pathlib, tempfile
        >>> from ansatz.storage import remove_orphans
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     remove_orphans(pathlib.Path(parent))
    """
    for path in sorted(parent.glob(".tmp-*")):
        # Another process may be cleaning too; and what cannot be removed harms nobody.
        with contextlib.suppress(OSError):
            if is_orphan(path):
                _remove(path)


def _contents(files: Mapping[str, Any]) -> dict[str, bytes]:
    check_names(dict(files))
    return {name: _encode(name, value) for name, value in files.items()}


def _encode(name: str, value: bytes | Mapping[str, Tensor] | Any) -> bytes:
    if isinstance(value, bytes):
        return value
    try:
        if name.endswith(".safetensors"):
            return encode_tensors(value)
        if name.endswith(".json"):
            return encode_json(value)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None
    raise UsageError(f"{name}: expected bytes, got {type(value).__name__}")


def _check_target(target: Path, overwrite: bool) -> None:
    if not os.path.lexists(target) or (_is_folder(target) and not any(target.iterdir())):
        return
    if not _is_folder(target):
        raise UsageError(f"cannot write {target}: it is not a folder. Choose another name.")
    if not overwrite:
        raise UsageError(f"{target} exists. Choose another name, or --overwrite to replace it.")
    if not (target / MANIFEST).is_file():
        raise UsageError(
            f"{target} holds no {MANIFEST}, so it is not ours to overwrite. Choose another name."
        )


def _is_folder(path: Path) -> bool:
    """A real folder; a link to one would be replaced itself and its folder left behind."""
    return stat.S_ISDIR(os.lstat(path).st_mode)


@contextlib.contextmanager
def _new_parents(parent: Path) -> Any:
    """Makes the folders above the target, and takes them away again if the writing fails."""
    missing = [folder for folder in (parent, *parent.parents) if not os.path.lexists(folder)]
    try:
        parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for folder in missing:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


def _write_and_rename(target: Path, contents: dict[str, bytes]) -> None:
    temporary = target.parent / new_name()
    try:
        os.mkdir(temporary)
        for name, content in contents.items():
            write_bytes(temporary / name, content)
        sync_folder(temporary)
        _take_name(temporary, target)
        sync_folder(target.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            _remove(temporary)
        raise
    finally:
        forget(temporary.name)
    for aside in _asides(target):
        # The new folder has its name: what cannot be removed now is removed by the next writer.
        with contextlib.suppress(AnsatzError):
            remove_folder(aside)


def _take_name(temporary: Path, target: Path) -> None:
    if not os.path.lexists(target):
        os.rename(temporary, target)
        return
    if not any(target.iterdir()):
        if os.name == "nt":  # elsewhere a rename replaces an empty folder
            target.rmdir()
        os.rename(temporary, target)
        return
    aside = target.parent / f".{target.name}.old-{uuid.uuid4().hex}"
    os.rename(target, aside)
    try:
        os.rename(temporary, target)
    except BaseException:
        os.rename(aside, target)
        raise


def _asides(target: Path) -> list[Path]:
    prefix = f".{target.name}.old-"
    try:
        names = sorted(os.listdir(target.parent))
    except FileNotFoundError:
        return []
    return [target.parent / n for n in names if n.startswith(prefix) and len(n) == len(prefix) + 32]


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def _content(folder: Path, name: str) -> bytes:
    if os.path.islink(folder / name):
        raise ModelError(f"{name}: a link; a saved folder holds plain files only")
    return read_bytes(folder / name)


def _check_file(folder: Path, name: str, entry: FileEntry) -> None:
    path = folder / name
    if not os.path.lexists(path):
        raise ModelError(f"{name}: missing")
    mode = os.lstat(path).st_mode
    if not stat.S_ISREG(mode):
        what = "a link" if stat.S_ISLNK(mode) else "not a regular file"
        raise ModelError(f"{name}: {what}; a saved folder holds plain files only")
    size = path.stat().st_size
    if size != entry.size:
        what = "empty" if size == 0 else "truncated" if size < entry.size else "too long"
        raise ModelError(f"{name}: {what}: {size} bytes, the manifest says {entry.size}")
    with open(path, "rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != entry.sha256:
            raise ModelError(f"{name}: damaged: its SHA-256 differs from the manifest")


def _check_unlisted(folder: Path, manifest: Manifest) -> None:
    for path in sorted(folder.iterdir()):
        if path.name.lower().endswith(_READ) and path.name not in {MANIFEST, *manifest.files}:
            raise ModelError(f"{shorten(path.name)}: not listed in the manifest")
