"""Which symmetries examples of a given size may have."""

from collections.abc import Sequence

from ansatz.symmetry.group import Group
from ansatz.symmetry.registry import create

OF_GRIDS = ("cyclic_shift", "flip", "scaling", "shift", "sign")  # of any number of axes
OF_IMAGES = (*OF_GRIDS, "dihedral", "rotation", "rotation90")


def suitable_groups(size: Sequence[int]) -> list[Group]:
    """The groups to try first on signals, images or volumes: what a certificate asks by default.

    Shifts reach a sixteenth of the shortest side and rotations 15 degrees, as examples lie in the
    world; quarter turns are for squares.

    Args:
        size: cells along each axis of an example.

    Example:
        >>> from ansatz.symmetry import suitable_groups
        >>> [group.name for group in suitable_groups((28, 28))]
        ['shift', 'cyclic_shift', 'flip', 'rotation90', 'rotation']
        >>> [group.name for group in suitable_groups((100,))]
        ['shift', 'cyclic_shift']
    """
    groups = [create("shift", reach=max(1, min(size) // 16)), create("cyclic_shift")]
    if len(size) > 1:  # time has a direction
        groups.append(create("flip"))
    if len(size) == 2 and size[0] == size[1]:
        groups.append(create("rotation90"))
    return [*groups, create("rotation", limit=15)] if len(size) == 2 else groups
