"""Images and their masks, paired by the names of their files."""

import re
from collections.abc import Sequence
from pathlib import Path

from ansatz.data.grids.listing import Listing, files_below
from ansatz.errors import DataError

IMAGE_FOLDERS = frozenset("image images img imgs input inputs jpegimages imagestr".split())
MASK_FOLDERS = frozenset(
    "mask masks label labels labelstr annotation annotations segmentation segmentations gt "
    "truth".split()
)
_TAILS = ("_mask", "-mask", "_label", "_labels", "_gt", "_seg", "_segmentation")
_FIRST_CHANNEL = "_0000"  # what nnU-Net adds to the names of images


def pair(folder: Path, images: Path, masks: Path, *, skip: bool = False) -> Listing:
    """Every image with the mask that is called like it; the ending may differ.

    A mask may also add ``_mask``, ``_label``, ``_gt`` or ``_seg`` to the image's name, and may then
    lie beside it: both folders are the same.

    Args:
        folder: what names are relative to.
        images: the folder of images.
        masks: the folder of masks.
        skip: leave out images that have no mask, instead of refusing them.
    """
    found = files_below(images)
    if masks.is_relative_to(images) and masks != images:
        found = [path for path in found if not path.is_relative_to(masks)]
    if masks == images:
        found, _ = apart(found)
    if not found:
        raise DataError(f"{images} holds no images.")
    if not masks.is_dir():
        raise DataError(f"{masks} is not a folder; expected one mask per image in it.")
    by_stem = _by_stem(masks, beside=masks == images)
    listing = Listing(str(folder), [], [], {"image": []}, target="mask")
    missing: list[str] = []
    used: set[Path] = set()
    for path in found:
        stem = _stem(path.relative_to(images))
        mask = by_stem.get(stem) or by_stem.get(stem.removesuffix(_FIRST_CHANNEL))
        name = path.relative_to(folder).as_posix()
        if mask is None:
            missing.append(name)
            continue
        used.add(mask)
        listing.paths.append(path)
        listing.names.append(name)
        listing.masks.append(mask)
        listing.columns["image"].append(name)
    _report(listing, masks, missing, len(set(by_stem.values()) - used), skip)
    return listing


def apart(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Images, and the masks among them: called like an image beside them with ``_mask`` added.

    A number may follow, where an image has several masks.
    """
    stems = {_stem(path) for path in paths}
    ending = re.compile(rf"({'|'.join(_TAILS)})(_[0-9]+)?$")
    kinds: tuple[list[Path], list[Path]] = ([], [])
    for path in paths:
        stem = _stem(path)
        short = ending.sub("", stem)
        kinds[short != stem and short in stems].append(path)
    return kinds


def _report(listing: Listing, masks: Path, missing: list[str], unused: int, skip: bool) -> None:
    if missing and (not skip or not listing.paths):
        raise DataError(
            f"{listing.origin}: {missing[0]} has no mask in {masks}; images without one: "
            f"{len(missing)}. Masks are called like their image; --skip-corrupt "
            "(on_corrupt='skip') leaves such images out."
        )
    if missing:
        listing.notes.append(f"images without a mask, left out: {len(missing)} ({_few(missing)}).")
    if unused:
        listing.notes.append(f"masks without an image, left out: {unused}.")


def _few(names: list[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def _by_stem(masks: Path, *, beside: bool) -> dict[str, Path]:
    found: dict[str, Path] = {}
    files = files_below(masks)
    for path in apart(files)[1] if beside else files:
        stem = _stem(path.relative_to(masks))
        for tail in ("", *_TAILS):
            if stem.endswith(tail):
                key = stem.removesuffix(tail) if tail else stem
                if not tail and key in found and found[key] != path:
                    raise DataError(f"{masks}: {found[key].name} and {path.name} are one name.")
                found.setdefault(key, path)
    return found


def _stem(path: Path) -> str:
    """The name without its ending(s): ``a/1`` of ``a/1.nii.gz``."""
    name = path.name.removesuffix(".gz")
    return (path.parent / Path(name).stem).as_posix()
