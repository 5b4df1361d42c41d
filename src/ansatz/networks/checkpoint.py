"""Weights of other networks: read from files, matched by name and loaded."""

import io
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from ansatz.errors import ModelError, UsageError
from ansatz.layers.lora import LoRA
from ansatz.networks.transfer import head_names
from ansatz.storage.disk import read_bytes
from ansatz.storage.json_file import shorten
from ansatz.storage.tensors import read_tensors

LIMIT_BYTES = 4 * 2**30  # of a file, and of what it unpacks to
_TORCH = (".pth", ".pt", ".tar", ".bin")
_NESTED = ("state_dict", "model_state_dict", "model", "network")  # where programs put the weights
_DEPTH = 16  # wrappers around the weights or their names; a file from anyone could have no end
_PREFIXES = ("module.", "model.", "network.", "_orig_mod.")  # what wrappers put before each name


def read_weights(path: str | Path, *, limit_bytes: int = LIMIT_BYTES) -> dict[str, Tensor]:
    """Reads the named tensors of a ``.safetensors``, ``.pth`` or ``.pt`` file.

    Args:
        path: the file.
        limit_bytes: larger files are refused.

    Example:
        >>> import tempfile, torch
        >>> from ansatz.networks import read_weights
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     saved = {"state_dict": {"module.w": torch.ones(2)}, "epoch": 3}
        ...     torch.save(saved, folder + "/a.pt")
        ...     read_weights(folder + "/a.pt")
        {'w': tensor([1., 1.])}
    """
    name, suffix = Path(path).name, Path(path).suffix.lower()
    if suffix == ".safetensors":
        found: Any = read_tensors(path, limit_bytes=limit_bytes)
    elif suffix in _TORCH:
        found = _read_torch(read_bytes(path, limit_bytes=limit_bytes), name, limit_bytes)
    else:
        raise ModelError(f"{name}: weights come as .safetensors, .pth or .pt files.")
    return weights_in(found, name)


def weights_in(found: Any, name: str) -> dict[str, Tensor]:
    """The named tensors of what a program saved, without the prefixes of wrappers."""
    return _without_prefix(_tensors(found, name))


def _read_torch(content: bytes, name: str, limit_bytes: int) -> Any:
    """The one place where a file of torch is read: tensors and plain containers, or a refusal."""
    if content[:4] == b"PK\x03\x04":
        _check_archive(content, name, limit_bytes)
    elif content[:2] != b"\x80\x02":  # the legacy format begins with a pickled number
        raise ModelError(
            f"{name}: not a file of weights as torch.save writes it (neither its zip nor its "
            "older format)."
        )
    try:
        return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception as error:  # whatever a hostile file makes the reader trip over
        raise ModelError(f"{name}: {_refusal(str(error))}") from None


def _check_archive(content: bytes, name: str, limit_bytes: int) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except Exception:  # a damaged directory trips zipfile in many ways
        raise ModelError(f"{name}: a damaged or truncated file of weights.") from None
    if size > limit_bytes:
        raise ModelError(f"{name}: it unpacks to {size} bytes, at most {limit_bytes} are read.")


def _refusal(text: str) -> str:
    """Torch's explanation is a page long; its one word that helps is the forbidden name."""
    culprit = re.search(r"GLOBAL ([\w.]+)", text)
    if culprit or "weights_only" in text.lower() or "unsupported" in text.lower():
        named = f" ({culprit.group(1)[:80]})" if culprit else ""
        return (
            f"it holds Python objects{named} beside tensors, which could run code; refused, "
            "nothing was run. Save network.state_dict() alone, best as .safetensors."
        )
    return f"a damaged or truncated file of weights ({shorten(' '.join(text.split()))})."


def _tensors(found: Any, name: str) -> dict[str, Tensor]:
    """The state_dict in what was read."""
    found = _innermost(found, name)
    if not isinstance(found, Mapping) or not found:
        kind = "nothing" if isinstance(found, Mapping) else f"a {type(found).__name__}"
        raise ModelError(f"{name}: it holds {kind}, expected tensors by name (a state_dict).")
    for key, value in found.items():
        if not isinstance(key, str) or not isinstance(value, Tensor) or value.is_nested:
            raise ModelError(
                f"{name}: it holds a {type(value).__name__} under {shorten(str(key))}, "
                "expected tensors by name (a state_dict)."
            )
    return dict(found)


def _innermost(found: Any, name: str) -> Any:
    """Unpacks the containers that training programs put around the weights."""
    for _ in range(_DEPTH):
        inner = [found[k] for k in _NESTED if k in found] if isinstance(found, Mapping) else []
        nested = next((value for value in inner if isinstance(value, Mapping)), None)
        if nested is None:
            return found
        found = nested
    raise ModelError(f"{name}: its weights lie more than {_DEPTH} containers deep.")


