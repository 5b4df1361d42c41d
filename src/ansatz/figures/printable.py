"""Text from data as it may be shown: on one line, without characters that steer, shortened."""

import unicodedata

# Controls, invisible formatters (bidirectional overrides among them), lone surrogates, private
# characters, separators of lines.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
LIMIT = 60


def printable(text: object, limit: int | None = None) -> str:
    r"""``text`` on one line, each character that could steer its reader spelled out.

    Args:
        text: anything; its ``str`` is taken.
        limit: characters to keep; the middle of a longer text is left out.
    """
    given = str(text)
    if limit is not None and len(given) > 4 * limit:  # a name of megabytes is not walked through
        given = given[: 2 * limit] + "…" + given[-2 * limit :]
    safe = "".join(_spelled(character) for character in given)
    if limit is None or len(safe) <= limit:
        return safe
    front = limit // 2
    return safe[:front] + "…" + safe[len(safe) - (limit - 1 - front) :]


def _spelled(character: str) -> str:
    if character in "\t":
        return " "
    if unicodedata.category(character) not in _UNSAFE:
        return character
    return character.encode("unicode_escape").decode("ascii")
