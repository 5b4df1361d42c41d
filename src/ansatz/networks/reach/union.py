"""Unions: where paths meet, a unit sees what it sees along each of them."""

import math
from collections.abc import Sequence
from dataclasses import replace

import torch

from ansatz.networks.reach.intervals import LEAD, Reach


def merge(parts: Sequence[Reach], shape: Sequence[int]) -> Reach:
    """Units that see what the units of all parts see; shapes are broadcast as torch does."""
    aligned = [align(part, len(shape)) for part in parts]
    arrays, lanes, periods = [], [], []
    for axis in range(len(aligned[0].arrays)):
        found = aligned[0].arrays[axis]
        for part in aligned[1:]:
            found = torch.minimum(found, part.arrays[axis])
        arrays.append(found)
        running = [part for part in aligned if part.lanes[axis] is not None] or aligned
        lanes.append(running[0].lanes[axis])
        units = math.lcm(*(part.periods[axis][0] for part in running))
        first = running[0].periods[axis]
        periods.append((units, first[1] * units // first[0]))
    return Reach(tuple(arrays), tuple(shape), tuple(lanes), tuple(periods))


def align(part: Reach, axes: int) -> Reach:
    """The same with axes of length 1 in front."""
    more = axes - len(part.shape)
    if more <= 0:
        return part
    arrays = tuple(a.view(2, 2, *[1] * more, *a.shape[LEAD:]) for a in part.arrays)
    lanes = tuple(None if lane is None else lane + more for lane in part.lanes)
    return replace(part, arrays=arrays, shape=(*[1] * more, *part.shape), lanes=lanes)
