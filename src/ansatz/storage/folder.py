"""A saved folder, written whole or not at all."""

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

import ansatz
from ansatz.errors import ResourceError, UsageError
from ansatz.storage.disk import (
    asides,
    check_space,
    explain,
    forget,
    new_aside,
    new_name,
    recover_folder,
    remove,
    remove_folder,
    remove_orphans,
    sync_folder,
    write_bytes,
)
from ansatz.storage.json_file import encode_json
from ansatz.storage.manifest import (
    FORMAT,
    KINDS,
    MANIFEST,
    FileEntry,
    Manifest,
    check_names,
    encode_manifest,
)
from ansatz.storage.tensors import encode_tensors


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
    ``overwrite`` the old folder steps aside, is removed after the new one has its name, and comes
    back (:func:`recover_folder`) if anything fails or the machine stops in between.

    Args:
        target: the folder to make; an empty one counts as absent.
        files: name -> its bytes; tensors by name for ``.safetensors``; any value for ``.json``.
        kind: ``"model"`` or ``"checkpoint"``.
        header: what the manifest says besides; plain JSON.
        overwrite: replace an earlier folder of ours. Any other folder is refused.
    """
    target = Path(target)
    contents = _contents(files, kind, dict(header or {}))
    size = sum(len(content) for content in contents.values())
    check_target(target, overwrite=overwrite)
    try:
        with _new_parents(target.parent):
            recover_folder(target)
            remove_orphans(target.parent)
            check_space(target.parent, size, target)
            _write(target, contents)
    except OSError as error:
        raise explain(error, target, size) from error
    return target


def check_target(target: str | Path, *, overwrite: bool = False) -> None:
    """Refuses a target that :func:`write_folder` could not write, before hours of work for it."""
    target = Path(target)
    try:
        found = _look(target)
        if found is not None and not stat.S_ISDIR(found.st_mode):
            what = "a link" if stat.S_ISLNK(found.st_mode) else "a file"
            raise UsageError(f"cannot write the folder {target}: {what} is there. Choose another.")
        if found is not None and any(target.iterdir()):
            _check_replaceable(target, overwrite)
        _check_writable(target)
    except OSError as error:
        raise explain(error, target) from error


def _contents(files: Mapping[str, Any], kind: str, header: dict[str, Any]) -> dict[str, bytes]:
    """Every file's bytes, the manifest's last, since it vouches for the others."""
    if kind not in KINDS:
        raise UsageError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    check_names(files)
    contents = {name: _encode(name, value) for name, value in files.items()}
    versions = {"ansatz": ansatz.__version__, "torch": str(torch.__version__)}
    entries = {name: FileEntry.of(content) for name, content in contents.items()}
    contents[MANIFEST] = encode_manifest(Manifest(FORMAT, kind, versions, header, entries))
    return contents


def _encode(name: str, value: Any) -> bytes:
    try:
        if isinstance(value, bytes):
            return value
        if name.endswith(".safetensors"):
            return encode_tensors(value)
        if name.endswith(".json"):
            return encode_json(value)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None
    raise UsageError(f"{name}: expected bytes, got {type(value).__name__}")


def _look(path: Path) -> os.stat_result | None:
    """What is at a path itself, no link followed; a path that cannot be is an error."""
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None
    except ValueError:
        raise UsageError(f"cannot write {str(path)!r}: a path cannot hold a NUL") from None


def _check_replaceable(target: Path, overwrite: bool) -> None:
    if not overwrite:
        raise UsageError(f"{target} exists. Choose another name, or --overwrite to replace it.")
    if not (target / MANIFEST).is_file():
        raise UsageError(
            f"{target} holds no {MANIFEST}: not ours to overwrite. Choose another name."
        )


def _check_writable(target: Path) -> None:
    nearest = next(parent for parent in Path(os.path.abspath(target)).parents if _look(parent))
    os.stat(nearest)  # a link that leads nowhere or round in a loop
    if not nearest.is_dir():
        raise UsageError(f"cannot write {target}: {nearest} is not a folder.")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise ResourceError(
            f"cannot write {target}: {nearest} is read-only. Choose a folder that you may write to."
        )


@contextlib.contextmanager
def _new_parents(parent: Path) -> Iterator[None]:
    """Makes the folders above the target, and takes them away again if the writing fails."""
    missing = [folder for folder in (parent, *parent.parents) if not os.path.lexists(folder)]
    try:
        if missing:
            parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for folder in missing:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


def _write(target: Path, contents: dict[str, bytes]) -> None:
    temporary, aside = target.parent / new_name(), new_aside(target)
    renaming = False
    try:
        os.mkdir(temporary)
        for name, content in contents.items():
            write_bytes(temporary / name, content)
        sync_folder(temporary)
        renaming = True
        if os.path.lexists(target):
            os.rename(target, aside)
        os.rename(temporary, target)
        sync_folder(target.parent)
    except BaseException:
        # What fails here too is left to recover_folder and remove_orphans.
        with contextlib.suppress(OSError):
            if renaming:
                _undo(target, temporary, aside)
        with contextlib.suppress(OSError):
            remove(temporary)
        raise
    finally:
        forget(temporary.name)
    for old in asides(target):
        # The new folder has its name: what cannot be removed now, the next writer removes.
        with contextlib.suppress(OSError):
            remove_folder(old)


def _undo(target: Path, temporary: Path, aside: Path) -> None:
    """Back to what was there before; read off the disk, since any call may have failed."""
    if not os.path.lexists(temporary):
        os.rename(target, temporary)
    if os.path.lexists(aside):
        os.rename(aside, target)
