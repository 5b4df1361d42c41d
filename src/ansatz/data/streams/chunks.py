"""Text files in chunks that end where a record ends, and their rows."""

import codecs
import gzip
import re
import zlib
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np

from ansatz.data.csv import Dialect, _outside_quotes, parse_csv
from ansatz.data.files import _GZIP_MAGIC, _MAX_RATIO
from ansatz.data.header import _MARKS, read_header, sniff_delimiter
from ansatz.data.streams.kinds import Kinds
from ansatz.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

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
    r"""The text of a file, gzipped or not, cut at record ends; a quoted line end is none."""
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
    chunks = _byte_chunks(path, size)
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


def _byte_chunks(path: Path, size: int) -> Iterator[bytes]:
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
    """Finds the end of the last whole record; 0 if none ends."""
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


_COUNTED = re.compile(r"(column '.*': )(\d+)( cells .*)", re.DOTALL)


def delimited_frames(
    path: Path,
    origin: str,
    dialect: Dialect,
    kinds: Kinds,
    *,
    notes: list[str] | None = None,
    block_bytes: int = CHUNK_BYTES,
) -> "Iterator[pd.DataFrame]":
    r"""The rows of a file in frames whose index counts the rows of the whole file.

    Each chunk is read by :func:`~ansatz.data.csv.parse_csv`, so that cells mean what they mean in
    a file that is read at once. What a column is, the first rows with a value in it decide: a word
    that comes later among numbers is an error with its row.
    """
    said: list[str] = []
    row = 0
    names: list[str] | None = None
    mark = dialect.delimiter or _sniff(path, origin, dialect)
    parts = chunks(
        path, origin, encoding=dialect.encoding, delimiter=mark, notes=said, size=block_bytes
    )
    plain = replace(dialect, encoding=None, allow_empty=True, delimiter=mark)
    for text, lines in parts:
        if names is None:
            blank = _without_comments(text, dialect)
            names = read_header(
                blank, origin, mark, header=dialect.header, names=dialect.names
            ).names
            fixed, again = plain, 0
        else:
            # A header of its own: a first row of another width is then an error with its line.
            head = (" " if mark == "whitespace" else mark).join("c" for _ in names)
            text, again = head.encode() + b"\n" + text, 1
            fixed = replace(plain, header=True, names=names)
        if not _without_comments(text, dialect).strip():
            continue
        fixed = replace(fixed, text={*dialect.text, *kinds.text})
        found = parse_csv(text, origin, fixed, lines_before=lines - again, rows_before=row)
        frame = found.frame
        frame.index = range(row, row + len(frame))
        said += found.notes
        kinds.observe(frame, strict=dialect.strict)
        row += len(frame)
        if len(frame):
            yield frame
    if names is None:
        raise DataError(f"{origin} is empty. Expected a table with one row per line.")
    if notes is not None:
        notes += merge_notes(said)


def merge_notes(notes: Collection[str]) -> list[str]:
    """Each sentence once; counts of cells of one column are added up."""
    counts: dict[tuple[str, str], int] = {}
    for note in notes:
        match = _COUNTED.fullmatch(note)
        key = (match[1], match[3]) if match else (note, "")
        counts[key] = counts.get(key, 0) + (int(match[2]) if match else 0)
    return [f"{head}{count}{tail}" if tail else head for (head, tail), count in counts.items()]


def _sniff(path: Path, origin: str, dialect: Dialect) -> str:
    """The delimiter, by the first rows."""
    first = next(chunks(path, origin, encoding=dialect.encoding, size=2**16), None)
    text = b"" if first is None else _without_comments(first.text, dialect)
    if not text.lstrip():
        raise DataError(f"{origin} is empty. Expected a table with one row per line.")
    mark = sniff_delimiter(text)
    if mark == dialect.decimal:
        raise DataError(f"{origin} seems to be cut by '{mark}', which is the decimal mark.")
    return mark


def _without_comments(text: bytes, dialect: Dialect) -> bytes:
    if not dialect.comment:
        return text
    return re.sub(rb"(?m)^" + re.escape(dialect.comment.encode()) + rb"[^\n]*", b"", text)
