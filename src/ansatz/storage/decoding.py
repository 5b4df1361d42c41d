"""Turns any failure of a decoder into one line that names the file.

Decoders of bytes that a stranger wrote (Arrow, deflate, libtiff, a model's own record) raise
anything: UnicodeDecodeError, KeyError, OverflowError, a RuntimeError of torch. Who reads a file
puts :func:`decoding` around the call, and nothing else.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError

from ansatz.errors import AnsatzError, DataError, ModelError

_LONGEST = 200  # characters of a decoder's own words


@contextmanager
def decoding(
    place: object, what: str = "", *, to: type[DataError] | type[ModelError] = DataError
) -> Iterator[None]:
    """Raises whatever fails inside as one line: PLACE is not a readable WHAT, and why.

    Our own errors pass, and gain the place if they do not name it. Inside of a model, an option or
    a value that a member refuses is the model's fault, not the user's.

    Args:
        place: the file, as the user calls it.
        what: what it should be, like ``"Parquet file"``; empty says ``PLACE: why``.
        to: the error to raise.
    """
    try:
        yield
    except AnsatzError as error:
        ours = isinstance(error, to) or (to is ModelError and isinstance(error, ValueError))
        if not ours or (isinstance(error, to) and str(place) in str(error)):
            raise
        raise to(f"{place}: {error}") from None
    except MemoryError:
        raise
    except Exception as error:
        before = f"{place} is not a readable {what}" if what else str(place)
        raise to(f"{before}: {reason(error)}.") from None


def reason(error: BaseException) -> str:
    """What an exception says, on one line of bounded length and without a full stop."""
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        said = f"{where}: {first['msg']}, got {str(first['input'])[:60]}"
        if first["type"] == "value_error":  # of several fields: the input is all of them
            said = f"{where}{': ' if where else ''}{first['msg'].removeprefix('Value error, ')}"
    elif isinstance(error, KeyError):
        said = f"it lacks {error}"
    elif isinstance(error, OSError) and error.strerror:
        said = error.strerror
    else:
        said = str(error) or type(error).__name__
    return " ".join(said.split()).rstrip(".")[:_LONGEST]
