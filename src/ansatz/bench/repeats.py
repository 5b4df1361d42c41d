"""A quality suite's fits: each data set, each split or seed, kept as soon as it is finished."""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ansatz.bench.ledger import Ledger, Row
from ansatz.bench.options import Options


def repeated(
    suite: str,
    names: Iterable[str],
    fit: Callable[[str, int], Row],
    options: Options,
    *,
    times: int,
    by: str = "seed",
    **also: Any,
) -> Iterator[tuple[str, list[Row]]]:
    """Each set's name with its rows; what the suite's ledger holds is not done again.

    Args:
        suite: its name, and that of its ledger.
        names: of the data sets.
        fit: the row of a set's name and a number.
        options: which numbers, where rows are kept, whether finished ones are done again.
        times: how many numbers there are without ``options.splits``.
        by: what a number is: ``"seed"`` or ``"split"``.
        also: what else tells rows from each other.

    Example:
        >>> from ansatz.bench import Options
        >>> from ansatz.bench.repeats import repeated
        >>> done = repeated("a", ["iris"], lambda name, k: {"nll": k / 2}, Options(), times=2)
        >>> [(name, [row["nll"] for row in rows]) for name, rows in done]
        [('iris', [0.0, 0.5])]
    """
    path = None if options.folder is None else options.folder / f"{suite}.jsonl"
    ledger, sets, numbers = Ledger(path), list(names), options.splits or range(times)

    def key(name: str, number: int) -> Row:
        return {"set": name, by: number, **also}

    if options.fresh:
        ledger.forget(itertools.starmap(key, itertools.product(sets, numbers)))
    for name in sets:
        rows = []
        for number in numbers:
            options.tell(f"{name}, {by} {number}")
            rows.append(ledger.part(key(name, number), functools.partial(fit, name, number)))
        yield name, rows
