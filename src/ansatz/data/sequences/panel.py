"""Time series on one clock: what is predicted, what is known beside it, and for how long."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ansatz.data.sequences.times import Clock, read_times, to_steps
from ansatz.errors import DataError, UsageError

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
NEIGHBOURS = "neighbours"  # the covariate that edges add


@dataclass
class Panel:
    """Series one behind the other, each on consecutive steps of one clock.

    Args:
        clock: the length of a step.
        names: of the series.
        offsets: ``(n + 1,)``; series i is ``target[offsets[i]:offsets[i + 1]]``.
        starts: ``(n,)`` the step of each series' first value.
        target: ``(S,)``, nan where it was not observed.
        past: ``(S, C)`` covariates that end at the origin of a forecast; nan as above.
        known: ``(S, A)`` covariates that are known ahead, those of the calendar left out.
        exposure: ``(S,)``; None where every step counts the same.
        weight: ``(S,)`` how much each outcome counts.
        past_names, known_names: names of the columns.
        rows: how many rows the table had.
    """

    clock: Clock
    names: list[Any]
    offsets: NDArray[np.int64]
    starts: NDArray[np.int64]
    target: Array
    past: Array
    known: Array
    exposure: Array | None
    weight: Array
    past_names: list[str]
    known_names: list[str]
    rows: int = 0
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Steps of each series."""
        return np.diff(self.offsets)

    @property
    def last(self) -> NDArray[np.int64]:
        """The place of the last observed value in each series; -1 where there is none."""
        place = np.arange(len(self.target)) - np.repeat(self.offsets[:-1], self.lengths)
        seen = np.where(np.isfinite(self.target), place, -1)
        return np.maximum.reduceat(seen, self.offsets[:-1])

    def digests(self) -> NDArray[np.uint64]:
        """A hash of each series' values."""
        found = [
            hashlib.blake2b(self.target[a:b].tobytes(), digest_size=8).digest()
            for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True)
        ]
        return np.frombuffer(b"".join(found), dtype=np.uint64)

    def tail(self, steps: int) -> "Panel":
        """Each series up to its last observed value, and no more than ``steps`` of it."""
        ends = self.offsets[:-1] + self.last + 1
        begins = np.maximum(self.offsets[:-1], ends - steps)
        take = np.concatenate([np.arange(a, b) for a, b in zip(begins, ends, strict=True)])
        lengths = ends - begins
        return Panel(
            self.clock,
            self.names,
            np.concatenate([[0], np.cumsum(lengths)]),
            self.starts + begins - self.offsets[:-1],
            self.target[take],
            self.past[take],
            self.known[take],
            None if self.exposure is None else self.exposure[take],
            self.weight[take],
            self.past_names,
            self.known_names,
        )


def panel_of(
    frame: "pd.DataFrame",
    origin: str,
    *,
    time: str,
    target: str,
    id: str | None = None,
    exposure: str | None = None,
    weights: str | None = None,
    known: Sequence[str] = (),
    drop: Sequence[str] = (),
    edges: "pd.DataFrame | None" = None,
) -> Panel:
    """Series of a table with a row for each step of each series.

    Steps without a row are gaps: their target is not observed.
    """
    for use, name in (("target", target), ("id", id), ("exposure", exposure)):
        if name is not None and name not in frame.columns:
            listed = ", ".join(map(str, frame.columns[:20]))
            raise DataError(f"{origin}: no column '{name}' for {use}. Columns: {listed}.")
    if not len(frame):
        raise DataError(f"{origin} has no rows.")
    codes, names = _series(frame, id, origin)
    times = read_times(frame, time, origin)
    try:
        clock, steps = to_steps(times, codes, time)
    except DataError as error:
        raise DataError(f"{origin}, {error}") from None
    order = np.lexsort((steps, codes))
    again = np.flatnonzero((np.diff(codes[order]) == 0) & (np.diff(steps[order]) == 0))
    if len(again):
        row = int(order[again[0] + 1])
        whose = "" if id is None else f"series '{names[codes[row]]}', "
        raise DataError(
            f"{origin}, row {row + 1}: {whose}time {times.iloc[row]} is there twice."
            + (" Several series? Name the column that tells them apart: --id." if not id else "")
        )
    starts = np.full(len(names), np.iinfo(np.int64).max)
    ends = np.zeros(len(names), dtype=np.int64)
    np.minimum.at(starts, codes, steps)
    np.maximum.at(ends, codes, steps + 1)
    offsets = np.concatenate([[0], np.cumsum(ends - starts)])
    place = offsets[codes] + steps - starts[codes]

    def placed(values: Array) -> Array:
        found = np.full((offsets[-1], *values.shape[1:]), np.nan)
        found[place] = values
        return found

    used = {target, id, exposure, weights, *known, *drop, *time.split("+"), time}
    others = [c for c in frame.columns if c not in used and _is_number(frame[c])]
    for name in known:
        if name not in frame.columns:
            raise UsageError(f"{origin}: no column '{name}' to be known ahead (--known).")
    y = _numbers(frame, target, origin)
    past = np.stack([_numbers(frame, c, origin) for c in others], 1) if others else None
    ahead = np.stack([_codes(frame[c]) for c in known], 1) if known else None
    found = Panel(
        clock,
        names,
        offsets,
        starts,
        placed(y),
        placed(past) if past is not None else np.zeros((offsets[-1], 0)),
        placed(ahead) if ahead is not None else np.zeros((offsets[-1], 0)),
        None if exposure is None else placed(_exposure(frame, exposure, origin)),
        np.ones(offsets[-1]),
        [str(c) for c in others],
        [str(c) for c in known],
        len(frame),
    )
    if weights is not None:
        found.weight = np.nan_to_num(placed(_numbers(frame, weights, origin)))
    gaps = int(offsets[-1] - len(frame))
    if gaps:
        share = f"{gaps / offsets[-1]:.1%}"
        found.notes.append(
            f"gaps in time: {gaps} steps ({share}) have no row; they count as not observed."
        )
    if edges is not None:
        _add_neighbours(found, edges, origin)
    return found


