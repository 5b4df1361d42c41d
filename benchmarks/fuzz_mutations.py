"""Damages files at random: bytes, text and JSON, each edit drawn from a seeded generator."""

import copy
import json
import re
import struct
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

_NUMBERS = (0, 1, 2, 127, 128, 255, 256, 32767, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1)
_WORDS = (b"NaN", b"-1", b"1e999", b"1e308", b"-1e308", b"9" * 30, b"", b"\0", b"\xff\xfe", b'"')
_EDITS = (1, 1, 1, 2, 3, 6)  # how many at once


def damage_bytes(content: bytes, random: Random) -> bytes:
    """Applies one to six edits; half of them near the beginning, a quarter near the end."""
    made = bytearray(content)
    for _ in range(random.choice(_EDITS)):
        random.choice(_BYTE_EDITS)(made, random)
    return bytes(made)


def _place(made: bytearray, random: Random) -> int:
    where, size = random.random(), len(made)
    if where < 0.5:
        return random.randrange(min(size, 512) + 1)
    if where < 0.75:
        return size - random.randrange(min(size, 512) + 1)
    return random.randrange(size + 1)


def _flip(made: bytearray, random: Random) -> None:
    place = _place(made, random)
    if place < len(made):
        made[place] ^= 1 << random.randrange(8)


def _set(made: bytearray, random: Random) -> None:
    place = _place(made, random)
    made[place : place + 1] = bytes([random.randrange(256)])


def _number(made: bytearray, random: Random) -> None:
    place, kind = _place(made, random), random.choice("<>") + random.choice("BHIQ")
    most = 256 ** struct.calcsize(kind) - 1
    word = struct.pack(kind, min(random.choice(_NUMBERS), most))
    made[place : place + len(word)] = word


def _delete(made: bytearray, random: Random) -> None:
    place = _place(made, random)
    del made[place : place + random.choice((1, 2, 4, 16, 256))]


def _insert(made: bytearray, random: Random) -> None:
    place = _place(made, random)
    made[place:place] = random.randbytes(random.choice((1, 2, 4, 16)))


def _copy(made: bytearray, random: Random) -> None:
    begin, place = _place(made, random), _place(made, random)
    made[place:place] = made[begin : begin + random.choice((1, 4, 16, 64, 256))]


def _zero(made: bytearray, random: Random) -> None:
    place, size = _place(made, random), random.choice((1, 4, 16, 64))
    made[place : place + size] = bytes(len(made[place : place + size]))


def _truncate(made: bytearray, random: Random) -> None:
    if random.random() < 0.3:  # rarely: nothing that follows is read then
        del made[_place(made, random) :]


def _word(made: bytearray, random: Random) -> None:
    """Replaces a number that is spelled in digits, or a word."""
    found = [m.span() for m in re.finditer(rb"[0-9.]+|[A-Za-z_]+", bytes(made[:20_000]))]
    if found:
        begin, end = random.choice(found)
        made[begin:end] = random.choice(_WORDS)


_BYTE_EDITS: tuple[Callable[[bytearray, Random], None], ...] = (
    *(_flip, _set, _number, _delete, _insert, _copy, _zero, _truncate, _word),
)

_CELLS = (
    *("", "NA", "nan", "inf", "-inf", "1e309", "-1e308", "1e308", "9" * 25, "-1", "0", "0.5"),
    *("x", "=1+1", "\u202e", "\x00", "1,5", '"', '"a', "2021-02-30", "99999-01-01", "true"),
    *("0x10", "1_000", "64.5%", "$3.20", "31.12.2021", "é" * 300, "\ud7ff", " ", "\t"),
)


def damage_table(text: str, random: Random) -> str:
    """Edits cells, rows and the header of delimited text."""
    rows = [line.split(",") for line in text.splitlines()]
    for _ in range(random.choice(_EDITS)):
        row = random.choice(rows) if random.random() < 0.7 else rows[0]
        kind = random.randrange(8)
        if kind <= 2 and row:
            row[random.randrange(len(row))] = random.choice(_CELLS)
        elif kind == 3 and row:
            row.pop(random.randrange(len(row)))
        elif kind == 4:
            row.insert(random.randrange(len(row) + 1), random.choice(_CELLS))
        elif kind == 5 and len(rows) > 1:
            rows.pop(random.randrange(len(rows)))
        elif kind == 6 and rows[0]:
            column, cell = random.randrange(len(rows[0])), random.choice(_CELLS)
            for other in rows[1:]:
                other[column : column + 1] = [cell]
        else:
            rows.append(list(row))
        if not rows:
            return ""
    mark = random.choice(",,,,;\t|")
    end = random.choice(("\n", "\n", "\r\n", "\r"))
    return end.join(mark.join(row) for row in rows) + end * random.randrange(3)


