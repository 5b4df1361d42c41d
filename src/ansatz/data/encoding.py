"""Bytes of a text file, whatever its encoding, as UTF-8 with plain line ends."""

import codecs

from ansatz.errors import DataError

_MARKS = [  # the longer mark first: UTF-32's begins with UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF8, "utf-8"),
]


def to_utf8(raw: bytes, origin: str, encoding: str | None = None) -> tuple[bytes, list[str]]:
    r"""The text in UTF-8 with ``\n`` at the line ends, and notes on what was assumed.

    Without ``encoding``: the byte-order mark decides; else UTF-8; else Latin-1 in the form that
    Windows writes (cp1252), which is a guess and is noted.

    Args:
        raw: the file's bytes.
        origin: the file's name, for errors.
        encoding: any codec that Python knows.
    """
    notes: list[str] = []
    if encoding is not None:
        text = _recode(raw, origin, encoding)
    else:
        text = _detect(raw, origin, notes)
    if b"\0" in text:
        at = text.index(b"\0")
        line = text.count(b"\n", 0, at) + 1
        raise DataError(
            f"{origin}, line {line}: contains a NUL byte, so it is not a text table, or it is "
            "UTF-16 without a mark (then: --encoding utf-16-le)."
        )
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return text, notes


def _detect(raw: bytes, origin: str, notes: list[str]) -> bytes:
    for mark, codec in _MARKS:
        if raw.startswith(mark):
            if codec != "utf-8":
                notes.append(f"{origin} is encoded in {codec}.")
            return _recode(raw[len(mark) :], origin, codec)
    if raw.isascii():
        return raw
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        notes.append(
            f"{origin}, line {line}: not UTF-8, read as Latin-1 (cp1252). "
            "If letters look wrong: --encoding NAME."
        )
        return _latin(raw)
    return raw


def _latin(raw: bytes) -> bytes:
    try:
        return raw.decode("cp1252").encode()
    except UnicodeDecodeError:  # cp1252 leaves five bytes undefined, Latin-1 none
        return raw.decode("latin-1").encode()


def _recode(raw: bytes, origin: str, encoding: str) -> bytes:
    try:
        text = raw.decode(encoding)
    except LookupError:
        raise DataError(f"{origin}: unknown encoding '{encoding}'.") from None
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{origin}, line {line}: byte {raw[error.start]:#04x} is not {encoding}. "
            "Give its true encoding: --encoding NAME."
        ) from None
    except UnicodeError as error:  # utf-16 without a byte-order mark
        raise DataError(f"{origin}: not {encoding}: {error}.") from None
    # A single half of a surrogate pair can be decoded but not written.
    return text.removeprefix("\ufeff").encode("utf-8", errors="replace")
