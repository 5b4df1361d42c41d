"""The group that predicted masks are averaged over."""

from ansatz.errors import UsageError
from ansatz.symmetry import Group, create


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
