"""Writes and verifies saved folders: files, and a manifest of their sizes and SHA-256 sums."""

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError

import ansatz
from ansatz.errors import ModelError, ResourceError, UsageError
from ansatz.storage.disk import (
    asides,
    check_space,
    explain,
    forget,
    new_aside,
    new_name,
    read_bytes,
    recover_folder,
    remove,
    remove_folder,
    remove_orphans,
    sync_folder,
    write_bytes,
)
from ansatz.storage.json_file import encode_json, read_json, shorten
from ansatz.storage.tensors import encode_tensors

FORMAT = 3
MANIFEST = "manifest.json"
KINDS = ("model", "checkpoint")

# format n -> the function that turns its manifest (as parsed) into that of format n + 1.
MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {
    1: lambda row: {**row, "format": 2},  # ansatz.json changed, which its reader migrates
    2: lambda row: {**row, "format": 3},  # so it did again
}

_LIMIT_BYTES = 2**24
# One plain word on every system: no separator, no leading dot, no drive, nothing Windows reserves.
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}(?<!\.)")
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", flags=re.IGNORECASE)


class FileEntry(NamedTuple):
    """Size and SHA-256 sum of one file."""

    size: int
    sha256: str

    @classmethod
    def of(cls, content: bytes) -> "FileEntry":
        """The entry of some content."""
        return cls(len(content), hashlib.sha256(content).hexdigest())


class Manifest(NamedTuple):
    """The verified table of contents of a saved model or checkpoint."""

    format: int
    kind: str
    versions: dict[str, str]
    header: dict[str, Any]  # of the writer: the step, fingerprints
    files: dict[str, FileEntry]  # by name


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class _FileRow(_Strict):
    size: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class _ManifestRow(_Strict):
    format: int
    kind: Literal["model", "checkpoint"]
    versions: dict[str, str]
    header: dict[str, Any]
    files: dict[str, _FileRow]


def encode_manifest(manifest: Manifest) -> bytes:
    """Encodes a manifest: canonical JSON with the SHA-256 sum of itself without that sum."""
    row = manifest._asdict()
    row["files"] = {name: entry._asdict() for name, entry in manifest.files.items()}
    row["sha256"] = hashlib.sha256(encode_json(row)).hexdigest()
    return encode_json(row)


def decode_manifest(content: bytes) -> Manifest:
    """Decodes a manifest from anyone; what is wrong with it is a :class:`ModelError`."""
    row = read_json(content, limit_bytes=_LIMIT_BYTES, name=MANIFEST)
    if not isinstance(row, dict):
        raise ModelError(f"{MANIFEST}: expected a JSON object")
    _check_format(row)
    checksum = row.pop("sha256", None)
    # The text itself must be the canonical one, so that no damaged byte can hide between tokens.
    whole = encode_json({**row, "sha256": checksum})
    if checksum != hashlib.sha256(encode_json(row)).hexdigest() or content != whole:
        raise ModelError(f"{MANIFEST}: damaged: its content does not match its own SHA-256")
    while row["format"] < FORMAT:
        row = MIGRATIONS[row["format"]](row)
    try:
        valid = _ManifestRow.model_validate(row)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ModelError(f"{MANIFEST}: {shorten(place)}: {first['msg']}") from None
    check_names(valid.files, ModelError)
    files = {name: FileEntry(file.size, file.sha256) for name, file in valid.files.items()}
    return Manifest(valid.format, valid.kind, valid.versions, valid.header, files)


def check_names(
    names: Iterable[str], error: type[ModelError] | type[UsageError] = UsageError
) -> None:
    """Refuses file names that are not one plain word, or that differ by case only."""
    seen: set[str] = set()
    for name in names:
        plain = isinstance(name, str) and _PLAIN.fullmatch(name) and not _RESERVED.fullmatch(name)
        if not plain or name.lower() == MANIFEST:
            raise error(f"{MANIFEST}: {shorten(name)} is not a plain file name")
        if name.lower() in seen:
            raise error(f"{MANIFEST}: {shorten(name)} is listed twice, up to upper and lower case")
        seen.add(name.lower())


def _check_format(row: dict[str, Any]) -> None:
    number = row.get("format")
    if type(number) is not int or number < 1:
        shown = shorten(number)
        raise ModelError(f"{MANIFEST}: its format must be a whole number >= 1, got {shown}")
    if number > FORMAT:
        versions = row.get("versions")
        maker = versions.get("ansatz") if isinstance(versions, dict) else None
        maker = maker if isinstance(maker, str) and re.fullmatch(r"[\w.+-]{1,40}", maker) else "?"
        raise ModelError(
            f"made by ansatz {maker} (format {number}), this is ansatz {ansatz.__version__} "
            f"(format {FORMAT}): upgrade with pip install -U ansatz-learn"
        )


# A folder may hold notes and pictures besides the listed files: they are never read. An unlisted
# file of a kind that *is* read could be mistaken for a part of the model.
_KINDS_READ = (".safetensors", ".json")


def verify_folder(path: str | Path, kind: str) -> Manifest:
    """Reads every listed file of a folder, compares the sums, and returns the manifest."""
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
        header: what else the manifest holds; plain JSON.
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
    """Refuses early a target that :func:`write_folder` could not write."""
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
    """Gives the status of a path itself, no link followed; a path that cannot be is an error."""
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
