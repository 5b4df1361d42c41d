"""Named tensors in a safetensors file: checked before they are read, loaded whole or not at all."""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from ansatz.errors import ModelError, UsageError
from ansatz.storage.disk import read_bytes, write_file
from ansatz.storage.json_file import read_json, shorten

LIMIT_HEADER = 16 * 2**20

_ITEM_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E4M3FNUZ": 1, "F8_E5M2FNUZ": 1,
    "U16": 2, "I16": 2, "F16": 2, "BF16": 2, "U32": 4, "I32": 4, "F32": 4,
    "U64": 8, "I64": 8, "F64": 8, "C64": 8,
}  # fmt: skip
_DTYPES = {
    torch.bool, torch.uint8, torch.int8, torch.uint16, torch.int16, torch.uint32, torch.int32,
    torch.uint64, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64,
    torch.complex64, torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz,
    torch.float8_e5m2fnuz,
}  # fmt: skip


def encode_tensors(tensors: Mapping[str, Tensor]) -> bytes:
    """The safetensors file of some named tensors, the same bytes for the same values.

    Tensors that share memory (tied weights, views of one flat vector) are written one by one:
    each name gets its own values, and loading them into tied weights ties nothing twice.

    Example:
        >>> import torch
        >>> from ansatz.storage import encode_tensors, read_tensors
        >>> read_tensors(encode_tensors({"w": torch.ones(2)}))
        {'w': tensor([1., 1.])}
    """
    ready: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in tensors.items():
        _check_writable(name, tensor)
        tensor = tensor.detach().cpu().contiguous()
        storage = tensor.untyped_storage()
        if storage.nbytes() != tensor.nbytes or storage.data_ptr() in seen:
            tensor = tensor.clone(memory_format=torch.contiguous_format)
        seen.add(tensor.untyped_storage().data_ptr())
        ready[name] = tensor
    return safetensors.torch.save(ready)


def write_tensors(
    path: str | Path, tensors: Mapping[str, Tensor], *, overwrite: bool = False
) -> Path:
    """Writes :func:`encode_tensors` of some tensors, whole or not at all.

    Example:
        >>> import tempfile, torch
        >>> from ansatz.storage import read_tensors, write_tensors
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     read_tensors(write_tensors(folder + "/a.safetensors", {"b": torch.zeros(1)}))
        {'b': tensor([0.])}
    """
    return write_file(path, encode_tensors(tensors), overwrite=overwrite)


def read_tensors(
    source: str | Path | bytes, *, limit_bytes: int | None = None, name: str | None = None
) -> dict[str, Tensor]:
    """The tensors of a safetensors file from anyone; whatever is wrong is a :class:`ModelError`.

    The header is checked here first, sentence by sentence, since the library behind it takes two
    tensors of one name; only then are the values read. No memory is asked for on a header's word:
    the sizes must add up to the file's own.

    Args:
        source: a path, or the content itself.
        limit_bytes: the largest size that is read; default: any.
        name: what errors call the file; by default its own name.

    Example:
        >>> from ansatz.storage import read_tensors
        >>> read_tensors(b"PK", name="weights.safetensors")
        Traceback (most recent call last):
        ...
        ansatz.errors.ModelError: weights.safetensors: 2 bytes, too short for a safetensors file

    References:
        https://github.com/huggingface/safetensors#format
    """
    if isinstance(source, bytes):
        name, content = name or "safetensors", source
        if limit_bytes is not None and len(content) > limit_bytes:
            raise ModelError(f"{name}: {len(content)} bytes, at most {limit_bytes} are read")
    else:
        name = name or Path(source).name
        content = read_bytes(source, limit_bytes=limit_bytes, name=name)
    _check_header(content, name)
    try:
        return safetensors.torch.load(content)
    except (safetensors.SafetensorError, RuntimeError, ValueError, TypeError, KeyError) as error:
        raise ModelError(f"{name}: not a safetensors file: {error}") from None


def load_into(module: nn.Module, tensors: Mapping[str, Tensor], *, where: str) -> None:
    """Gives a module its weights, all of them and no others; on any misfit it stays as it was.

    Args:
        module: what is to hold the weights.
        tensors: its ``state_dict``, as read.
        where: the file's name, for errors.

    Example:
        >>> import torch
        >>> from ansatz.storage import load_into
        >>> load_into(torch.nn.Linear(2, 1), {"weight": torch.ones(1, 2)}, where="w.safetensors")
        Traceback (most recent call last):
        ...
        ansatz.errors.ModelError: w.safetensors: lacks the tensor 'bias'
    """
    own = module.state_dict()
    if missing := [name for name in own if name not in tensors]:
        raise ModelError(f"{where}: lacks the tensor{_listing(missing)}")
    if extra := [name for name in tensors if name not in own]:
        raise ModelError(f"{where}: holds the unknown tensor{_listing(extra)}")
    for name, target in own.items():
        shape, expected = tuple(tensors[name].shape), tuple(target.shape)
        if shape != expected:
            raise ModelError(f"{where}: tensor {shorten(name)} is {shape}, expected {expected}")
        if tensors[name].dtype != target.dtype:
            raise ModelError(
                f"{where}: tensor {shorten(name)} is {tensors[name].dtype}, expected {target.dtype}"
            )
    module.load_state_dict(dict(tensors), strict=True)


