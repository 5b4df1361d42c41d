"""The machine of a fit: device, threads, random numbers, signals, processes."""

import copy
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from types import FrameType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import torch
import torch.distributed as dist
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from ansatz.data.batch import Batch, to_device
from ansatz.errors import Interrupted, UsageError
from ansatz.layers.mode import evaluation_mode
from ansatz.seeds import derive

if TYPE_CHECKING:
    from ansatz.training.processes.group import Processes

NAMES = ("auto", "cpu", "cuda", "mps")


def choose_device(name: str = "auto") -> torch.device:
    """Gives the device ``name``; ``"auto"`` takes CUDA, else Apple's MPS, else the CPU.

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
    """Refuses half-precision weights on a CPU without the instructions for them.

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
    """Gives ``device`` if a forward and backward pass there agree with the CPU, else the CPU.

    Only MPS is put to the test: some of its kernels have been wrong without an error.
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
    """Chooses 1 thread for a small network, else as many as torch may use.

    A function of shapes alone, so that a resumed run makes the same choice.
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


@contextmanager
def own_randomness(seed: int, device: torch.device) -> Iterator[None]:
    """Seeds torch's global generators inside; outside, the user's random state is as it was.

    Torch's dropout draws from the global generators, and from nowhere else.
    """
    kept = random_state(device)
    try:
        torch.default_generator.manual_seed(derive(seed, "fit"))
        if device.type == "cuda":
            with torch.cuda.device(device):
                torch.cuda.manual_seed(derive(seed, "fit"))
        elif device.type == "mps":
            torch.mps.manual_seed(derive(seed, "fit"))
        yield
    finally:
        set_random_state(kept, device)


def seed_step(
    seed: int, rank: int, number: int, device: torch.device, owned: dict[str, torch.Generator]
) -> None:
    """Seeds the random numbers of one process and step by (seed, rank, number).

    Each process of several draws its own dropout masks; since the stream begins anew with every
    step, a checkpoint by one process is enough to resume them all.
    """
    value = derive(seed, "fit", rank, number)
    torch.default_generator.manual_seed(value)
    if device.type == "cuda":
        torch.cuda.default_generators[device.index or 0].manual_seed(value)
    for name, generator in owned.items():
        generator.manual_seed(derive(value, name))


def random_state(device: torch.device, *modules: nn.Module) -> dict[str, Tensor]:
    """The state of torch's generators, and of any generator that a module owns."""
    state = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    elif device.type == "mps":
        state["mps"] = torch.mps.get_rng_state()
    return state | {name: g.get_state() for name, g in owned_generators(*modules).items()}


def set_random_state(state: dict[str, Any], device: torch.device, *modules: nn.Module) -> None:
    """Restores what ``random_state`` gave."""
    torch.set_rng_state(state["cpu"])
    if "cuda" in state and device.type == "cuda":
        torch.cuda.set_rng_state(state["cuda"], device)
    elif "mps" in state and device.type == "mps":
        torch.mps.set_rng_state(state["mps"])
    for name, owned in owned_generators(*modules).items():
        if name in state:
            owned.set_state(state[name])


def owned_generators(*modules: nn.Module) -> dict[str, torch.Generator]:
    """The generators that parts of the modules own, by a name that does not change."""
    return {
        f"{number}.{name}.{attribute}": value
        for number, module in enumerate(modules)
        for name, part in module.named_modules()
        for attribute, value in vars(part).items()
        if isinstance(value, torch.Generator)
    }


class Signals:
    """Records the first SIGINT or SIGTERM; a second one stops at once.

    Handlers are installed in the main thread only (Python allows no other), and put back after. A
    signal that is being ignored, as under nohup, stays ignored.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self.step = 0  # for the message of a second signal
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Signals":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            # None stands for a handler that was not set from Python and cannot be put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._before.clear()

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None:
            raise Interrupted(number, self.step)
        self.received = number


P = ParamSpec("P")
T = TypeVar("T")

_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_OWNER = "ANSATZ_PROCESS"  # which process the variables above are of: its children inherit them

_alone: ContextVar[bool] = ContextVar("alone", default=False)
_opened: "Processes | None" = None


def current_processes() -> "Processes | None":
    """Gives the processes that this one belongs to; None when it is the only one.

    A group that the program has opened is used as it is. Under ``torchrun``, or with its
    environment variables set, one is opened here and stays open until the program ends.

    Example:
        >>> from ansatz.training import current_processes
        >>> current_processes() is None
        True
    """
    global _opened
    if _alone.get() or not dist.is_available():
        return None
    if _opened is not None and (_opened.broken or dist.is_initialized()):
        return _opened if _opened.size > 1 else None
    if not dist.is_initialized() and not is_launched():
        return None
    from ansatz.training.processes.group import Processes, open_group

    if not dist.is_initialized():
        open_group()
        os.environ[_OWNER] = f"{os.getpid()} {_meeting_place()}"
    rank, size = dist.get_rank(), dist.get_world_size()
    local = int(os.environ.get("LOCAL_RANK", rank)), int(os.environ.get("LOCAL_WORLD_SIZE", size))
    _opened = Processes(rank, size, *local)
    if size > 1:
        _opened.connect()
    return _opened if size > 1 else None


def is_launched() -> bool:
    """Tests whether something like ``torchrun`` started this process as one of several."""
    if any(name not in os.environ for name in _VARIABLES):
        return False
    owner, _, place = os.environ.get(_OWNER, "").partition(" ")
    is_child = place == _meeting_place() and owner != str(os.getpid())
    return not is_child and int(os.environ["WORLD_SIZE"]) > 1


def _meeting_place() -> str:
    return f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"


@contextmanager
def alone() -> Iterator[None]:
    """Lets each process fit a model of its own inside, whatever other processes there are.

    Example:
        >>> from ansatz.training import alone, current_processes
        >>> with alone():
        ...     print(current_processes())
        None
    """
    token = _alone.set(True)
    try:
        yield
    finally:
        _alone.reset(token)


def in_all_processes(function: Callable[P, T]) -> Callable[P, T]:
    """Wraps a function that all processes call: an error in one is raised in all."""

    @wraps(function)
    def call(*arguments: P.args, **options: P.kwargs) -> T:
        processes = current_processes()
        if processes is None:
            return function(*arguments, **options)
        with processes.together():
            return function(*arguments, **options)

    return call


def by_first(compute: Callable[[], T]) -> T:
    """Computes in the first process, and gives all processes the result (plain JSON)."""
    processes = current_processes()
    if processes is None:
        return compute()
    value = None
    if processes.is_first:
        with alone():
            value = compute()
    found: T = processes.from_first(value)
    return found


def is_sharded(tensor: object) -> bool:
    """Tests whether a tensor is split over processes, as ``fully_shard`` leaves parameters."""
    # A DTensor exists only where its module was imported; importing it here would cost a second.
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(tensor, module.DTensor)


def has_shards(network: nn.Module) -> bool:
    """Tests whether any parameter of the network is split over processes."""
    return any(is_sharded(p) for p in network.parameters())
