"""Numbers as a report prints them: all of them are formatted here."""

import math
import unicodedata


def number(value: object, digits: int = 4) -> str:
    """Rounds a number to significant digits; a dash where it is undefined.

    Whole numbers keep all their digits, with commas from 10,000 on. A true minus sign is printed.
    """
    if value is None:
        return "–"
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        return str(value)
    if isinstance(value, int) or getattr(getattr(value, "dtype", None), "kind", "?") in "iu":
        return _whole(int(value)).replace("-", "−")  # type: ignore[call-overload]
    found = float(value)
    if math.isnan(found):
        return "–"
    if math.isinf(found):
        return "∞" if found > 0 else "−∞"
    if 10 ** (digits - 1) <= abs(found) < 1e9:
        text = _whole(round(found))
    else:
        text = f"{found:.{digits}g}"
    return text.replace("-", "−")


def _whole(value: int) -> str:
    return f"{value:,}" if abs(value) >= 10_000 else str(value)


def with_error(value: float | None, error: float | None) -> str:
    """``value ± error``: the error to two digits, the value to the same place."""
    if value is None or error is None or not (math.isfinite(value) and math.isfinite(error)):
        return number(value)
    if error <= 0:
        return f"{number(value)} ± 0"
    place = 1 - math.floor(math.log10(error))
    if place > 8 or place < -8:
        return f"{number(value)} ± {number(error, 2)}"
    rounded, spread = round(value, place) + 0.0, round(error, place)  # -0.0 + 0.0 is 0.0
    shown = max(place, 0)
    return f"{rounded:.{shown}f} ± {spread:.{shown}f}".replace("-", "−")


def percent(share: float | None, digits: int = 1) -> str:
    """A share in percent."""
    if share is None or not math.isfinite(share):
        return "–"
    text = f"{100 * share:.{digits}f}".rstrip("0").rstrip(".") if digits else f"{100 * share:.0f}"
    return f"{text or '0'} %".replace("-", "−")


# Controls, invisible formatters (bidirectional overrides among them), lone surrogates, private
# characters, separators of lines.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
LIMIT = 60


def printable(text: object, limit: int | None = None) -> str:
    r"""``text`` on one line, each character that could steer its reader spelled out."""
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
