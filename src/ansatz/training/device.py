"""Where the numbers are crunched."""

import copy
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from ansatz.data.batch import Batch, to_device
from ansatz.errors import UsageError
from ansatz.modes import evaluation_mode

NAMES = ("auto", "cpu", "cuda", "mps")


def choose_device(name: str = "auto") -> torch.device:
    """The device called ``name``; ``"auto"`` takes CUDA, else Apple's MPS, else the CPU.

    Example:
        >>> from ansatz.training import choose_device
        >>> choose_device("cpu")
        device(type='cpu')
    """
    kind, _, number = str(name).partition(":")
    if kind not in NAMES or (number and not number.isdigit()):
        raise UsageError(f"device must be one of {', '.join(NAMES)}, got '{name}'.")
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": _has_mps()}
    if kind == "auto":
        return torch.device(next(d for d in ("cuda", "mps", "cpu") if available[d]))
    if not available[kind]:
        raise UsageError(
            f"device '{name}' is not available to this build of torch ({torch.__version__}) "
            "on this machine; use device='cpu' or 'auto'."
        )
    if kind == "cuda" and number and int(number) >= torch.cuda.device_count():
        raise UsageError(f"device '{name}': there are {torch.cuda.device_count()} CUDA devices.")
    return torch.device(name)


def refuse_half_precision(network: nn.Module, device: torch.device) -> None:
    """Half-precision weights on a CPU without the instructions for them are refused.

    There is no ``precision`` option: the weights' own dtype is the precision.
    """
    half = {p.dtype for p in network.parameters()} & {torch.float16, torch.bfloat16}
    if device.type != "cpu" or not half:
        return
    dtype = half.pop()
    test = "_is_mkldnn_bf16_supported" if dtype == torch.bfloat16 else "_is_mkldnn_fp16_supported"
    if not getattr(torch.ops.mkldnn, test)():
        raise UsageError(
            f"the weights are {str(dtype).removeprefix('torch.')}, which this CPU has no "
            "instructions for: products were measured 90 to 100 times slower than in float32. "
            "Use network.float()."
        )


def gradients(
    network: nn.Module, objective: nn.Module, batch: Batch, device: torch.device
) -> list[Tensor]:
    """Loss and gradients of copies of the modules on ``device``, brought back to the CPU."""
    network, objective = copy.deepcopy(network).to(device), copy.deepcopy(objective).to(device)
    with evaluation_mode(network, objective), torch.enable_grad():
        loss = objective(network, to_device(batch, device))
        mean = loss.total / loss.count
        parameters = [p for p in network.parameters() if p.requires_grad]
        found = torch.autograd.grad(mean, parameters, allow_unused=True)
    return [mean.detach().cpu(), *(g.cpu() for g in found if g is not None)]


def trusted_device(
    network: nn.Module,
    objective: nn.Module,
    batch: Batch,
    device: torch.device,
    *,
    compute: Callable[..., list[Tensor]] = gradients,
) -> torch.device:
    """``device`` if one forward and backward pass there agrees with the CPU, else the CPU.

    Only MPS is put to the test: some of its kernels have been wrong without an error.

    Args:
        network: its weights are on the CPU.
        objective: gives the loss.
        batch: on the CPU.
        device: the one to test.
        compute: gives loss and gradients on a device.
    """
    if device.type != "mps":
        return device
    try:
        reason = _disagreement(
            compute(network, objective, batch, torch.device("cpu")),
            compute(network, objective, batch, device),
        )
    except (RuntimeError, TypeError, NotImplementedError) as error:  # float64 is a TypeError
        reason = str(error).splitlines()[0]
    if reason is None:
        return device
    warnings.warn(f"training on the CPU, since {device} fails a check: {reason}", stacklevel=2)
    return torch.device("cpu")


def _disagreement(expected: list[Tensor], actual: list[Tensor]) -> str | None:
    for number, (e, a) in enumerate(zip(expected, actual, strict=True)):
        error = float((e - a).abs().max() / e.abs().max().clamp(min=1e-6)) if e.numel() else 0.0
        if not error < 1e-3:  # nan disagrees too
            what = "the loss" if number == 0 else f"gradient {number}"
            return f"{what} differs from the CPU's by a relative {error:.1e}."
    return None


def _has_mps() -> bool:
    return bool(torch.backends.mps.is_available())


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
    """Sets the number of threads of torch and of NumPy's BLAS inside, and back after."""
    before = torch.get_num_threads()
    try:
        if threads != before:
            torch.set_num_threads(threads)
        with threadpool_limits(limits=threads, user_api="blas"):  # the analytic step's products
            yield
    finally:
        if threads != before:
            torch.set_num_threads(before)
