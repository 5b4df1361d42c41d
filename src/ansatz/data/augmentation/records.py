"""Augmentations as plain data, so that a saved fit can say what it was trained with."""

from dataclasses import fields
from typing import Any

from ansatz.data.augmentation.augmentation import Augmentation
from ansatz.data.augmentation.registry import registry
from ansatz.errors import UsageError


def to_record(augment: Augmentation) -> dict[str, Any]:
    """Name and options of an augmentation, as JSON can hold them.

    Args:
        augment: one whose class is in the registry, or composed of such.

    Example:
        >>> from ansatz.data.augmentation import Shift, to_record
        >>> to_record(Shift(2))
        {'name': 'shift', 'cells': 2, 'padding': 'reflect'}
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
        >>> from_record({"name": "shift", "cells": 3})
        Shift(cells=3, padding='reflect')
    """
    if not isinstance(record, dict) or "name" not in record:
        raise UsageError(f"an augmentation is written as {{'name': ...}}, got {record!r:.60}.")
    options = {key: _read(value) for key, value in record.items() if key != "name"}
    made: Augmentation = registry.create(record["name"], **options)
    return made


def _plain(value: Any) -> Any:
    if isinstance(value, Augmentation):
        return to_record(value)
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        return from_record(value)
    return [_read(each) for each in value] if isinstance(value, list) else value
