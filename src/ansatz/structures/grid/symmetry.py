"""The groups that move signals, images and volumes."""

from ansatz.errors import UsageError
from ansatz.symmetry import Group, create, suitable_groups
from ansatz.symmetry.registry import OF_GRIDS, OF_IMAGES


def acting_group(name: str, size: tuple[int, ...]) -> Group:
    """The group of a name that acts on examples of such a size."""
    acting = OF_IMAGES if len(size) == 2 else OF_GRIDS
    if name not in acting:
        create(name)  # says so if there is none
        raise UsageError(f"{name} does not act on such grids. Take one of: {', '.join(acting)}.")
    known = {each.name: each for each in suitable_groups(size)}
    return known[name] if name in known else create(name)


def mask_symmetry(name: str, size: tuple[int, ...]) -> Group:
    """The group of a name that moves the cells of such grids; flips along every axis."""
    if name == "flip":
        return create("flip", axes=tuple(range(-len(size), 0)))
    if len(size) < 2:
        raise UsageError(f"signals cannot be turned: symmetry is flip or none, got {name}.")
    return create(name)
