"""The default augmentation of a fit, from shapes and counts alone."""

from typing import Literal

from ansatz.data.augmentation.affine import Affine, Elastic
from ansatz.data.augmentation.augmentation import Augmentation
from ansatz.data.augmentation.compose import Compose, RandomApply
from ansatz.data.augmentation.corruptions import Noise, RandomErasing
from ansatz.data.augmentation.moves import Crop, Flip, Rotate90, Shift
from ansatz.spec import InputSpec

_CROP = {2: 256, 3: 64}  # pixels a side of the crops that training takes of labelled grids
_COARSE = 8  # pixels a side, below which nothing can be moved
_FEW = 20_000  # photographs; with more of them a network hardly memorises what cutout hides


def default_augmentation(
    spec: InputSpec, *, masks: bool = False, numbers: bool = False, examples: int
) -> Compose | None:
    """Chooses a cautious augmentation for grids of such a shape; None where none is safe.

    It does what changes no label whatever the grids show: a small grey image may be a digit, which
    a mirror would spoil; a photograph has a left and a right that mean the same; a labelled picture
    is mostly one from above or under a microscope, which may be turned. A number may be an angle or
    a size that is seen in the picture, and what is turned, mirrored or stretched has another: that
    is shifted and no more.

    Args:
        spec: channels and size of a grid.
        masks: whether its pixels are labelled.
        numbers: whether the outcome is a number rather than a class.
        examples: how many grids there are to train on.

    Example:
        >>> from ansatz.data.augmentation import default_augmentation
        >>> from ansatz.spec import InputSpec
        >>> [type(part).__name__ for part in default_augmentation(
        ...     InputSpec.grid(3, 32, 32), examples=50_000).parts]
        ['Flip', 'Crop']
        >>> default_augmentation(InputSpec.of(3), examples=100) is None
        True
    """
    axes, side = len(spec.size), min(spec.size, default=0)
    if spec.structure != "grid" or side < _COARSE:  # too coarse to move anything, or size unknown
        return None
    if masks:
        return Compose(_of_labelled(axes, spec.size))
    if axes == 1:
        return Compose([Shift(max(1, side // 50), padding="border"), Noise(0.02, relative=True)])
    if axes == 3 or numbers:
        return Compose([Shift(max(1, side // 16), padding="border")])
    if spec.features == 3:
        return Compose(_of_photographs(side, examples))
    # Strokes on a ground, perhaps: the border continues whatever ground there is. What is read
    # between pixels is smoother than what will be predicted, so half of them stay as they are.
    move = Affine(10.0, scale=0.1, each_axis=True, shift=side / 14, padding="border")
    return Compose([RandomApply(0.5, move)])


def _of_photographs(side: int, examples: int) -> list[Augmentation]:
    parts: list[Augmentation] = [Flip(), Crop(margin=max(1, side // 8))]
    return [*parts, RandomErasing(side // 4)] if examples < _FEW else parts


def labelled_symmetry(size: tuple[int, ...]) -> Literal["flip", "dihedral"] | None:
    """The group that labelled images are drawn from while they are learned; None for no images."""
    if len(size) != 2 or min(size) < _COARSE:
        return None
    height, width = _window(size)
    return "dihedral" if height == width else "flip"


def _window(size: tuple[int, ...]) -> tuple[int, ...]:
    """The size of the crop of a labelled grid that training takes at a time."""
    return tuple(min(side, _CROP[len(size)]) for side in size)


def _of_labelled(axes: int, size: tuple[int, ...]) -> list[Augmentation]:
    if axes == 1:
        return [Shift(max(1, size[0] // 50))]
    window = _window(size)
    crop: list[Augmentation] = [Crop(window)] if window != size else []
    if axes == 3:
        return [*crop, Flip((-1, -2, -3))]
    turn: list[Augmentation] = [Rotate90()] if labelled_symmetry(size) == "dihedral" else []
    bend = Elastic(max(1.0, min(window) / 50), degrees=10.0, scale=0.1)
    # What is read between pixels is smoother than what will be predicted: most stays as it is.
    return [*crop, Flip((-1, -2)), *turn, RandomApply(0.2, bend)]