def _without_prefix(found: dict[str, Tensor]) -> dict[str, Tensor]:
    for _ in range(_DEPTH):
        common = next((p for p in _PREFIXES if all(key.startswith(p) for key in found)), None)
        if common is None:
            break
        found = {key[len(common) :]: value for key, value in found.items()}
    return found


Head = Literal["reset", "keep", "strict"]
Channels = Literal["same", "mean", "repeat"]

_WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)
_COUNTER = "num_batches_tracked"  # of batch norms; old files are without it


class Loaded(NamedTuple):
    """The report of :func:`load_weights`: which tensors of a file went where.

    Args:
        file: its name.
        tensors: names of the network's tensors that have the file's values now.
        fresh: those that were left as they were: the head.
        adapted: those of ``tensors`` that were changed to fit other channels.
        unused: what the file holds and the network has no place for.

    Example:
        >>> from ansatz.networks import Loaded
        >>> print(Loaded("a.pth", ("conv.weight",), ("fc.weight", "fc.bias"), (), ()))
        a.pth: 1 tensor loaded; left fresh: fc.weight, fc.bias
    """

    file: str
    tensors: tuple[str, ...]
    fresh: tuple[str, ...]
    adapted: tuple[str, ...]
    unused: tuple[str, ...]

    def __str__(self) -> str:
        count = len(self.tensors)
        text = f"{self.file}: {count} tensor{'s' if count != 1 else ''} loaded"
        parts = {"left fresh": self.fresh, "adapted": self.adapted, "unused": self.unused}
        return text + "".join(f"; {what}: {_listing(n)}" for what, n in parts.items() if n)


def load_weights(
    network: nn.Module,
    path: str | Path | Mapping[str, Tensor],
    *,
    head: Head = "reset",
    channels: Channels = "same",
    limit_bytes: int = LIMIT_BYTES,
) -> Loaded:
    """Gives a network the weights of a ``.safetensors``, ``.pth`` or ``.pt`` file.

    Names and shapes must agree but for the head, or the network stays as it was. Names are read as
    torchvision, ``DataParallel`` and training programs write them: a common prefix such as
    ``module.`` is taken off, and weights under ``state_dict`` or ``model`` are found. Files of
    torch are read by its ``weights_only`` reader: a file that holds anything but tensors and plain
    containers is refused, and no code of it is run.

    Args:
        network: changed in place.
        path: the file, or what ``state_dict()`` of another network gave.
        head: ``"reset"`` leaves the last maps as they are: the file's belong to other outcomes.
            ``"keep"`` takes them if they fit. ``"strict"`` demands them.
        channels: what to do if the first convolution was made for another number of channels, C
            instead of C': ``"same"`` refuses; ``"mean"`` gives each channel the mean weight,
            ``"repeat"`` the old ones in turn, both times C / C', so that x whose channels are all
            alike is seen as before.
        limit_bytes: larger files are refused.

    Returns:
        What was loaded and what was not; ``str()`` of it is a sentence.

    Raises:
        ModelError: the file is missing, damaged, holds code, or does not fit.

    Example:
        >>> import tempfile, torch
        >>> from ansatz.networks import ResNet18, load_weights
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     torch.save(ResNet18(3, 1000, width=4).state_dict(), folder + "/resnet18.pth")
        ...     print(load_weights(ResNet18(3, 10, width=4), folder + "/resnet18.pth"))
        resnet18.pth: 120 tensors loaded; left fresh: fc.weight, fc.bias
    """
    for option, chosen, known in (("head", head, Head), ("channels", channels, Channels)):
        if chosen not in get_args(known):
            raise UsageError(
                f"{option} must be one of {', '.join(get_args(known))}, got {chosen!r}."
            )
    if isinstance(path, Mapping):
        name, held = "state_dict", weights_in(path, "state_dict")
    else:
        name, held = Path(path).name, read_weights(path, limit_bytes=limit_bytes)
    found = _named(network, held)
    own = network.state_dict()
    heads = {key for key in own if _within(key, head_names(network))}
    changes = {f"{name}.{part}" for name in adapted_maps(network) for part in ("A", "B")}
    fresh = _fresh(own, found, heads, head) | (changes - found.keys())
    unused = {key for key in found if _within(key, getattr(network, "optional", ()))}
    unused |= set() if head == "strict" else {key for key in found if key in fresh}
    wanted = {k: v for k, v in found.items() if k not in unused}
    adapted = _adapt(network, wanted, channels)
    _require_names(name, [k for k in own if k not in fresh], wanted)
    fitting = {k: _fitting(name, k, v, own[k], heads) for k, v in wanted.items()}
    network.load_state_dict({**own, **fitting}, strict=True)
    order = [key for key in own if key in wanted]
    left = tuple(key for key in own if key in fresh)
    beside = tuple(key for key in found if key in unused and key not in own)
    return Loaded(name, tuple(order), left, adapted, beside)


