"""A text file in chunks that end where a record ends, whatever its size, packing and encoding."""

import codecs
import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from ansatz.data.encoding import _MARKS
from ansatz.data.files import _GZIP_MAGIC, _MAX_RATIO
from ansatz.data.row_lengths import _outside_quotes
from ansatz.errors import DataError

CHUNK_BYTES = 4 * 2**20  # some 20,000 rows of a usual table
_LONGEST = 64 * 2**20  # of one record; beyond, a double quote was never closed


class Chunk(NamedTuple):
    r"""Whole records of a text, and how many lines stand before them."""

    text: bytes  # UTF-8 with \n at the line ends
    lines_before: int


def chunks(
    path: Path,
    origin: str,
    *,
    encoding: str | None = None,
    delimiter: str = ",",
    notes: list[str] | None = None,
    size: int = CHUNK_BYTES,
) -> Iterator[Chunk]:
    r"""The text of a file, gzipped or not, cut at record ends; a quoted line end is none.

    Args:
        path: the file.
        origin: its name, for errors.
        encoding: any codec that Python knows; None goes by the byte-order mark, then UTF-8, then
            cp1252, as the reader of whole files does.
        delimiter: decides where a double quote opens a cell.
        notes: takes what was assumed.
        size: bytes per chunk, about.
    """
    rest, lines = b"", 0
    for text in _texts(path, origin, encoding, notes if notes is not None else [], size):
        rest += text
        while len(rest) >= size:
            end = _last_end(rest, delimiter)
            if end == 0:
                if len(rest) > _LONGEST:
                    raise DataError(
                        f"{origin}, line {lines + 1}: a record of more than {_LONGEST:,} bytes. "
                        "A double quote may be opened and never closed."
                    )
                break
            yield Chunk(rest[:end], lines)
            lines += rest.count(b"\n", 0, end)
            rest = rest[end:]
    if rest:
        yield Chunk(rest, lines)


def _texts(
    path: Path, origin: str, encoding: str | None, notes: list[str], size: int
) -> Iterator[bytes]:
    r"""UTF-8 with ``\n`` at the line ends, in chunks that may end anywhere."""
    chunks = _chunks(path, size)
    first = next(chunks, b"")
    codec, skip = _codec(first, origin, encoding, notes)
    decoder = _Decoder(origin, codec, guess=encoding is None, notes=notes)
    text = decoder.decode(first[skip:])
    for chunk in chunks:
        yield text
        text = decoder.decode(chunk)
    yield text + decoder.decode(b"", final=True)


class _Decoder:
    """Bytes of any encoding as UTF-8; knows the line for its errors."""

    def __init__(self, origin: str, codec: str, *, guess: bool, notes: list[str]) -> None:
        self.origin, self.codec, self.guess, self.notes = origin, codec, guess, notes
        self.line, self.ascii, self.held = 1, True, b""
        self.incremental = codecs.getincrementaldecoder(codec)()

    def decode(self, raw: bytes, final: bool = False) -> bytes:
        before = self.incremental.getstate()
        try:
            text = self.incremental.decode(raw, final).encode("utf-8", errors="replace")
        except UnicodeDecodeError as error:
            # All before was plain ASCII, which every guess reads alike.
            if not (self.guess and self.ascii and self.codec == "utf-8"):
                line = self.line + raw.count(b"\n", 0, max(0, error.start))
                raise DataError(
                    f"{self.origin}, line {line}: byte {error.object[error.start]:#04x} is not "
                    f"{self.codec}. Give its true encoding: --encoding NAME."
                ) from None
            return self._guess_again(before[0] + raw, final)
        self.ascii = self.ascii and text.isascii()
        return self._plain_ends(text, final)

    def _guess_again(self, raw: bytes, final: bool) -> bytes:
        self.notes.append(
            f"{self.origin}: not UTF-8, read as Latin-1 (cp1252). If letters look wrong: "
            "--encoding NAME."
        )
        self.codec = "cp1252"
        # Five bytes are undefined in cp1252: for these Latin-1 steps in.
        codecs.register_error("ansatz-latin", _latin)
        self.incremental = codecs.getincrementaldecoder("cp1252")("ansatz-latin")
        return self._plain_ends(self.incremental.decode(raw, final).encode(), final)

    def _plain_ends(self, text: bytes, final: bool) -> bytes:
        text, self.held = self.held + text, b""
        if b"\0" in text:
            line = self.line + text.count(b"\n", 0, text.index(b"\0"))
            raise DataError(
                f"{self.origin}, line {line}: contains a NUL byte, so it is not a text table, or "
                "it is UTF-16 without a mark (then: --encoding utf-16-le)."
            )
        if b"\r" in text:
            if text.endswith(b"\r") and not final:  # its \n may be in the next chunk
                text, self.held = text[:-1], b"\r"
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        self.line += text.count(b"\n")
        return text


