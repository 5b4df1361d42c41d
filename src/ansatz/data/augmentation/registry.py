"""Augmentations by name, and as plain data that a saved fit can hold."""

import re
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from ansatz.data.augmentation.augmentation import Augmentation
from ansatz.data.augmentation.compose import Compose
from ansatz.errors import UsageError
from ansatz.registry import Registry

_MEMBERS = {  # the file of each
    "affine": ("Affine", "Elastic", "Rotate", "Scale"),
    "colors": ("Brightness", "Contrast", "Hue", "PcaColor", "Saturation"),
    "compose": ("Compose", "RandomApply"),
    "corruptions": ("Blur", "Noise", "RandomErasing"),
    "mixing": ("CutMix", "Mixup"),
    "moves": ("Crop", "Flip", "Rotate90", "Shift"),
}


def _snake(name: str) -> str:
    return re.sub("(?<!^)(?=[A-Z])", "_", name).lower()


registry = Registry(
    "augmentation",
    {
        _snake(name): f"ansatz.data.augmentation.{module}:{name}"
        for module, members in _MEMBERS.items()
        for name in members
    },
)
create = registry.create
names = registry.names
register = registry.register


Parts = Augmentation | str | dict[str, Any]  # an augmentation, its name, its record


def to_record(augment: Augmentation) -> dict[str, Any]:
    """Name and options of an augmentation, as JSON can hold them.

    Args:
        augment: one whose class is in the registry, or composed of such.

    Example:
        >>> from ansatz.data.augmentation import Shift, to_record
        >>> to_record(Shift(2))
        {'name': 'shift', 'pixels': 2, 'padding': 'reflect'}
    """
    named = [name for name in registry.names() if registry.get(name) is type(augment)]
    if not named:
        raise UsageError(
            f"{type(augment).__name__} has no name; give it one by "
            "ansatz.data.augmentation.register(name, class)."
        )
    options = {field.name: getattr(augment, field.name) for field in fields(augment)}  # type: ignore[arg-type]
    return {"name": named[0], **{key: _plain(value) for key, value in options.items()}}


def from_record(record: dict[str, Any]) -> Augmentation:
    """The augmentation that :func:`to_record` wrote down.

    Example:
        >>> from ansatz.data.augmentation import from_record
        >>> from_record({"name": "shift", "pixels": 3})
        Shift(pixels=3, padding='reflect')
    """
    if not isinstance(record, dict) or "name" not in record:
        raise UsageError(f"an augmentation is written as {{'name': ...}}, got {record!r:.60}.")
    options = {key: _read(value) for key, value in record.items() if key != "name"}
    made: Augmentation = registry.create(record["name"], **options)
    return made


def to_records(given: Parts | Sequence[Parts]) -> list[dict[str, Any]]:
    """The records of augmentations that follow each other, however they are given.

    Args:
        given: augmentations, names (``"flip,noise"``, with their default options) or records; one
            of them, or a list.

    Example:
        >>> from ansatz.data.augmentation import Shift, to_records
        >>> [each["name"] for each in to_records("flip,noise")]
        ['flip', 'noise']
        >>> to_records([Shift(2), {"name": "rotate90"}])
        [{'name': 'shift', 'pixels': 2, 'padding': 'reflect'}, {'name': 'rotate90'}]
    """
    if isinstance(given, Compose):
        return to_records(given.parts)
    if isinstance(given, Augmentation):
        return [to_record(given)]
    if isinstance(given, str):
        given = [{"name": name.strip()} for name in given.split(",")]
    if isinstance(given, dict):
        given = [given]
    if not isinstance(given, Sequence):
        raise UsageError(
            "augment is True, False, or augmentations like [Flip(), Noise(0.1)] or 'flip,noise', "
            f"got {given!r:.60}."
        )
    records: list[dict[str, Any]] = []
    for each in given:
        records += [to_record(from_record(each))] if isinstance(each, dict) else to_records(each)
    return records


def _plain(value: Any) -> Any:
    if isinstance(value, Augmentation):
        return to_record(value)
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        return from_record(value)
    return [_read(each) for each in value] if isinstance(value, list) else value
