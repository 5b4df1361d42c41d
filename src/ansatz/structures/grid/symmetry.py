"""The groups that move signals, images and volumes."""

from collections.abc import Sequence

from ansatz.errors import UsageError
from ansatz.symmetry import Group, create, suitable_groups
from ansatz.symmetry.suitable import OF_GRIDS, OF_IMAGES


def acting_groups(size: tuple[int, ...], names: Sequence[str] = ()) -> list[Group]:
    """The groups of these names, and without names those that suit examples of such a size.

    Example:
        >>> from ansatz.structures.grid.symmetry import acting_groups
        >>> [group.name for group in acting_groups((100,))]
        ['shift', 'cyclic_shift']
    """
    suitable = suitable_groups(size)
    if not names:
        return suitable
    known = {each.name: each for each in suitable}
    acting = OF_IMAGES if len(size) == 2 else OF_GRIDS
    for name in set(names) - set(acting):
        create(name)  # says so if there is none
        raise UsageError(f"{name} does not act on such grids. Take one of: {', '.join(acting)}.")
    return [known[name] if name in known else create(name) for name in names]


def mask_symmetry(name: str, size: tuple[int, ...]) -> Group:
    """The group of a name that moves the cells of such grids; flips along every axis.

    Example:
        >>> from ansatz.structures.grid.symmetry import mask_symmetry
        >>> mask_symmetry("flip", (8, 8)).axes
        (-2, -1)
    """
    if name == "flip":
        return create("flip", axes=tuple(range(-len(size), 0)))
    if len(size) < 2:
        raise UsageError(f"signals cannot be turned: symmetry is flip or none, got {name}.")
    return create(name)
