"""What a saved folder says it holds: sizes and SHA-256 sums, itself protected by one."""

import hashlib
import re
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ansatz.errors import ModelError, UsageError
from ansatz.storage.json_file import encode_json, read_json, shorten

FORMAT = 1
MANIFEST = "manifest.json"
KINDS = ("model", "checkpoint")

# format n -> the function that turns its manifest (as parsed) into that of format n + 1.
MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}

_LIMIT_BYTES = 2**24
# One plain word on every system: no separator, no leading dot, no drive, nothing Windows reserves.
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}(?<!\.)")
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", flags=re.IGNORECASE)


class FileEntry(NamedTuple):
    """Size and SHA-256 sum of one file.

    Example:
        >>> from ansatz.storage import FileEntry
        >>> FileEntry.of(b"").sha256[:8]
        'e3b0c442'
    """

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

    Example:
        >>> from ansatz.storage import Manifest
        >>> Manifest(1, "model", {"ansatz": "0.1.0", "torch": "2.13.0"}, {}, {}).kind
        'model'
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
    """The manifest's file: canonical JSON with the SHA-256 sum of itself without that sum.

    Example:
        >>> from ansatz.storage.manifest import Manifest, decode_manifest, encode_manifest
        >>> m = Manifest(1, "model", {"ansatz": "0.1.0"}, {}, {})
        >>> decode_manifest(encode_manifest(m)) == m
        True
    """
    row = manifest._asdict()
    row["files"] = {name: entry._asdict() for name, entry in manifest.files.items()}
    row["sha256"] = hashlib.sha256(encode_json(row)).hexdigest()
    return encode_json(row)


def decode_manifest(content: bytes) -> Manifest:
    """The manifest in some bytes from anyone; what is wrong with it is a :class:`ModelError`.

    Example:
        >>> from ansatz.storage.manifest import decode_manifest
        >>> decode_manifest(b"{}")
        Traceback (most recent call last):
        ...
        ansatz.errors.ModelError: manifest.json: its format must be a whole number >= 1, got None
    """
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
    """Refuses file names that are not one plain word, or that differ by case only.

    Example:
        >>> from ansatz.storage.manifest import check_names
        >>> check_names({"../x.json": b""})
        Traceback (most recent call last):
        ...
        ansatz.errors.UsageError: manifest.json: '../x.json' is not a plain file name
    """
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
