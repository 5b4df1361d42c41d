"""Running out of memory, as torch spells it on each device."""

import torch

_WORDS = ("out of memory", "not enough memory", "can't allocate memory", "cannot allocate memory")


def is_out_of_memory(error: BaseException) -> bool:
    """True for the errors that mean "too little memory", of any device and of the host.

    Example:
        >>> from ansatz.training.memory import is_out_of_memory
        >>> is_out_of_memory(RuntimeError("DefaultCPUAllocator: not enough memory: you tried ..."))
        True
    """
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(w in str(error).lower() for w in _WORDS)