def _check_writable(name: object, tensor: object) -> None:
    if not isinstance(name, str) or name == "__metadata__":
        raise UsageError(f"a tensor's name must be a string, got {name!r}")
    if not isinstance(tensor, Tensor):
        raise UsageError(f"tensor {shorten(name)}: expected a tensor, got {type(tensor).__name__}")
    if tensor.layout is not torch.strided or tensor.is_meta or tensor.dtype not in _DTYPES:
        kind = f"{tensor.dtype}, {tensor.layout}, {tensor.device}"
        raise UsageError(f"tensor {shorten(name)} cannot be saved: {kind}; save a dense tensor")


def _check_header(content: bytes, name: str) -> None:
    if len(content) < 8:
        raise ModelError(f"{name}: {len(content)} bytes, too short for a safetensors file")
    length = int.from_bytes(content[:8], "little")
    if length > LIMIT_HEADER:
        raise ModelError(
            f"{name}: its header claims {length} bytes, at most {LIMIT_HEADER} are read "
            "(is it a safetensors file?)"
        )
    if length > len(content) - 8:
        raise ModelError(
            f"{name}: truncated: its header claims {length} bytes, {len(content) - 8} are there"
        )
    header = read_json(content[8 : 8 + length], max_depth=8, name=f"{name} (header)")
    if not isinstance(header, dict):
        raise ModelError(f"{name}: its header is no JSON object")
    _check_metadata(header.pop("__metadata__", {}), name)
    spans = [_span(tensor, entry, name) for tensor, entry in header.items()]
    _check_tiling(sorted(spans), len(content) - 8 - length, name)


def _check_metadata(metadata: Any, name: str) -> None:
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ModelError(f"{name}: its __metadata__ must map names to strings")


def _span(tensor: str, entry: Any, name: str) -> tuple[int, int, str]:
    """Begin, end and name of one tensor's bytes, after its header entry has been checked."""
    where = f"{name}: tensor {shorten(tensor)}"
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ModelError(f"{where} must have exactly dtype, shape and data_offsets")
    if not isinstance(entry["dtype"], str) or entry["dtype"] not in _ITEM_BYTES:
        raise ModelError(f"{where} has the unknown dtype {shorten(entry['dtype'])}")
    if not _are_sizes(entry["shape"]) or len(entry["shape"]) > 64:
        raise ModelError(f"{where} has the impossible shape {shorten(entry['shape'])}")
    if not _are_sizes(entry["data_offsets"]) or len(entry["data_offsets"]) != 2:
        raise ModelError(f"{where} has the impossible offsets {shorten(entry['data_offsets'])}")
    # Python's integers do not overflow; the machine's do, at zero-sized tensors too.
    if math.prod(max(size, 1) for size in entry["shape"]) * _ITEM_BYTES[entry["dtype"]] >= 2**63:
        raise ModelError(f"{where} has a shape whose size overflows: {shorten(entry['shape'])}")
    begin, end = entry["data_offsets"]
    need = math.prod(entry["shape"]) * _ITEM_BYTES[entry["dtype"]]
    if end - begin != need:
        raise ModelError(
            f"{where} needs {need} bytes for {entry['dtype']} {entry['shape']}, "
            f"its offsets give {end - begin}"
        )
    return begin, end, tensor


def _check_tiling(spans: Iterable[tuple[int, int, str]], data_bytes: int, name: str) -> None:
    """The tensors lie side by side from the first byte of data to the last."""
    position = 0
    for begin, end, tensor in spans:
        if begin < position:
            raise ModelError(f"{name}: tensor {shorten(tensor)} overlaps the one before it")
        if begin > position:
            raise ModelError(
                f"{name}: {begin - position} bytes before tensor {shorten(tensor)} belong to none"
            )
        position = end
    if position > data_bytes:
        raise ModelError(
            f"{name}: truncated: {position} bytes of data expected, {data_bytes} found"
        )
    if position < data_bytes:
        raise ModelError(f"{name}: {data_bytes - position} bytes after the last tensor")


def _are_sizes(value: Any) -> bool:
    return isinstance(value, list) and all(
        type(size) is int and 0 <= size < 2**63 for size in value
    )


def _listing(names: list[str]) -> str:
    first = ", ".join(shorten(name) for name in names[:3])
    rest = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{'s' if len(names) > 1 else ''} {first}{rest}"
