"""A trainer's memory, nested as it comes, as plain JSON beside named tensors, and back."""

import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from ansatz.errors import ModelError, UsageError

# JSON has only objects with string keys, lists and finite numbers. Everything else becomes an
# object with one key that begins with "$".
_TAGS = ("$tensor", "$tuple", "$dict", "$float")


def pack_state(state: Any) -> tuple[Any, dict[str, Tensor]]:
    """Splits a nested state into a JSON value and the tensors in it.

    ``state`` is made of dicts (keys: strings, numbers, None, tuples of them), lists, tuples,
    tensors, numbers (nan and infinity too), strings, booleans and None; anything else is refused
    by its place. ``unpack_state(*pack_state(state))`` is ``state``, types and bits alike; only the
    order of a dict's string keys is not kept by a JSON file.

    Example:
        >>> import torch
        >>> from ansatz.storage import pack_state
        >>> pack_state({"step": 3, "best": float("inf"), "m": torch.zeros(1)})
        ({'step': 3, 'best': {'$float': 'inf'}, 'm': {'$tensor': 'm'}}, {'m': tensor([0.])})
    """
    tensors: dict[str, Tensor] = {}
    return _pack(state, (), tensors), tensors


def unpack_state(packed: Any, tensors: Mapping[str, Tensor], *, where: str = "state") -> Any:
    """The state that :func:`pack_state` split; what does not fit is a :class:`ModelError`.

    Args:
        packed: the JSON value.
        tensors: the tensors by name, all of which it must mention.
        where: the file's name, for errors.

    Example:
        >>> from ansatz.storage import pack_state, unpack_state
        >>> unpack_state(*pack_state({0: (1, 2.5), "a": [None, True]}))
        {0: (1, 2.5), 'a': [None, True]}
    """
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
