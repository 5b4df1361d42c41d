"""Finds the axis of an array that holds the channels."""

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from ansatz.errors import DataError, UsageError

Channels = Literal["auto", "first", "last"] | None
_USUAL = (1, 3, 4)  # grey, colour, colour with alpha
_LEADS = 16  # channels that signals have at most, as a rule
_LONG = 8  # and how many times as many samples


def channels_first(
    values: Tensor,
    channels: Channels = "auto",
    what: str = "the array",
    *,
    count: int | None = None,
    size: tuple[int, ...] | None = None,
) -> Tensor:
    """An array of examples as ``(N, C, *size)``.

    =================  ==============================================  =======================
    shape              ``channels="auto"``                             otherwise
    =================  ==============================================  =======================
    ``(N, L)``         signals of one channel                          ``None``: the same
    ``(N, 1, L)``      signals of one channel, also ``(N, L, 1)``      ``None``: grey images
    ``(N, H, W)``      grey images                                     ``"first"``: (N, C, L)
    ``(N, a, b, c)``   c in 1, 3, 4 and a not: images, channels last   ``None``: volumes
    ``(N, a, b, c)``   a in 1, 3, 4 and c not: images, channels first  ``None``: volumes
    ``(N, a,..., d)``  as for four axes: volumes with channels
    =================  ==============================================  =======================

    Where both or neither of the two axes have 1, 3 or 4 entries, the answer is asked for.

    Args:
        values: all examples, one after the other.
        channels: where the channels are; None says that there are none.
        what: the array's name, for errors.
        count: how many channels there must be; their axis is then the one that has as many.
        size: the pixels that there must be along each axis.
    """
    if channels not in ("auto", "first", "last", None):
        raise UsageError(f"channels must be 'auto', 'first', 'last' or None, got {channels!r}.")
    shape, axes = tuple(values.shape), values.ndim
    least = 3 if channels in ("first", "last") else 2
    if not least <= axes <= (4 if channels is None else 5):
        raise DataError(
            f"{what} has shape {shape}; expected examples first, then one to three axes of pixels"
            f"{', and one of channels' if channels in ('first', 'last') else ''}."
        )
    if 0 in shape:
        raise DataError(f"{what} has shape {shape}: there is nothing in it.")
    place = channels
    if channels == "auto":
        usual = _USUAL if count is None else (count,)
        is_told = axes > 3 or (count or 1) > 1
        place = _usual_place(shape, usual, what) if is_told else _place_of_one(shape, size)
    if place is None:
        made = values.unsqueeze(1)
    else:
        made = values.movedim(-1, 1) if place == "last" else values
    check_shape(tuple(made.shape[1:]), count, size, what)
    return made


def doubtful_images(shape: tuple[int, ...]) -> str | None:
    """Warns, in a sentence, where grey images may well be signals of several channels."""
    if len(shape) != 3 or not 1 < min(shape[1:]) <= _LEADS:
        return None
    few, many = min(shape[1:]), max(shape[1:])
    if many < _LONG * few:
        return None
    place = "first" if shape[1] == few else "last"
    return (
        f"of shape {shape} is read as grey images of {shape[1]} x {shape[2]}; signals of {few} "
        f"channels: Grids.of(X, channels='{place}'), --channels {place}."
    )


def check_shape(
    found: tuple[int, ...], count: int | None, size: tuple[int, ...] | None, what: str
) -> None:
    """Refuses an example of another number of channels or another size than was asked for."""
    if count is not None and found[0] != count:
        raise DataError(f"{what} has {found[0]} channels, expected {count}.")
    if size is not None and found[1:] != size:
        raise DataError(
            f"{what} has examples of size {found[1:]}, expected {size}: arrays are not resized."
        )


def _usual_place(
    shape: tuple[int, ...], usual: tuple[int, ...], what: str
) -> Literal["first", "last"] | None:
    first, last = shape[1] in usual, shape[-1] in usual
    if first == last:
        if not first and usual == (1,):
            return None
        said = "could both be channels" if first else f"are not {_either(usual)}"
        none, word = "", ""
        if len(shape) == 4:
            none, word = " or None for volumes without channels", ", none"
        raise DataError(
            f"{what} has shape {shape}: its second and last axis {said}. "
            f"Say channels='first' or 'last'{none} to Grids.of or read_grids: --channels first, "
            f"last{word}."
        )
    return "first" if first else "last"


def _place_of_one(
    shape: tuple[int, ...], size: tuple[int, ...] | None
) -> Literal["first", "last"] | None:
    """Finds the one channel of signals; an image of a single row of pixels is not a signal."""
    if len(shape) < 3 or shape[1] == shape[2] or (size is not None and len(size) > 1):
        return None
    return "first" if shape[1] == 1 else "last" if shape[2] == 1 else None


def _either(numbers: tuple[int, ...]) -> str:
    *head, last = map(str, numbers)
    return f"{', '.join(head)} or {last}" if head else last


def as_values(array: object, what: str = "the array") -> Tensor:
    """Numbers as a grid keeps them: uint8 as it is, truth values as 0 and 1, others as float32.

    Python objects, text, complex numbers and values that are not finite are refused.
    """
    if not isinstance(array, Tensor):
        array = _from_numpy(np.asarray(array), what)
    array = array.detach().cpu()
    if array.is_complex():
        raise DataError(f"{what} holds complex numbers; give their parts as two channels.")
    if array.dtype in (torch.uint8, torch.bool):
        return array.to(torch.uint8)
    values = array.to(torch.float32)
    if not values.isfinite().all():
        where = (~values.isfinite()).nonzero()[0].tolist()
        found = array[tuple(where)].item()
        raise DataError(f"{what} holds {found} at {where}: fill or remove such values first.")
    return values


def _from_numpy(array: np.ndarray, what: str) -> Tensor:
    if array.dtype.kind not in "buifc":
        held = "Python objects" if array.dtype.hasobject else f"values of type {array.dtype}"
        raise DataError(f"{what} holds {held}; expected an array of numbers of one shape.")
    if array.dtype.kind in "ui" and array.dtype != np.uint8:
        array = array.astype(np.float32)
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    # torch shares the memory, and what comes from a file may be read-only.
    return torch.from_numpy(array if array.flags.writeable else array.copy())
