"""Predicted masks made tidy: connected components, specks and holes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from scipy import ndimage
from torch import Tensor

from ansatz.errors import UsageError

Array = np.ndarray[Any, Any]
Masks = TypeVar("Masks", Tensor, Array)


@dataclass(frozen=True)
class Cleaning:
    """Cleans predicted masks; it holds nothing but its options.

    In this order, for each class apart, background (0) in place of what goes:

    1. ``min_size``: connected components of fewer pixels go;
    2. ``keep_largest``: of each class all but the largest component go (the first of equals);
    3. ``fill_holes``: a background region that does not touch the border of the image, and has
       pixels of one class only around it, becomes that class.

    Cleaning twice is cleaning once: holes are filled last, and only join what is connected.

    Args:
        min_size: pixels that a component needs; 0 and 1 keep all.
        fill_holes: whether holes are filled.
        keep_largest: whether one component per class is left, as for an organ that exists once.
        corners: whether pixels that meet at an edge or a corner are connected, or only those that
            share a face. (Background is connected through faces either way.)
        classes: those that are cleaned; all but 0 when not given.

    Shapes:
        - masks: ``(N, *size)`` class codes, an array or a tensor; comes back as what it was.

    Example:
        >>> import torch
        >>> from ansatz.data import Cleaning
        >>> mask = torch.tensor([[[1, 1, 1, 0, 0], [1, 0, 1, 0, 1], [1, 1, 1, 0, 0]]])
        >>> Cleaning(min_size=2, fill_holes=True)(mask)
        tensor([[[1, 1, 1, 0, 0],
                 [1, 1, 1, 0, 0],
                 [1, 1, 1, 0, 0]]])
        >>> Cleaning.from_state(Cleaning(min_size=2).state()).min_size
        2
    """

    min_size: int = 0
    fill_holes: bool = False
    keep_largest: bool = False
    corners: bool = False
    classes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        whole = isinstance(self.min_size, int) and not isinstance(self.min_size, bool)
        if not whole or self.min_size < 0:
            raise UsageError(f"min_size must be a whole number of pixels, got {self.min_size!r}.")
        if self.classes is not None:
            object.__setattr__(self, "classes", tuple(int(k) for k in self.classes))

    def state(self) -> dict[str, Any]:
        """Its options, as JSON can hold them."""
        options = asdict(self)
        return options | {"classes": None if self.classes is None else list(self.classes)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "Cleaning":
        """The cleaning that ``state`` came from."""
        return cls(**state)

    def __call__(self, masks: Masks) -> Masks:
        if isinstance(masks, Tensor):
            cleaned = self(masks.detach().cpu().numpy())
            return torch.from_numpy(cleaned).to(masks.device)
        if masks.ndim < 2:
            raise UsageError(f"masks need the shape (N, *size), got {masks.shape}.")
        return np.stack([self._clean(mask) for mask in masks]) if len(masks) else masks.copy()

    def _clean(self, mask: Array) -> Array:
        mask = mask.copy()
        for k in self._classes(mask):
            mask[self._unwanted(mask == k)] = 0
        return self._filled(mask) if self.fill_holes else mask

    def _classes(self, mask: Array) -> Sequence[int]:
        found = [int(k) for k in np.unique(mask) if k > 0]
        return found if self.classes is None else self.classes

    def _unwanted(self, mask: Array) -> Array:
        """The pixels of one class that go."""
        labels, sizes = components(mask, corners=self.corners)
        keep = sizes >= self.min_size
        if self.keep_largest and len(sizes):
            keep &= np.arange(len(sizes)) == sizes.argmax()
        unwanted: Array = mask & ~np.concatenate([[False], keep])[labels]
        return unwanted

    def _filled(self, mask: Array) -> Array:
        regions, sizes = components(mask == 0)
        if not len(sizes):
            return mask
        # Around each region: the smallest and the largest label; -1 beyond the border.
        low, high = np.full(len(sizes) + 1, np.inf), np.full(len(sizes) + 1, -np.inf)
        framed = np.pad(mask.astype(np.int64), 1, constant_values=-1)
        inner = tuple(slice(1, -1) for _ in range(mask.ndim))
        for axis in range(mask.ndim):
            for shift in (1, -1):
                beside = np.roll(framed, shift, axis)[inner]
                other = (regions > 0) & (beside != 0)
                np.minimum.at(low, regions[other], beside[other])
                np.maximum.at(high, regions[other], beside[other])
        hole = (low == high) & (low > 0)
        if self.classes is not None:
            hole &= np.isin(low, self.classes)
        return np.where(hole[regions], np.where(hole, low, 0)[regions].astype(mask.dtype), mask)


def clean(
    masks: Masks,
    *,
    min_size: int = 0,
    fill_holes: bool = False,
    keep_largest: bool = False,
    corners: bool = False,
) -> Masks:
    """Removes specks and holes from masks ``(N, *size)``: :class:`Cleaning` in one call.

    Example:
        >>> import numpy as np
        >>> from ansatz.data import clean
        >>> clean(np.array([[1, 0, 1, 1, 0, 2]]), keep_largest=True)
        array([[0, 0, 1, 1, 0, 2]])
    """
    options = Cleaning(min_size, fill_holes, keep_largest, corners)
    return options(masks)


def instances(masks: Masks, *, corners: bool = False) -> Masks:
    """Numbers the objects in masks: every connected component of a class but 0 is one.

    Args:
        masks: ``(N, *size)`` class codes, an array or a tensor.
        corners: whether pixels that meet at an edge or a corner are connected.

    Returns:
        ``(N, *size)`` whole numbers: 0 for class 0, and 1, 2, ... for the objects of each mask, in
        the order of their classes.

    Example:
        >>> import numpy as np
        >>> from ansatz.data import instances
        >>> instances(np.array([[1, 0, 1, 1, 2, 2]]))
        array([[1, 0, 2, 2, 3, 3]])
    """
    if isinstance(masks, Tensor):
        numbered = instances(masks.detach().cpu().numpy(), corners=corners)
        return torch.from_numpy(numbered).to(masks.device)
    found: Array = np.zeros(masks.shape, np.int64)
    for number, mask in enumerate(masks):
        count = 0
        for k in np.unique(mask[mask > 0]):
            labels, sizes = components(mask == k, corners=corners)
            found[number] += np.where(labels > 0, labels + count, 0)
            count += len(sizes)
    return found


def components(mask: Array, *, corners: bool = False) -> tuple[Array, Array]:
    """The connected components of a mask: a number for each pixel, and the size of each component.

    Args:
        mask: bool, any number of axes.
        corners: whether pixels that meet at an edge or a corner are connected.

    Returns:
        Labels 1, 2, ... of the shape of ``mask``, 0 outside; pixels of component 1, 2, ...

    Example:
        >>> import numpy as np
        >>> from ansatz.data import components
        >>> components(np.array([True, False, True, True]))
        (array([1, 0, 2, 2], dtype=int32), array([1, 2]))
    """
    near = ndimage.generate_binary_structure(mask.ndim, mask.ndim if corners else 1)
    labels, count = ndimage.label(mask, structure=near)
    return labels, np.bincount(labels.ravel(), minlength=count + 1)[1:]
