"""Evaluation mode of networks, for a block of code."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn


@contextmanager
def evaluation_mode(*networks: Callable[..., Any]) -> Iterator[None]:
    """Turns dropout off and fixes running statistics inside; restores every mode after.

    Functions that are not modules have no mode and are left alone.
    """
    modules = [network for network in networks if isinstance(network, nn.Module)]
    # One by one, since part of a network may be in evaluation mode for good (a frozen backbone).
    training = [part for module in modules for part in module.modules() if part.training]
    _set(training, False)
    try:
        yield
    finally:
        _set(training, True)


def _set(parts: list[nn.Module], training: bool) -> None:
    """Past ``nn.Module.__setattr__``, which looks for parameters first: ten times as long."""
    for part in parts:
        plain = type(part).__setattr__ is nn.Module.__setattr__
        (object.__setattr__ if plain else setattr)(part, "training", training)
