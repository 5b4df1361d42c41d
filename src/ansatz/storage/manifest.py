"""What a saved folder says it holds: sizes and SHA-256 sums, itself protected by one."""

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ansatz.errors import ModelError, UsageError
from ansatz.storage.disk import read_bytes, recover_folder
from ansatz.storage.json_file import encode_json, read_json, shorten

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
    """The verified table of contents of a saved model or checkpoint.

    Args:
        format: version of the layout, an integer.
        kind: ``"model"`` or ``"checkpoint"``.
        versions: of the packages that wrote it, ``{"ansatz": ..., "torch": ...}``.
        header: what the writer had to say (the step, fingerprints); plain JSON.
        files: name -> size and sum.
    """

    format: int
    kind: str
    versions: dict[str, str]
    header: dict[str, Any]
    files: dict[str, FileEntry]


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
    """The manifest's file: canonical JSON with the SHA-256 sum of itself without that sum."""
    row = manifest._asdict()
    row["files"] = {name: entry._asdict() for name, entry in manifest.files.items()}
    row["sha256"] = hashlib.sha256(encode_json(row)).hexdigest()
    return encode_json(row)


def decode_manifest(content: bytes) -> Manifest:
    """The manifest in some bytes from anyone; what is wrong with it is a :class:`ModelError`."""
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
    import ansatz

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
    """The manifest of a folder, after every listed file has been read and its sum compared.

    Args:
        path: the folder. One whose replacement was cut short is recovered first.
        kind: what it must be: ``"model"`` or ``"checkpoint"``.
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
