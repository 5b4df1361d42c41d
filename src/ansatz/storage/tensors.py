"""Safetensors files, checked before they are read, and nested states as JSON and tensors."""

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
    """Encodes named tensors as safetensors, the same bytes for the same values.

    Tensors that share memory (tied weights, views of one flat vector) are written one by one:
    each name gets its own values, and loading them into tied weights ties nothing twice.
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
    """Writes :func:`encode_tensors` of some tensors, whole or not at all."""
    return write_file(path, encode_tensors(tensors), overwrite=overwrite)


def read_tensors(
    source: str | Path | bytes, *, limit_bytes: int | None = None, name: str | None = None
) -> dict[str, Tensor]:
    """Reads a safetensors file from anyone; whatever is wrong is a :class:`ModelError`.

    The header is checked here first, sentence by sentence, since the library behind it takes two
    tensors of one name; only then are the values read. No memory is asked for on a header's word:
    the sizes must add up to the file's own.

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
    """Gives a module its weights, all of them and no others; on any misfit it stays as it was."""
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
        raise ModelError(f"{name}: its header is not a JSON object")
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


# JSON has only objects with string keys, lists and finite numbers. Everything else becomes an
# object with one key that begins with "$".
_TAGS = ("$tensor", "$tuple", "$dict", "$float")


def pack_state(state: Any) -> tuple[Any, dict[str, Tensor]]:
    """Splits a nested state into a JSON value and the tensors in it.

    ``state`` is made of dicts (keys: strings, numbers, None, tuples of them), lists, tuples,
    tensors, numbers (nan and infinity too), strings, booleans and None; anything else is refused
    by its place. ``unpack_state(*pack_state(state))`` is ``state``, types and bits alike; only the
    order of a dict's string keys is not kept by a JSON file.
    """
    tensors: dict[str, Tensor] = {}
    return _pack(state, (), tensors), tensors


def unpack_state(packed: Any, tensors: Mapping[str, Tensor], *, where: str = "state") -> Any:
    """Joins the state that :func:`pack_state` split; a misfit is a :class:`ModelError`."""
    used: set[str] = set()
    try:
        state = _unpack(packed, tensors, used)
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from None
    if unused := sorted(set(tensors) - used):
        raise ModelError(f"{where}: does not mention the tensor {unused[0]!r}")
    return state


def _pack(value: Any, place: tuple[str, ...], tensors: dict[str, Tensor]) -> Any:
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, Tensor):
        return {"$tensor": _name(value, place, tensors)}
    if type(value) is list:
        return [_pack(item, (*place, str(i)), tensors) for i, item in enumerate(value)]
    if type(value) is tuple:
        return {"$tuple": [_pack(item, (*place, str(i)), tensors) for i, item in enumerate(value)]}
    if isinstance(value, dict):
        return _pack_dict(value, place, tensors)
    where = ".".join(place) or "the state"
    raise UsageError(f"{where}: a {type(value).__name__} cannot be saved; use tensors and numbers")


def _pack_dict(value: dict[Any, Any], place: tuple[str, ...], tensors: dict[str, Tensor]) -> Any:
    if all(type(key) is str for key in value) and not (len(value) == 1 and _tag(value)):
        return {key: _pack(item, (*place, key), tensors) for key, item in value.items()}
    pairs = []
    for key, item in value.items():
        inner = (*place, str(key))
        pairs.append([_pack(key, inner, tensors), _pack(item, inner, tensors)])
    return {"$dict": pairs}


def _name(tensor: Tensor, place: tuple[str, ...], tensors: dict[str, Tensor]) -> str:
    """The tensor's place in the state; {"a.b": x, "a": {"b": y}} makes a second one differ."""
    name = base = ".".join(place) or "state"
    count = 1
    while name in tensors:
        count += 1
        name = f"{base}#{count}"
    tensors[name] = tensor
    return name


def _tag(value: dict[str, Any]) -> str | None:
    key = next(iter(value))
    return key if key in _TAGS else None


def _unpack(packed: Any, tensors: Mapping[str, Tensor], used: set[str]) -> Any:
    if isinstance(packed, list):
        return [_unpack(item, tensors, used) for item in packed]
    if not isinstance(packed, dict):
        return packed
    tag = _tag(packed) if len(packed) == 1 else None
    if tag is None:
        return {key: _unpack(item, tensors, used) for key, item in packed.items()}
    return _unpack_tag(tag, packed[tag], tensors, used)


def _unpack_tag(tag: str, value: Any, tensors: Mapping[str, Tensor], used: set[str]) -> Any:
    if tag == "$float" and value in ("nan", "inf", "-inf"):
        return float(value)
    if tag == "$tensor" and isinstance(value, str):
        if value not in tensors:
            raise ModelError(f"the tensor {value[:80]!r} is missing")
        used.add(value)
        return tensors[value]
    if tag == "$tuple" and isinstance(value, list):
        return tuple(_unpack(item, tensors, used) for item in value)
    if tag == "$dict" and isinstance(value, list):
        return _unpack_pairs(value, tensors, used)
    raise ModelError(f"holds a malformed {tag}")


def _unpack_pairs(pairs: list[Any], tensors: Mapping[str, Tensor], used: set[str]) -> Any:
    found = {}
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2:
            raise ModelError("holds a malformed $dict")
        key = _unpack(pair[0], tensors, used)
        try:
            repeated = key in found
        except TypeError:
            raise ModelError("holds a malformed $dict key") from None
        if repeated:
            raise ModelError(f"holds the key {str(key)[:80]!r} twice")
        found[key] = _unpack(pair[1], tensors, used)
    return found
