"""The options of reading grids, validated."""

import difflib
import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypedDict, Unpack, get_args

from ansatz.data.grids.image_file import Limits
from ansatz.data.grids.layout import Channels
from ansatz.data.grids.masks import colour_number
from ansatz.data.grids.places import Pages
from ansatz.data.streams.available import SHARE, available_memory, parse_bytes
from ansatz.errors import UsageError


class ReadGridsOptions(TypedDict, total=False):
    """Options of :func:`~ansatz.data.grids.read_grids`, which describes them."""

    size: int | Sequence[int] | None
    channels: int | str | None
    image: str | None
    masks: Any
    pages: str
    tiles: int | None
    spacing: str | Sequence[float] | None
    classes: Sequence[str] | None
    unlabelled: int | str | None
    signals: bool
    target: Sequence[str]
    outcomes: bool
    shares: bool | None
    limit_pixels: int
    limit_bytes: int
    on_corrupt: str
    memory_limit: str | int | None


def require_known(names: Iterable[str]) -> None:
    """Rejects a name that is not an option, with the nearest one that is."""
    known = ReadGridsOptions.__annotations__
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean '{near[0]}'?" if near else f"It has {', '.join(sorted(known))}."
            raise UsageError(f"read_grids has no option '{name}'. {hint}")


class GridReading(NamedTuple):
    """Validated options of :func:`~ansatz.data.grids.read_grids`, which describes them."""

    size: tuple[int, ...] | None = None
    channels: int | None = None
    place: Channels = "auto"
    classes: tuple[str, ...] | None = None
    unlabelled: int | None = None
    limits: Limits = Limits()
    on_corrupt: Literal["refuse", "skip"] = "refuse"
    memory_limit: int | None = None
    outcomes: bool = True
    shares: bool | None = None
    pages: Pages = "auto"
    tiles: int | None = None
    image: str | None = None
    masks: Any = None
    signals: bool = False
    target: tuple[str, ...] = ()
    spacing: tuple[float, ...] | Literal["auto", "none"] = "auto"

    @classmethod
    def of(cls, **given: Unpack[ReadGridsOptions]) -> "GridReading":
        """Checks the options of :func:`~ansatz.data.grids.read_grids`."""
        require_known(given)
        on_corrupt, pages = given.get("on_corrupt", "refuse"), given.get("pages", "auto")
        channels, tiles = given.get("channels", "auto"), given.get("tiles")
        size, classes = given.get("size"), given.get("classes")
        unlabelled, memory_limit = given.get("unlabelled"), given.get("memory_limit")
        most = Limits()
        if on_corrupt not in ("refuse", "skip"):
            raise UsageError(f"on_corrupt must be 'refuse' or 'skip', got {on_corrupt!r}.")
        if pages not in get_args(Pages):
            known = ", ".join(map(repr, get_args(Pages)))
            raise UsageError(f"pages must be one of {known}, got {pages!r}.")
        if tiles is not None and (type(tiles) is not int or tiles < 2):
            raise UsageError(f"tiles must be a whole number from 2 on, got {tiles!r}.")
        number = channels if isinstance(channels, int) else None
        place = "auto" if isinstance(channels, int) else channels
        place = None if place == "none" else place  # as the command line says it
        odd = number is not None and (isinstance(channels, bool) or number < 1)
        if place not in ("auto", "first", "last", None) or odd:
            raise UsageError(
                f"channels must be their number, or for arrays 'first', 'last', 'auto' or 'none', "
                f"got {channels!r}."
            )
        return cls(
            None if size is None else _sides(size),
            number,
            place,  # type: ignore[arg-type]  # checked above
            None if classes is None else tuple(str(name) for name in classes),
            colour_number(unlabelled) if isinstance(unlabelled, str) else unlabelled,
            Limits(
                given.get("limit_pixels", most.pixels), given.get("limit_bytes", most.bytes)
            ).check(),
            on_corrupt,  # type: ignore[arg-type]  # checked above
            None if memory_limit is None else parse_bytes(memory_limit),
            given.get("outcomes", True),
            given.get("shares"),
            pages,  # type: ignore[arg-type]  # checked above
            tiles,
            given.get("image"),
            given.get("masks"),
            given.get("signals", False),
            tuple(given.get("target", ())),
            _spacing(given.get("spacing")),
        )

    @property
    def image_size(self) -> tuple[int, int] | None:
        """The size for image files, which have a height and a width."""
        if self.size is None:
            return None
        if len(self.size) != 2:
            raise UsageError(f"images have a height and a width, got size {self.size}.")
        return self.size[0], self.size[1]

    @property
    def said_pages(self) -> str | None:
        """The given value of pages; None if it was not given."""
        return None if self.pages == "auto" else self.pages

    @property
    def skips(self) -> bool:
        """Whether files that cannot be read are left out."""
        return self.on_corrupt == "skip"

    @property
    def memory(self) -> int:
        """Bytes that decoded examples may take."""
        return self.memory_limit or round(SHARE * available_memory())


def refuse_given(why: str, **given: Any) -> None:
    """Rejects options that do not apply to the data, instead of ignoring them."""
    for name, value in given.items():
        if value is not None:
            option = f"{name}=" if name == "classes" else f"--{name} ({name}=)"
            raise UsageError(f"{why}: leave out {option}.")


def _spacing(given: str | Sequence[float] | None) -> tuple[float, ...] | Literal["auto", "none"]:
    if given is None or given == "auto":
        return "auto"
    if given == "none":
        return "none"
    try:
        found = () if isinstance(given, str) else tuple(float(width) for width in given)
    except (TypeError, ValueError):
        found = ()
    if not 1 <= len(found) <= 3 or not all(0 < width < math.inf for width in found):
        raise UsageError(
            "spacing must be 'none', or a width > 0 of a voxel for each axis, like (1, 1, 2), "
            f"got {given!r}."
        )
    return found


def _sides(size: int | Sequence[int]) -> tuple[int, ...]:
    found = (size, size) if isinstance(size, int) else tuple(size)
    if not 1 <= len(found) <= 3 or any(
        not isinstance(n, int) or not 1 <= n <= 2**15 for n in found
    ):
        raise UsageError(
            f"size must be one number or (height, width), each from 1 to {2**15:,}, got {size!r}."
        )
    return found