def _named(network: nn.Module, found: dict[str, Tensor]) -> dict[str, Tensor]:
    """Names as the network has them, where older files have others."""
    rename = getattr(network, "checkpoint_name", None)
    found = found if rename is None else {rename(key): value for key, value in found.items()}
    inner = {
        f"{name}.{part}": f"{name}.linear.{part}"
        for name in adapted_maps(network)
        for part in ("weight", "bias")
    }
    return {inner.get(key, key): value for key, value in found.items()}


def adapted_maps(network: nn.Module) -> list[str]:
    """The names of the maps with low-rank changes."""
    return [name for name, part in network.named_modules() if isinstance(part, LoRA)]


def _within(key: str, parts: tuple[str, ...]) -> bool:
    return any(key == part or key.startswith(f"{part}.") for part in parts)


def _fresh(
    own: Mapping[str, Tensor], found: Mapping[str, Tensor], heads: set[str], head: Head
) -> set[str]:
    """The tensors of the head that stay as they are."""
    if head == "strict":
        return set()
    fits = all(key in found and found[key].shape == own[key].shape for key in heads)
    return set() if head == "keep" and fits else heads


def _adapt(network: nn.Module, wanted: dict[str, Tensor], channels: Channels) -> tuple[str, ...]:
    """The first convolution's kernels for another number of channels, in place in ``wanted``."""
    convolutions = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
    first = next(((n, m) for n, m in network.named_modules() if isinstance(m, convolutions)), None)
    if channels == "same" or first is None or f"{first[0]}.weight" not in wanted:
        return ()
    key, own = f"{first[0]}.weight", first[1].weight
    if first[1].groups != 1 or not _is_of_other_channels(wanted[key], own):
        return ()
    kernel = wanted[key].to(own.dtype)
    before, after = kernel.shape[1], own.shape[1]
    if channels == "mean":
        kernel = kernel.mean(1, keepdim=True).repeat_interleave(after, 1)
    else:
        kernel = kernel[:, [c % before for c in range(after)]]
    wanted[key] = kernel * (before / after)
    return (key,)


def _is_of_other_channels(kernel: Tensor, own: Tensor) -> bool:
    """Tests whether it can be adapted; ``_fitting`` reports other misfits."""
    if kernel.ndim != own.ndim or not _is_of_numbers(kernel):
        return False
    others = [axis for axis in range(own.ndim) if axis != 1]
    same = all(kernel.shape[axis] == own.shape[axis] for axis in others)
    return same and 0 < kernel.shape[1] != own.shape[1]


def _is_of_numbers(value: Tensor) -> bool:
    """Dense floating point that torch can compute with."""
    known = value.is_floating_point() and not str(value.dtype).startswith("torch.float4")
    return known and value.layout == torch.strided


def _require_names(name: str, needed: list[str], wanted: Mapping[str, Tensor]) -> None:
    missing = [k for k in needed if k not in wanted and not k.endswith(_COUNTER)]
    known = set(needed)
    extra = [k for k in wanted if k not in known]
    if missing or extra:
        wrong = [f"lacks {len(missing)} ({_listing(tuple(missing))})"] if missing else []
        wrong += [f"holds {len(extra)} unknown ({_listing(tuple(extra))})"] if extra else []
        raise ModelError(
            f"{name}: its tensors are not those of this network: it {' and '.join(wrong)}."
        )


def _fitting(name: str, key: str, value: Tensor, own: Tensor, heads: set[str]) -> Tensor:
    """The tensor in the network's own precision, or a refusal."""
    if value.shape != own.shape:
        hint = " Its head is for other outcomes: head='reset'." if key in heads else ""
        if own.ndim > 2 and _is_of_other_channels(value, own):
            hint = " For other channels: channels='mean' or 'repeat'."
        raise ModelError(
            f"{name}: tensor {shorten(key)} is {tuple(value.shape)}, "
            f"expected {tuple(own.shape)}.{hint}"
        )
    whole = value.layout == torch.strided and value.dtype in _WHOLE
    if not (_is_of_numbers(value) if own.is_floating_point() else whole):
        kind = f"{value.dtype}, {value.layout}"
        raise ModelError(f"{name}: tensor {shorten(key)} is {kind}, expected {own.dtype}.")
    cast = value.to(own.dtype)  # after it, since what is finite may be too large for it
    if value.is_meta or not bool(cast.isfinite().all()):
        raise ModelError(
            f"{name}: tensor {shorten(key)} holds numbers that are not finite in {own.dtype}."
        )
    return cast


def _listing(names: tuple[str, ...]) -> str:
    first = ", ".join(shorten(name)[1:-1] for name in names[:3])  # escaped, without the quotes
    return first + (f" and {len(names) - 3} more" if len(names) > 3 else "")