def _series(frame: "pd.DataFrame", id: str | None, origin: str) -> tuple[Any, list[Any]]:
    import pandas as pd

    if id is None:
        return np.zeros(len(frame), dtype=np.int64), ["series"]
    missing = np.flatnonzero(frame[id].isna())
    if len(missing):
        raise DataError(f"{origin}, row {missing[0] + 1}, column '{id}': the series has no name.")
    codes, names = pd.factorize(frame[id], sort=True)
    return codes.astype(np.int64), list(names)


def _is_number(column: "pd.Series") -> bool:
    return column.dtype.kind in "iufb"


def _numbers(frame: "pd.DataFrame", name: str, origin: str) -> Array:
    import pandas as pd

    column = frame[name]
    if not _is_number(column):
        bad = pd.to_numeric(column, errors="coerce").isna() & column.notna()
        row = int(np.flatnonzero(bad)[0]) if bad.any() else 0
        raise DataError(
            f"{origin}, row {row + 1}, column '{name}': expected a number, got "
            f"{str(column.iloc[row])[:40]!r}."
        )
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise DataError(
            f"{origin}, row {infinite[0] + 1}, column '{name}': the number is infinite."
        )
    return values


def _codes(column: "pd.Series") -> Array:
    """Numbers as they are; words as the place of each in the order of all."""
    if _is_number(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    raise DataError(f"column '{column.name}': what is known ahead must be numbers.")


def _exposure(frame: "pd.DataFrame", name: str, origin: str) -> Array:
    values = _numbers(frame, name, origin)
    bad = np.flatnonzero(~(values > 0))
    if len(bad):
        raise DataError(
            f"{origin}, row {bad[0] + 1}, column '{name}': an exposure must be positive, got "
            f"{values[bad[0]]}."
        )
    return values


def _add_neighbours(panel: Panel, edges: "pd.DataFrame", origin: str) -> None:
    """The mean of the neighbours' targets (over their exposure) at each step, a covariate."""
    pairs = edges.iloc[:, :2]
    place: Mapping[str, int] = {str(name): k for k, name in enumerate(panel.names)}
    neighbours: list[list[int]] = [[] for _ in panel.names]
    for row, (one, other) in enumerate(pairs.itertuples(index=False)):
        for name in (one, other):
            if str(name) not in place:
                raise DataError(f"edges, row {row + 1}: {origin} has no series '{name}'.")
        a, b = place[str(one)], place[str(other)]
        for mine, its in ((a, b), (b, a)):
            if its not in neighbours[mine] and its != mine:
                neighbours[mine].append(its)
    steps = int((panel.starts + panel.lengths).max())
    grid = np.full((len(panel), steps), np.nan)  # (n, G)
    rate = panel.target if panel.exposure is None else panel.target / panel.exposure
    for k in range(len(panel)):
        first = panel.starts[k]
        span = slice(panel.offsets[k], panel.offsets[k + 1])
        grid[k, first : first + panel.lengths[k]] = rate[span]
    seen, filled = np.isfinite(grid), np.nan_to_num(grid)
    mean = np.full_like(grid, np.nan)
    for k, near in enumerate(neighbours):
        if near:
            count = seen[near].sum(0)
            mean[k] = np.where(count > 0, filled[near].sum(0) / np.maximum(count, 1), np.nan)
    column = np.concatenate(
        [mean[k, panel.starts[k] : panel.starts[k] + panel.lengths[k]] for k in range(len(panel))]
    )
    if panel.exposure is not None:  # as a count in a population like its own
        column = column * panel.exposure
    panel.past = np.column_stack([panel.past, column])
    panel.past_names.append(NEIGHBOURS)
