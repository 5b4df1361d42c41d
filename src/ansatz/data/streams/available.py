"""The memory that is free, and that a table would take."""

import os
import re
from pathlib import Path

from ansatz.data.package_files import PACKAGE_FILES
from ansatz.data.streams.arrow_frames import ARROW, ArrowParts
from ansatz.data.streams.blocks import find_parts
from ansatz.errors import UsageError

SHARE = 0.25  # of the free memory that a table may take before it is streamed
SMALL = 32 * 2**20  # bytes on disk below which nobody needs to ask
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_AT_ONCE = (".npz", ".zip", *PACKAGE_FILES)
_TEXT = 3.0  # bytes in memory per byte of text: the text itself, the numbers, their scaled copy


def available_memory() -> int:
    """Bytes that this process may still take: free memory, or what its control group leaves."""
    found = [_of_machine()]
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        (
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        ),
    ):
        top, taken = _number(limit), _number(used)
        if top is not None and taken is not None:
            found.append(max(top - taken, 0))
    return min(found)


def parse_bytes(text: str | int | float) -> int:
    """``"4GB"``, ``"500M"`` or a number of bytes."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)I?B?\s*", str(text), re.IGNORECASE)
    if match is None or float(match[1]) <= 0:
        raise UsageError(f"--memory-limit takes a size like 4GB or 500MB, got {text!r}.")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def estimate_bytes(data: str | Path) -> int:
    r"""Estimates the memory that the rows of a file would take; 0 where it is small on disk.

    Text takes some three times its size, packed text four times that; Parquet and Arrow tell
    their unpacked size, which is taken twice.
    """
    paths, kind = find_parts(data)
    size = sum(path.stat().st_size for path in paths)
    if kind == "text":
        with paths[0].open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        return (
            0
            if size < SMALL and not (packed and size > SMALL // 8)
            else round(size * _TEXT * (4 if packed else 1))
        )
    if size < SMALL // 8:
        return 0
    return 2 * (size if paths[0].suffix.lower() in ARROW else sum(ArrowParts(paths).bytes))


def reason_to_stream(
    data: str | Path, *, stream: bool | None = None, memory_limit: str | int | None = None
) -> str | None:
    """Explains why a table is streamed, in a sentence; None where it is read at once."""
    limit = None if memory_limit is None else parse_bytes(memory_limit)
    if stream is False:
        return None
    if stream:
        return "the table was read as a stream, as asked."
    several = Path(data).is_dir() or ("*" in str(data) and not Path(data).exists())
    if not several and not Path(data).is_file():
        return None  # the reader says what is wrong with it
    if not several and Path(data).suffix.lower() in _AT_ONCE:
        return None
    if several:
        return "the parts of the table were read as a stream."
    size, free = estimate_bytes(data), available_memory()
    if limit is None:
        limit, said = round(SHARE * free), f"a quarter of the {free / 2**30:.1f} GB that are free"
    else:
        said = f"the limit of {limit / 2**30:.3g} GB"
    if size <= limit:
        return None
    return (
        f"the table would take some {size / 2**30:.1f} GB in memory, more than {said}: it was read "
        "as a stream (--no-stream reads it at once)."
    )


def _of_machine() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, OSError, ValueError):
        return 4 * 2**30  # nothing to ask: a usual machine's half


def _number(path: str) -> int | None:
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):  # "max": no limit
        return None
