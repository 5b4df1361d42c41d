"""How many threads: small networks are faster on one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits
from torch import nn

_CONVOLUTIONS = (nn.modules.conv._ConvNd,)
# Two threads pay from about this many floating-point operations in one product on: a 1024-wide
# layer at batch 64 (1.3e8) gains 1.4x, a 64-wide one loses up to 30 percent, and far more when
# another process wants the cores.
_WORTH_SHARING = 1e8


def choose_threads(network: nn.Module, rows: int, processes: int = 1) -> int:
    """1 for a small network, else as many as torch is allowed to use; never more than that.

    A function of shapes alone, so that a resumed run makes the same choice.

    Args:
        network: the largest product of a weight with a batch decides; convolutions are large.
        rows: rows per batch.
        processes: how many share the cores of this machine, each with its part of the rows.

    Example:
        >>> import torch
        >>> from ansatz.training.threads import choose_threads
        >>> choose_threads(torch.nn.Linear(8, 32), rows=256)
        1
    """
    allowed = torch.get_num_threads()
    if processes > 1:
        allowed = max(1, min(allowed, (os.cpu_count() or 1) // processes))
    if any(isinstance(part, _CONVOLUTIONS) for part in network.modules()):
        return allowed
    largest = max((p.numel() for p in network.parameters() if p.ndim > 1), default=0)
    return allowed if 2 * rows * largest >= _WORTH_SHARING else 1


@contextmanager
def using_threads(threads: int) -> Iterator[None]:
    """Sets the number of threads of torch and of NumPy's BLAS inside, and back after.

    Example:
        >>> import torch
        >>> from ansatz.training.threads import using_threads
        >>> with using_threads(1):
        ...     torch.get_num_threads()
        1
    """
    before = torch.get_num_threads()
    try:
        if threads != before:
            torch.set_num_threads(threads)
        with threadpool_limits(limits=threads, user_api="blas"):  # the analytic step's products
            yield
    finally:
        if threads != before:
            torch.set_num_threads(before)