def _latin(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("latin-1"), error.end


def _codec(first: bytes, origin: str, encoding: str | None, notes: list[str]) -> tuple[str, int]:
    """The codec, and the length of the mark to skip."""
    if encoding is not None:
        try:
            codecs.lookup(encoding)
        except LookupError:
            raise DataError(f"{origin}: unknown encoding '{encoding}'.") from None
        mark = codecs.BOM_UTF8 if first.startswith(codecs.BOM_UTF8) else b""
        return encoding, len(mark)
    for mark, codec in _MARKS:
        if first.startswith(mark):
            if codec != "utf-8":
                notes.append(f"{origin} is encoded in {codec}.")
            return codec, len(mark)
    return "utf-8", 0


def _chunks(path: Path, size: int) -> Iterator[bytes]:
    """The unpacked bytes; a file that unpacks to 200 times its size is refused, as in memory."""
    packed, unpacked = path.stat().st_size, 0
    try:
        with path.open("rb") as raw:
            is_packed = raw.read(2) == _GZIP_MAGIC
            raw.seek(0)
            file: IO[bytes] = gzip.open(raw) if is_packed else raw  # type: ignore[assignment]
            while chunk := file.read(size):
                unpacked += len(chunk)
                if is_packed and unpacked > max(16 * 2**20, _MAX_RATIO * packed):
                    raise DataError(
                        f"{path} unpacks to more than {unpacked:,} bytes from {packed:,}, which "
                        "is refused. If you trust it, unpack it first (gunzip)."
                    )
                yield chunk
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is a damaged gzip file: {error}. Fetch it again.") from None
    except DataError:
        raise
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None


def _last_end(text: bytes, delimiter: str) -> int:
    """Where the last whole record ends; 0 if none does."""
    end = text.rfind(b"\n") + 1
    if end == 0 or b'"' not in text:
        return end
    codes = np.frombuffer(text, np.uint8)
    outside = _outside_quotes(codes, delimiter)
    if outside is not None:
        ends = np.flatnonzero((codes == ord("\n")) & outside)
        return int(ends[-1]) + 1 if len(ends) else 0
    spans = _quoted_spans(text, delimiter)
    while spans and end > 0:
        begin, stop = spans.pop()
        if stop < end:  # it is closed before the line end
            return end
        if begin < end:
            end = text.rfind(b"\n", 0, begin) + 1
    return end


def _quoted_spans(text: bytes, delimiter: str) -> list[tuple[int, int]]:
    """Begin and end of each quoted cell, for texts with quotes within cells: slow and sure.

    One that is still open ends beyond the text.
    """
    marks = rb" \t" if delimiter == "whitespace" else re.escape(delimiter.encode())
    cell = re.compile(rb"(?:\A|(?<=[\n" + marks + rb'])) *"(?:[^"]|"")*("?)')
    return [
        (found.start(), found.end() if found[1] else len(text) + 1) for found in cell.finditer(text)
    ]
