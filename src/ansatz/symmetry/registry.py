"""Names of groups, and the groups that suit an input."""

from collections.abc import Sequence
from typing import Any

from ansatz.registry import Registry
from ansatz.symmetry.group import Group

registry = Registry(
    "group",
    {
        "cyclic_shift": "ansatz.symmetry.shifts:CyclicShift",
        "dihedral": "ansatz.symmetry.rotations:Dihedral",
        "flip": "ansatz.symmetry.rotations:Flip",
        "node_permutation": "ansatz.symmetry.permutations:NodePermutation",
        "orthogonal": "ansatz.symmetry.points:Orthogonal",
        "permutation": "ansatz.symmetry.permutations:Permutation",
        "point_rotation": "ansatz.symmetry.points:PointRotation",
        "rigid_motion": "ansatz.symmetry.points:RigidMotion",
        "rotation": "ansatz.symmetry.rotations:Rotation",
        "rotation90": "ansatz.symmetry.rotations:Rotation90",
        "scaling": "ansatz.symmetry.sign_and_scale:Scaling",
        "shift": "ansatz.symmetry.shifts:Shift",
        "sign": "ansatz.symmetry.sign_and_scale:Sign",
        "time_shift": "ansatz.symmetry.shifts:TimeShift",
        "translation": "ansatz.symmetry.points:Translation",
    },
)
names = registry.names
register = registry.register


def create(name: str, **options: Any) -> Group:
    """Creates the group ``name``.

    Args:
        name: one of ``names()``.
        options: those of the group; a wrong one is an error that lists them.

    Example:
        >>> from ansatz import symmetry
        >>> symmetry.create("shift", reach=3)
        <group shift>
    """
    found: Group = registry.create(name, **options)
    return found


OF_GRIDS = ("cyclic_shift", "flip", "scaling", "shift", "sign")  # of any number of axes
OF_IMAGES = (*OF_GRIDS, "dihedral", "rotation", "rotation90")


def suitable_groups(size: Sequence[int]) -> list[Group]:
    """Lists the groups that a certificate tries by default on signals, images or volumes.

    Shifts reach a sixteenth of the shortest side and rotations 15 degrees, as examples lie in the
    world; rotations by 90 degrees are for squares.

    Args:
        size: pixels along each axis of an example.

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
