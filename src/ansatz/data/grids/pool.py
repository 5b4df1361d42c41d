"""Work for a few threads, its results in order."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
_MOST = 8  # threads; a disk is not faster for more


def in_order(
    function: Callable[[T], R], items: Iterable[T], *, workers: int | None = None, ahead: int = 32
) -> Iterator[R]:
    """``map(function, items)``, computed by threads up to ``ahead`` items in advance.

    Decoders of images leave Python's lock, so that threads decode side by side. No more than
    ``ahead`` results wait at any time. An error comes out at its item's place; whoever stops
    early leaves no thread behind.

    Args:
        function: what is done with an item.
        items: taken one by one, as places become free.
        workers: threads; None for one per processor, at most 8.
        ahead: items begun before their turn.
    """
    workers = workers or min(_MOST, os.cpu_count() or 1)
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(workers, thread_name_prefix="ansatz-read") as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
