"""Faults of the disk, call by call."""

import contextlib
import errno
import os
from unittest import mock

import pytest
import torch

CHANGES = ("mkdir", "write", "fsync", "rename", "replace")
REMOVALS = ("unlink", "rmdir")


class Crash(BaseException):
    """The machine stops: no handler of the library may do anything after it."""


class FaultyFS:
    """Counts the calls that change the disk; the one numbered ``fail_at`` (from 1) fails.

    ``forever``: all later ones fail too, as on a disk that is gone.
    ``crash``: the failure is a :class:`Crash`, and neither changes nor removals happen after it.
    ``short``: every write takes half of what it is given, as the system may.
    """

    def __init__(self, fail_at=0, *, error=errno.EIO, forever=False, crash=False, short=False):
        self.fail_at, self.error, self.short = fail_at, error, short
        self.forever, self.crash = forever or crash, crash
        self.count = 0

    def __enter__(self):
        self._patches = contextlib.ExitStack()
        for name in CHANGES + (REMOVALS if self.crash else ()):
            fake = self._wrap(name, getattr(os, name))
            self._patches.enter_context(mock.patch.object(os, name, fake))
        return self

    def __exit__(self, *error):
        self._patches.close()

    def _wrap(self, name, real):
        def call(*args, **kwargs):
            self.count += name in CHANGES
            due = self.count == self.fail_at and name in CHANGES
            if due or (self.forever and 0 < self.fail_at < self.count + (name in REMOVALS)):
                if self.crash:
                    raise Crash
                raise OSError(self.error, os.strerror(self.error))
            if name == "write" and self.short and len(args[1]) > 1:
                return real(args[0], args[1][: len(args[1]) // 2])
            return real(*args, **kwargs)

        return call


@pytest.fixture
def faulty_fs():
    return FaultyFS


@pytest.fixture
def crash():
    return Crash


@pytest.fixture
def files():
    """The files of a small checkpoint; another seed gives other values."""

    def make(seed=0):
        generator = torch.Generator().manual_seed(seed)
        weight = torch.randn(5, 3, generator=generator)
        return {
            "model.safetensors": {"weight": weight, "bias": weight[:, 0].clone()},
            "optim.safetensors": {"0.exp_avg": weight * 2, "0.step": torch.tensor(float(seed))},
            "state.json": {"epoch": seed, "loss": 0.1},
        }

    return make