_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 3, 0.5, -0.5, 1e-320, 1e308, -1e308, 2**31, 2**63, -(2**70)),
    *("", "x", "y", "a", "../x", "/etc/passwd", "nan", "os.system", "é" * 100, "\u202e", "1"),
    *([], {}, [0], [[]], [None], ["x"], {"x": 1}, {"name": "x"}, [1e308], [-1], list(range(50))),
)


def damage_json(value: Any, random: Random) -> Any:
    """Applies one to three structured edits to a JSON value: types, keys, references, numbers."""
    made = copy.deepcopy(value)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        places = list(_places(made))
        if not places:
            break
        # As likely a rare place near the root as one of a long list.
        depth = random.choice(sorted({len(place) for place in places}))
        _edit(made, random.choice([p for p in places if len(p) == depth]), places, random)
    return made


def _places(value: Any, place: tuple[Any, ...] = ()) -> "list[tuple[Any, ...]]":
    found: list[tuple[Any, ...]] = [place] if place else []
    keys = value if isinstance(value, dict) else range(len(value) if type(value) is list else 0)
    for key in keys:
        found += _places(value[key], (*place, key))
    return found


def _parent(made: Any, place: tuple[Any, ...]) -> Any:
    for key in place[:-1]:
        made = made[key]
    return made


def _edit(made: Any, place: tuple[Any, ...], places: list[tuple[Any, ...]], random: Random) -> None:
    parent, key = _parent(made, place), place[-1]
    old, kind = parent[key], random.randrange(9)
    if kind == 0:
        del parent[key]
    elif kind == 1 and isinstance(parent, dict):
        parent[random.choice(("x", "name", "", "options", "state", f"{key}2"))] = old
    elif kind == 1:
        parent.insert(key, copy.deepcopy(old))
    elif kind == 2:  # a value from elsewhere: a wrong reference, or two strings swapped
        other = random.choice([p for p in places if p[: len(place)] != place] or [place])
        alike = [p for p in places if type(_parent(made, p)[p[-1]]) is type(old)]
        other = random.choice([p for p in alike if p != place] or [other])
        there = _parent(made, other)
        if other[: len(place)] != place and place[: len(other)] != other:
            parent[key], there[other[-1]] = there[other[-1]], old
    elif kind == 3 and isinstance(old, int | float) and not isinstance(old, bool):
        parent[key] = random.choice((-old, old + 1, old * 10**6, old - 1, old / 2, str(old)))
    elif kind == 3 and isinstance(old, str):
        parent[key] = random.choice(
            (old + "x", old[:-1], old.upper(), [old], {old: old}, " " + old)
        )
    elif kind == 3 and isinstance(old, list):
        parent[key] = random.choice((old[:-1], old + old, old[::-1], [old], dict(enumerate(old))))
    elif kind == 4 and isinstance(parent, dict):
        parent[f"{key}x"] = parent.pop(key)
    else:
        parent[key] = copy.deepcopy(random.choice(_VALUES))


def encode_damaged(value: Any, random: Random) -> bytes:
    """Encodes a value as JSON; at times with a constant that JSON does not have."""
    text = json.dumps(value, sort_keys=True, indent=1)
    if random.random() < 0.05:
        constant = random.choice(("NaN", "Infinity", "-Infinity", "1e999", "9" * 5000))
        text = re.sub(r"(?<=: )-?[0-9.e+-]+", constant, text, count=random.randint(1, 3))
    return text.encode(errors="surrogatepass")


def damage_png(content: bytes, random: Random) -> bytes:
    """Edits chunks of a PNG file and repairs their sums, so that the decoder reads them."""
    chunks, place = [], 8
    while place + 12 <= len(content):
        (size,) = struct.unpack_from(">I", content, place)
        chunks.append((content[place + 4 : place + 8], content[place + 8 : place + 8 + size]))
        place += 12 + size
    made = content[:8]
    for name, data in chunks:
        if random.random() < 0.4:
            data = damage_bytes(data, random)
        for _ in range(1 if random.random() < 0.95 else random.choice((0, 2, 3))):
            made += struct.pack(">I", len(data)) + name + data
            made += struct.pack(">I", zlib.crc32(name + data))
    return made
