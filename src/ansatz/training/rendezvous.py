"""How processes that were started apart find each other, also when they are started again."""

import os
import time
import uuid
from datetime import timedelta
from typing import Any

import torch.distributed as dist

_PAUSE = 0.01  # seconds between two looks


def open_store(rank: int, size: int, timeout: timedelta) -> Any:
    """The store of this start of the processes, at ``MASTER_ADDR:MASTER_PORT``.

    torchrun keeps one store over all restarts, and the addresses of processes that have died are
    still in it. So the first process gives each start a name of its own, under which all talk: each
    process leaves a number that nobody else can know, and whoever answers to it is alive.

    Args:
        rank: of this process.
        size: how many there are.
        timeout: how long to wait for the others.
    """
    is_there = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    store = dist.TCPStore(
        os.environ["MASTER_ADDR"],
        int(os.environ["MASTER_PORT"]),
        size,
        is_master=rank == 0 and not is_there,
        timeout=timeout,
        wait_for_workers=False,
    )
    end = time.monotonic() + timeout.total_seconds()
    name = _lead(store, size, end) if rank == 0 else _follow(store, rank, end)
    return dist.PrefixStore(f"ansatz/{name}", store)


def _lead(store: Any, size: int, end: float) -> str:
    """Answers every number that is left until all processes have heard the name."""
    name, answered = uuid.uuid4().hex, set()
    waiting = set(range(1, size))
    while waiting:
        for rank in tuple(waiting):
            hello = f"ansatz/hello/{rank}"
            if store.check([hello]) and (number := store.get(hello)) not in answered:
                store.set(f"ansatz/answer/{number.decode()}", name)
                answered.add(number)
            if store.check([f"ansatz/{name}/ready/{rank}"]):
                waiting.discard(rank)
        _pause(end, sorted(waiting))
    return name


def _follow(store: Any, rank: int, end: float) -> str:
    number = uuid.uuid4().hex
    store.set(f"ansatz/hello/{rank}", number)
    answer = f"ansatz/answer/{number}"
    while not store.check([answer]):
        _pause(end, [0])
    name: str = store.get(answer).decode()
    store.set(f"ansatz/{name}/ready/{rank}", "")
    return name


def _pause(end: float, missing: list[int]) -> None:
    if time.monotonic() > end:
        who = ", ".join(map(str, missing))
        raise RuntimeError(f"waited in vain for process {who}.")
    time.sleep(_PAUSE)
