"""The group of processes that train one model, and their messages."""

import atexit
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from itertools import pairwise
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ansatz.data.batch import Batch, take_rows
from ansatz.errors import AnsatzError, ResourceError, UsageError
from ansatz.training.processes.failure import (
    LostProcess,
    ProcessError,
    ProcessFailure,
    explain_start,
    require_interface,
)
from ansatz.training.processes.launch import open_store

_TIMEOUT = 600.0  # seconds until a silent process is given up; a dead one is seen at once
_PATIENCE = timedelta(days=1)  # while the first process works alone
_NOTICE = 5.0  # seconds in which the others must learn of a failure


class Processes:
    r"""The processes of one run, and the messages that they exchange.

    All of them are given the same batches; each takes its own rows of every batch, and sums are
    added up over the processes:

    .. math:: \nabla = \frac{\sum_r \sum_{i \in r} w_i \nabla \ell_i}{\sum_r \sum_{i \in r} w_i}

    so ``batch_size`` is that of all processes together, and their number changes the result by
    rounding only. A process that fails sends the others its error before it leaves.
    """

    def __init__(self, rank: int, size: int, local_rank: int = 0, local_size: int = 1) -> None:
        self.rank, self.size, self.local_rank, self.local_size = rank, size, local_rank, local_size
        self.wants_pause, self.pause = False, False  # this one's wish, and what all decided
        self.broken = False
        self._control: Any = None  # for words: always gloo, and patient
        self._store: Any = None
        self._mark, self._inside, self._blocks = 0, False, 0

    @property
    def is_first(self) -> bool:
        """Whether this is the process that writes, prints and decides."""
        return self.rank == 0

    def connect(self) -> "Processes":
        """Opens a channel for words beside that for gradients."""
        self._control = dist.new_group(backend="gloo", timeout=_PATIENCE)
        self._store = dist.distributed_c10d._get_default_store()
        return self

    # --- rows ------------------------------------------------------------------------------------

    def bounds(self, rows: int) -> list[int]:
        """Where each process's rows begin, and the end: runs of nearly equal length."""
        return [rows * r // self.size for r in range(self.size + 1)]

    def part(self, batch: Batch) -> Batch:
        """This process's rows of the batch, which may be none."""
        rows = len(batch.index)
        self._mark = int(batch.index[0]) & 0xFFFF if rows else 0  # sums of it are exact in float32
        first, last = self.bounds(rows)[self.rank : self.rank + 2]
        return take_rows(batch, slice(first, last))

    def gather_rows(self, own: Tensor, rows: int) -> Tensor:
        """The rows of all processes in order, given this one's; without a gradient."""
        ends = self.bounds(rows)
        most = max(last - first for first, last in pairwise(ends))
        padded = own.new_zeros(most, *own.shape[1:])
        padded[: len(own)] = own.detach()
        every = [torch.empty_like(padded) for _ in range(self.size)]
        self._call(partial(dist.all_gather, every, padded), on_cpu=own.device.type == "cpu")
        return torch.cat([t[: ends[r + 1] - ends[r]] for r, t in enumerate(every)])

    # --- numbers ---------------------------------------------------------------------------------

    def add_up(
        self, vector: Tensor | None, total: float, count: float, error: Exception | None = None
    ) -> tuple[Tensor | None, float, float]:
        """Sums over the processes, in one message; raises the same error in all if one has one.

        The message also carries whether anyone wants to pause, and which batch each one saw.
        """
        tail = [total, count, float(error is not None), float(self.wants_pause), float(self._mark)]
        if vector is None:
            message = torch.tensor(tail, dtype=torch.float64)
        else:
            message = torch.cat([vector, torch.tensor(tail, dtype=vector.dtype).to(vector.device)])
        self._call(partial(dist.all_reduce, message), on_cpu=message.device.type == "cpu")
        total, count, failed, pause, marks = message[-5:].tolist()
        if failed:
            self.raise_first(error)
        if marks != self.size * self._mark:
            raise UsageError(
                "the processes see different batches: give each the same source with the same "
                "seed, of which it takes its own rows itself."
            )
        self.pause = pause > 0
        return None if vector is None else message[:-5], total, count

    def sum(self, numbers: Tensor) -> Tensor:
        """The sum over the processes of some numbers on the CPU."""
        summed = numbers.clone()
        self._say(partial(dist.all_reduce, summed))
        return summed

    def broadcast(self, tensors: Sequence[Tensor]) -> None:
        """Gives all processes the first one's values, in place."""
        for tensor in tensors:
            sent = tensor.detach().contiguous()
            sent = sent.view(torch.uint8) if sent.dtype == torch.bool else sent  # gloo has no bool
            self._call(partial(dist.broadcast, sent, 0), on_cpu=sent.device.type == "cpu")
            if sent.data_ptr() != tensor.data_ptr():
                tensor.detach().copy_(sent.view(tensor.dtype))

    # --- words -----------------------------------------------------------------------------------

    def from_first(self, value: Any) -> Any:
        """The first process's ``value`` (plain JSON), in all."""
        return json.loads(
            self.bytes_from_first(
                json.dumps(value, default=float).encode() if self.is_first else b""
            )
        )

    def bytes_from_first(self, content: bytes) -> bytes:
        """The first process's ``content``, in all."""
        length = torch.tensor([len(content)])
        self._say(partial(dist.broadcast, length, 0))
        data = torch.empty(int(length), dtype=torch.uint8)
        if self.is_first and len(content):
            data = torch.frombuffer(bytearray(content), dtype=torch.uint8)
        if len(data):
            self._say(partial(dist.broadcast, data, 0))
        return data.numpy().tobytes()

    def gather(self, value: Any = None) -> list[Any]:
        """Every process's ``value`` (plain JSON); also a place to meet."""
        content = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)
        lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(self.size)]
        own = torch.tensor([len(content)])
        self._say(partial(dist.all_gather, lengths, own))
        padded = torch.zeros(max(int(n) for n in lengths), dtype=torch.uint8)
        padded[: len(content)] = content
        every = [torch.empty_like(padded) for _ in range(self.size)]
        self._say(partial(dist.all_gather, every, padded))
        return [
            json.loads(t.numpy()[: int(n)].tobytes()) for t, n in zip(every, lengths, strict=True)
        ]

    def agree(self, settings: dict[str, Any], advice: str) -> None:
        """Refuses, in all processes, settings that are not the same in all."""
        every = self.gather(settings)
        for rank, other in enumerate(every):
            for name, value in every[0].items():
                if other.get(name) != value:
                    error = UsageError(
                        f"the processes disagree: {name} is {value} in process 0 and "
                        f"{other.get(name)} in process {rank}. {advice}"
                    )
                    raise self.settle(error)

    def raise_first(self, error: Exception | None) -> None:
        """Raises the error of the first process that has one, in all of them."""
        records = self.gather(
            None if error is None else ProcessFailure.of(error, self.rank)._asdict()
        )
        first = ProcessFailure(**next(r for r in records if r is not None))
        raise self.settle(error if error and first.rank == self.rank else first.rebuild())

    # --- failures --------------------------------------------------------------------------------

    @contextmanager
    def together(self) -> Iterator[None]:
        """Runs a block in all processes; an error in one ends it in all.

        A process that fails by itself puts its error where the others find it, and hangs up: they
        are in the middle of a message to it, and would wait.
        """
        if self._inside:
            yield
            return
        self._inside, self._blocks = True, self._blocks + 1
        try:
            yield
        except BaseException as error:
            failure = self._explain(error) if _is_of_torch(error) else error
            self._leave(failure)
            if failure is error:
                raise
            raise failure from error
        finally:
            self._inside = False

    def _leave(self, error: BaseException) -> None:
        if getattr(error, "agreed", False) or self._store is None:
            return
        self.settle(error)
        place = f"ansatz/{self._blocks}"
        try:
            self._store.compare_set(
                f"{place}/first", "", ProcessFailure.of(error, self.rank).to_json()
            )
            if isinstance(error, LostProcess):
                self.close()
                return
            self._store.add(f"{place}/left", 1)
            if not self._all_left(place, 1.0):  # not the same error in all: they are waiting
                self.close()
                self._all_left(place, _NOTICE)
        except (RuntimeError, OSError):  # who kept the store has gone
            self.broken = True

    def _all_left(self, place: str, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while self._store.add(f"{place}/left", 0) < self.size:
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        return True

    def settle(self, error: BaseException) -> BaseException:
        """Marks an error that all processes raise, so that the first one alone prints it."""
        error.agreed = True  # type: ignore[attr-defined]
        error.reported_elsewhere = not self.is_first and not isinstance(error, LostProcess)  # type: ignore[attr-defined]
        return error

    def _say(self, message: Callable[..., Any]) -> None:
        """A message on the channel for words, where the others may be late by hours."""
        self._call(partial(message, group=self._control), _PATIENCE.total_seconds())

    def _call(
        self, message: Callable[..., Any], limit: float | None = None, *, on_cpu: bool = True
    ) -> None:
        """Sends a message and waits for the others, unless one of them reports a failure."""
        if self.broken:
            raise ProcessError("the processes have lost each other in an earlier fit: start again.")
        end = time.monotonic() + (limit or seconds_to_wait())
        try:
            work = message(async_op=True)
            while not _is_done(work, on_cpu):
                if time.monotonic() > end:
                    raise RuntimeError("timed out")
                if (failure := self._find_failure()) is not None:
                    raise failure
        except (RuntimeError, ValueError) as error:  # gloo's and nccl's
            raise self._explain(error) from error

    def _explain(self, error: BaseException) -> BaseException:
        """Why a message failed: the error of the process that hung up, if it left one."""
        if isinstance(error, AnsatzError):
            return error
        return self._find_failure() or LostProcess.of(error)

    def _find_failure(self) -> BaseException | None:
        key = f"ansatz/{self._blocks}/first"
        try:
            if self._store.check([key]):
                found = ProcessFailure.from_json(self._store.get(key))
                if found.rank != self.rank:
                    return found.rebuild()
        except (RuntimeError, OSError):  # who kept the store has gone
            pass
        return None

    def close(self) -> None:
        """Hangs up: whoever waits for a message from here learns at once that none will come."""
        self.broken, self._control = True, None
        if dist.is_initialized():
            dist.destroy_process_group()


def seconds_to_wait() -> float:
    """How long a silent process is waited for: ``ANSATZ_PROCESS_TIMEOUT``, or 600 seconds."""
    text = os.environ.get("ANSATZ_PROCESS_TIMEOUT", str(_TIMEOUT))
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e7:
        raise UsageError(f"ANSATZ_PROCESS_TIMEOUT must be a number of seconds > 0, got '{text}'.")
    return seconds


def _is_done(work: Any, on_cpu: bool) -> bool:
    """Waits for a second at most; a GPU's messages are waited for by the GPU."""
    try:
        if work is not None:
            work.wait(timedelta(seconds=1)) if on_cpu else work.wait()
    except RuntimeError as error:
        if str(error).startswith("Operation timed out"):
            return bool(work.is_completed())
        raise
    return True


def _is_of_torch(error: BaseException) -> bool:
    """Tests whether a message of torch's own (FSDP's) failed because a process has gone."""
    words = ("gloo", "Connection closed by peer", "Connection reset", "NCCL")
    return type(error) is RuntimeError and any(word in str(error) for word in words)


def open_group() -> None:
    """Opens the group of processes that the environment variables of ``torchrun`` describe."""
    cuda = torch.cuda.is_available() and dist.is_nccl_available()
    if cuda:
        local = int(os.environ.get("LOCAL_RANK", 0))
        if local < torch.cuda.device_count():
            torch.cuda.set_device(local)
    require_interface()
    timeout = timedelta(seconds=seconds_to_wait())
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    try:
        dist.init_process_group(
            "cpu:gloo,cuda:nccl" if cuda else "gloo",
            store=open_store(rank, size, timeout),
            rank=rank,
            world_size=size,
            timeout=timeout,
        )
    except (RuntimeError, ValueError) as error:
        raise ResourceError(explain_start(error)) from error
    atexit.register(_close_group)


def _close_group() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
