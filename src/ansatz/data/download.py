"""Files of a data set: a local file first, then the cache, then the network, always verified."""

import hashlib
import os
import sys
import tempfile
import urllib.error
import urllib.request
import zlib
from pathlib import Path

from ansatz.data.bundles import Bundle
from ansatz.data.files import read_bytes
from ansatz.errors import DataError, ResourceError

_TIMEOUT = 60  # seconds without a byte


def find_bundle(name: str, bundle: Bundle) -> list[Path]:
    """The files of a bundle, in order.

    They are looked for in ``$ANSATZ_DATA``, then in :func:`cache_folder`, and then downloaded into
    the latter. Contents whose SHA-256 sum is not the known one are an error, wherever found.
    """
    for root in _roots():
        found = [_existing(root / bundle.folder / file) for file in bundle.files]
        paths = [path for path in found if path is not None]
        if len(paths) == len(found):
            contents = [_content(path, as_is=path.name in bundle.files) for path in paths]
            _verify(name, bundle, contents, str(root / bundle.folder))
            return paths
    return _download_all(name, bundle)


def cache_folder() -> Path | None:
    """The folder of downloads, by the custom of the system; None for a user without a home."""
    given = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    if given and Path(given).is_absolute():
        return Path(given) / "ansatz"
    try:
        home = Path.home()
    except RuntimeError:
        return None
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "ansatz"


def _roots() -> list[Path]:
    local = os.environ.get("ANSATZ_DATA")
    roots = [Path(local)] if local else []
    cache = cache_folder()
    return roots if cache is None else [*roots, cache]


def _existing(path: Path) -> Path | None:
    packed = path.with_name(path.name + ".gz")
    return next((p for p in (path, packed) if p.is_file()), None)


def _content(path: Path, *, as_is: bool) -> bytes:
    """What the sum of a bundle is of: an archive that is published as such is not unpacked."""
    return path.read_bytes() if as_is and path.suffix == ".gz" else read_bytes(path)


def _verify(name: str, bundle: Bundle, contents: list[bytes], where: str) -> None:
    digest = hashlib.sha256()
    for content in contents:
        digest.update(content)
    if digest.hexdigest() != bundle.sha256:
        raise DataError(
            f"data set '{name}' in {where} is not the published one: its SHA-256 is "
            f"{digest.hexdigest()[:16]}..., expected {bundle.sha256[:16]}... Remove that copy."
        )


def _download_all(name: str, bundle: Bundle) -> list[Path]:
    where = f"$ANSATZ_DATA/{bundle.folder}/"
    if not bundle.address:
        raise DataError(
            f"data set '{name}' is not here and no address for it is known. Put "
            f"{', '.join(bundle.files[:3])} (SHA-256 {bundle.sha256}) into {where}"
        )
    cache = cache_folder()
    if cache is None:
        raise ResourceError(f"no home folder to keep '{name}' in. Set ANSATZ_DATA to a folder.")
    contents, left = [], bundle.size
    for file in bundle.files:
        if bundle.packed:
            packed = _download(name, f"{bundle.address}{file}.gz", left, where)
            contents.append(_unpacked(name, packed, left))
        else:
            contents.append(_download(name, bundle.address + file, left, where))
        left -= len(contents[-1])
    _verify(name, bundle, contents, bundle.address)
    paths = [cache / bundle.folder / file for file in bundle.files]
    for path, content in zip(paths, contents, strict=True):
        _write(path, content)
    return paths


def _download(name: str, address: str, limit: int, where: str) -> bytes:
    assert address.startswith("https://"), address
    try:
        with urllib.request.urlopen(address, timeout=_TIMEOUT) as reply:
            if not reply.geturl().startswith("https://"):
                raise DataError(f"data set '{name}': {address} leads to an address without https.")
            content: bytes = reply.read(limit + 1)
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error)
        raise ResourceError(
            f"data set '{name}' could not be downloaded from {address} ({reason}). "
            f"Put the file into {where} or try again."
        ) from None
    if len(content) > limit:
        raise DataError(f"data set '{name}': {address} is longer than the published file.")
    return content


def _unpacked(name: str, packed: bytes, limit: int) -> bytes:
    """Unpacks gzip, at most ``limit`` bytes."""
    reader = zlib.decompressobj(wbits=31)
    try:
        content = reader.decompress(packed, limit + 1)
    except zlib.error as error:
        raise DataError(f"data set '{name}': damaged download ({error}). Try again.") from None
    if len(content) > limit or not reader.eof:
        raise DataError(f"data set '{name}': the download unpacks to another length than it had.")
    return content


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all: another process may be reading."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise ResourceError(f"cannot write {path}: {error.strerror or error}.") from None
