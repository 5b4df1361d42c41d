"""Arrays and lists as tensors: functions that are written for tensors take all three."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

F = TypeVar("F", bound=Callable[..., Any])


def to_tensor(value: Any, like: Tensor | None = None) -> Tensor:
    """Converts a NumPy array, a list, a pandas column or a number; a tensor stays what it is.

    ``like`` gives dtype and device. Without it the array's own dtype stays, except that truth
    values become 0 and 1.
    """
    if isinstance(value, Tensor):
        return value
    array = np.asarray(value, order="C")
    if array.dtype.kind not in "biuf":
        raise TypeError(f"expected numbers, got {array.dtype} values such as {_first(array)!r}.")
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    elif array.dtype.kind in "bu":
        array = array.astype(np.int64)
    if like is not None:
        return torch.tensor(array, dtype=like.dtype, device=like.device)
    return torch.tensor(array)


def takes_arrays(function: F) -> F:
    """Lets a function of tensors take NumPy arrays, lists and pandas columns as well.

    It gives back what it was given: tensors where at least one argument is a tensor, otherwise
    NumPy arrays and floats. Records that a function returns hold tensors in both cases. Labels
    that are not numbers are coded 0, 1, ... in sorted order, those of all arguments together.
    """
    signature = inspect.signature(function)
    names = [p.name for p in signature.parameters.values() if takes_tensor(p)]

    @wraps(function)
    def wrapped(*args: Any, **options: Any) -> Any:
        if all(isinstance(value, _PLAIN) for value in (*args, *options.values())):
            return function(*args, **options)
        bound = signature.bind(*args, **options)
        given = {n: bound.arguments[n] for n in names if bound.arguments.get(n) is not None}
        tensor = next((v for v in given.values() if isinstance(v, Tensor)), None)
        arrays = {n: np.asarray(v) for n, v in given.items() if not isinstance(v, Tensor)}
        for name, value in _coded(arrays).items():
            converted = to_tensor(value)
            bound.arguments[name] = converted if tensor is None else converted.to(tensor.device)
        result = function(*bound.args, **bound.kwargs)
        if tensor is not None or not arrays or not isinstance(result, Tensor):
            return result
        return result.detach().cpu().numpy()[()]

    return wrapped  # type: ignore[return-value]


_PLAIN = (Tensor, type(None), int, float, str)


def takes_tensor(parameter: inspect.Parameter) -> bool:
    """Tests whether a parameter is annotated as a tensor, or one that may be left out."""
    return parameter.annotation in (Tensor, Tensor | None)


def _coded(arrays: dict[str, Any]) -> dict[str, Any]:
    """The arrays with their labels as codes, where there are labels."""
    labels = {n: a for n, a in arrays.items() if a.dtype.kind in "OSU"}
    if not labels:
        return arrays
    try:
        known = np.unique(np.concatenate([a.ravel() for a in labels.values()]))
    except TypeError:
        raise TypeError("labels must be of one type, got a mixture that has no order.") from None
    return arrays | {n: np.searchsorted(known, a) for n, a in labels.items()}


def _first(array: Any) -> Any:
    return array.ravel()[0] if array.size else array
