"""Rankings in a table: as places, as ranks of items, or as order strings."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ansatz.data.frames import as_frame, is_frame
from ansatz.errors import DataError, UsageError

if TYPE_CHECKING:
    import pandas as pd

Layout = Literal["auto", "places", "items", "orders"]
_PLACE = re.compile(
    r"^(?:place|rank|ranking|position|pos|choice|preference|pick|y)?[ _.#-]*(\d+)$", re.IGNORECASE
)
_TIE = re.compile(r"[=~]")
_SHOWN = 60  # characters of a cell that an error repeats


class Rankings(NamedTuple):
    """Rankings as codes, and what the codes mean.

    Args:
        codes: ``(N, L)`` int64: the item at each place, best first, -1 behind the last.
        items: what codes 0..K-1 stand for: text, or whole numbers.
        layout: how they were written: ``"places"``, ``"items"`` or ``"orders"``.
        notes: what was decided for the user.

    Example:
        >>> read_rankings(["b>a>c", "c>b"]).codes
        array([[ 1,  0,  2],
               [ 2,  1, -1]])
    """

    codes: NDArray[np.int64]
    items: list[Any]
    layout: str
    notes: list[str]


def read_rankings(
    table: Any,
    *,
    layout: Layout = "auto",
    items: Sequence[Any] | None = None,
    prefer: str | None = None,
) -> Rankings:
    """Rankings from the columns of a table, in one of three layouts.

    ``"places"``: a column per place, best first, whose cells are items (``place1, place2, ...``);
    a shorter ranking leaves the last ones empty. ``"items"``: a column per item, whose cells are
    its ranks 1, 2, ...; an item without a rank is empty. ``"orders"``: one column of text like
    ``b>a>c`` or ``b, a, c``. ``"auto"`` takes the layout that the cells allow, and where they
    allow both places and items, the one that the columns' names suggest; ``notes`` says so.

    Args:
        table: a frame, a mapping of columns, a list of order strings, or an array ``(N, L)``, where
            -1 is an empty cell, too.
        layout: how the rankings are written.
        items: the items there are, in the order of their codes; default: those that occur,
            sorted, or the columns of the table.
        prefer: ``"places"`` or ``"items"``, where ``"auto"`` finds that the cells allow both;
            default: by the columns' names.

    Example:
        >>> found = read_rankings({"tea": [1, 2], "milk": [3, 1], "rum": [2, None]})
        >>> found.items, found.codes.tolist()
        (['tea', 'milk', 'rum'], [[0, 2, 1], [1, 0, -1]])
    """
    if layout not in ("auto", "places", "items", "orders"):
        raise UsageError(f"layout must be auto, places, items or orders, got {layout!r}.")
    frame = _frame(table)
    if frame.shape[1] == 0 or len(frame) == 0:
        raise DataError(f"rankings need rows and columns, got a table of shape {frame.shape}.")
    cells = _cells(frame)  # (N, C) of None, int or str
    chosen, note = (layout, "") if layout != "auto" else _choose(cells, frame, items, prefer)
    if chosen == "items":
        orders, names = _from_ranks(cells, frame), _plain(list(frame.columns))
    else:
        orders = _from_text(cells, frame) if chosen == "orders" else _from_places(cells, frame)
        names = _sorted({item for order in orders for item in order})
    names, orders = _known(names, orders, items, frame)
    codes = np.full((len(orders), max(map(len, orders))), -1, dtype=np.int64)
    place = {name: k for k, name in enumerate(names)}
    for i, order in enumerate(orders):
        codes[i, : len(order)] = [place[item] for item in order]
    return Rankings(codes, names, chosen, [note] if note else [])


def _frame(table: Any) -> "pd.DataFrame":
    import pandas as pd

    if isinstance(table, pd.Series):
        return table.to_frame()
    if isinstance(table, pd.DataFrame):
        return as_frame(table).set_axis(table.index, axis=0)  # which names the rows in errors
    if is_frame(table):
        return as_frame(table)
    if isinstance(table, list | tuple) and not all(isinstance(row, str) for row in table):
        longest = max((len(row) for row in table), default=0)
        table = [[*row, *[None] * (longest - len(row))] for row in table]
    frame = pd.DataFrame(table if isinstance(table, list | tuple) else np.asarray(table))
    frame = frame.mask(frame == -1)  # the pad of codes
    frame.columns = [str(k + 1) for k in range(frame.shape[1])]
    return frame


def _cells(frame: "pd.DataFrame") -> list[list[Any]]:
    """Cells as whole numbers or stripped text; None where one is missing."""
    columns = []
    for name in frame.columns:
        missing = frame[name].isna().to_numpy()
        values = frame[name].astype(object).to_numpy()
        columns.append([None if m else _cell(v) for m, v in zip(missing, values, strict=True)])
    return [list(row) for row in zip(*columns, strict=True)]


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        return int(value) if float(value).is_integer() else float(value)
    return str(value)


def _choose(
    cells: list[list[Any]],
    frame: "pd.DataFrame",
    items: Sequence[Any] | None,
    prefer: str | None,
) -> tuple[str, str]:
    """The layout that the cells allow; with a note where the names had to decide."""
    if frame.shape[1] == 1:
        return "orders", ""
    numbered = _are_places([str(name) for name in frame.columns])
    ranks = all(_is_order_of_ranks(row) for row in cells)
    places = all(_is_filled_from_the_left(row) for row in cells)
    if items is not None and places:
        known = {*map(str, items)}
        places = all(cell is None or str(cell) in known for row in cells for cell in row)
    if ranks != places:
        return ("items" if ranks else "places"), ""
    if not ranks:  # neither: the error names the likelier layout
        words = any(isinstance(cell, str) for row in cells for cell in row)
        return ("places" if numbered or words else "items"), ""
    if prefer in ("places", "items"):
        return prefer, ""
    first, last = frame.columns[0], frame.columns[-1]
    if numbered:
        return "places", (
            f"'{first}' to '{last}' are read as places, best first, that hold items; if they are "
            "items that hold ranks: layout='items' (--set layout=items)."
        )
    return "items", (
        f"'{first}' to '{last}' are read as items that hold their ranks, 1 the best; if they are "
        "places that hold items: layout='places' (--set layout=places)."
    )


def _are_places(names: list[str]) -> bool:
    """Tests whether columns are called place1, place2, ... or 1, 2, ..., with one word before."""
    found = [_PLACE.match(name) for name in names]
    if not all(found):
        return False
    words = {
        name[: match.start(1)].lower() for name, match in zip(names, found, strict=True) if match
    }
    numbers = [int(match[1]) for match in found if match]
    return len(words) == 1 and numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _is_order_of_ranks(row: list[Any]) -> bool:
    given = [cell for cell in row if cell is not None]
    return {*given} == {*range(1, len(given) + 1)}


def _is_filled_from_the_left(row: list[Any]) -> bool:
    given = [cell for cell in row if cell is not None]
    return len({*given}) == len(given) and all(cell is None for cell in row[len(given) :])


def _from_places(cells: list[list[Any]], frame: "pd.DataFrame") -> list[list[Any]]:
    orders = []
    for i, row in enumerate(cells):
        order = [cell for cell in row if cell is not None]
        for j, cell in enumerate(row[: len(order)]):
            if cell is None:
                raise DataError(
                    f"row {_row(frame, i)}, column '{frame.columns[j]}': an empty place before a "
                    "filled one. A shorter ranking leaves the last places empty."
                )
        orders.append(_distinct(order, frame, i))
    return orders


def _from_ranks(cells: list[list[Any]], frame: "pd.DataFrame") -> list[list[Any]]:
    names, orders = _plain(list(frame.columns)), []
    for i, row in enumerate(cells):
        holder: dict[int, Any] = {}
        count = sum(cell is not None for cell in row)
        for name, rank in zip(names, row, strict=True):
            if rank is None:
                continue
            where = f"row {_row(frame, i)}, column '{name}': "
            if not isinstance(rank, int) or rank < 1:
                raise DataError(
                    f"{where}a rank must be a whole number from 1, got {str(rank)[:_SHOWN]!r}. If "
                    "the columns are places that hold items, say layout='places'."
                )
            if rank in holder:
                raise DataError(
                    f"{where}rank {rank} is already that of '{holder[rank]}'. Ties are not ranked: "
                    "break the tie or leave both empty."
                )
            if rank > count:
                raise DataError(
                    f"{where}rank {rank} among {count} ranked items: the ranks of a row must be "
                    f"1 to {count} without a gap."
                )
            holder[rank] = name
        orders.append(_distinct([holder[rank] for rank in sorted(holder)], frame, i))
    return orders


def _from_text(cells: list[list[Any]], frame: "pd.DataFrame") -> list[list[Any]]:
    if frame.shape[1] > 1:
        raise UsageError(f"layout='orders' is for one column of text, got {frame.shape[1]}.")
    lines = ["" if row[0] is None else str(row[0]) for row in cells]
    separator = next((s for s in (">", ",", ";", "|") if any(s in line for line in lines)), ">")
    orders = []
    for i, line in enumerate(lines):
        where = f"row {_row(frame, i)}, column '{frame.columns[0]}': "
        order = [item.strip() for item in line.split(separator)] if line else []
        if _TIE.search(line):
            raise DataError(
                f"{where}{line[:_SHOWN]!r} has a tie. Ties are not ranked: break it or leave the "
                "items out."
            )
        if "" in order:
            raise DataError(f"{where}nothing between two '{separator}' in {line[:_SHOWN]!r}.")
        orders.append(_distinct(order, frame, i))
    numbers = all(re.fullmatch(r"\d+", item) for order in orders for item in order)
    return [[int(item) for item in order] for order in orders] if numbers else orders


def _distinct(order: list[Any], frame: "pd.DataFrame", i: int) -> list[Any]:
    if not order:
        raise DataError(f"row {_row(frame, i)}: no item is ranked. Drop the row.")
    seen: set[Any] = set()
    for item in order:
        if item in seen:
            raise DataError(
                f"row {_row(frame, i)}: '{item}' is ranked twice. An item has one place."
            )
        seen.add(item)
    return order


def _known(
    names: list[Any], orders: list[list[Any]], items: Sequence[Any] | None, frame: "pd.DataFrame"
) -> tuple[list[Any], list[list[Any]]]:
    """The items of an earlier reading, where there was one; numbers or text as they were then."""
    if items is None:
        return (names, orders) if len({type(n) for n in names}) == 1 else _as_text(names, orders)
    known = [item.item() if isinstance(item, np.generic) else item for item in items]
    spelled = {str(item): item for item in known}
    for i, order in enumerate(orders):
        for item in order:
            if str(item) not in spelled:
                raise DataError(
                    f"row {_row(frame, i)}: '{item}' is not among the {len(known)} known items, "
                    f"like {', '.join(map(str, known[:5]))}."
                )
    return known, [[spelled[str(item)] for item in order] for order in orders]


def _as_text(names: list[Any], orders: list[list[Any]]) -> tuple[list[Any], list[list[Any]]]:
    return sorted(map(str, names)), [[str(item) for item in order] for order in orders]


def _plain(names: list[Any]) -> list[Any]:
    return [str(name) for name in names]


def _sorted(items: set[Any]) -> list[Any]:
    return sorted(items) if len({type(item) for item in items}) == 1 else list(items)


def _row(frame: "pd.DataFrame", position: int) -> int:
    label = frame.index[position]
    return int(label) + 1 if isinstance(label, int | np.integer) else position + 1
