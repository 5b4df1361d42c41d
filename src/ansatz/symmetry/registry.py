"""Groups by name."""

from typing import Any

from ansatz.registry import Registry
from ansatz.symmetry.group import Group

registry = Registry(
    "group",
    {
        "cyclic_shift": "ansatz.symmetry.shifts:CyclicShift",
        "dihedral": "ansatz.symmetry.turns:Dihedral",
        "flip": "ansatz.symmetry.turns:Flip",
        "node_permutation": "ansatz.symmetry.permutations:NodePermutation",
        "orthogonal": "ansatz.symmetry.points:Orthogonal",
        "permutation": "ansatz.symmetry.permutations:Permutation",
        "point_rotation": "ansatz.symmetry.points:PointRotation",
        "rigid_motion": "ansatz.symmetry.points:RigidMotion",
        "rotation": "ansatz.symmetry.rotation:Rotation",
        "rotation90": "ansatz.symmetry.turns:Rotation90",
        "scaling": "ansatz.symmetry.numbers:Scaling",
        "shift": "ansatz.symmetry.shifts:Shift",
        "sign": "ansatz.symmetry.numbers:Sign",
        "time_shift": "ansatz.symmetry.shifts:TimeShift",
        "translation": "ansatz.symmetry.points:Translation",
    },
)
names = registry.names
register = registry.register


def create(name: str, **options: Any) -> Group:
    """The group called ``name``.

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
