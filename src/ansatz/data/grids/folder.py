"""Lists the examples of a folder: its classes, parts, and pairs of images and masks."""

import re
from collections.abc import Sequence
from pathlib import Path

from ansatz.data.grids.listing import Listing, entries, family, files_below
from ansatz.errors import DataError

PARTS = ("train", "training", "val", "valid", "validation", "test", "testing")


def list_folder(folder: Path, masks: Path | None = None, *, skip: bool = False) -> Listing:
    """The examples of a folder.

    ==========================  ================================================================
    what is in it               what it is
    ==========================  ================================================================
    folders of images           classes, called like the folders, sorted
    ``images/`` and ``masks/``  pairs by file name (also image, img; mask, label, annotation, gt)
    ``train/``, ``test/``       the same in each of them, with a column ``split``
    ``images/`` alone           what is in it
    ``1.png``, ``1_mask.png``   pairs; in class folders such masks are left out
    images                      examples without a class; with masks from ``masks``, if given
    ==========================  ================================================================
    """
    folders, files = entries(folder)
    loose = [path for path in files if family(path)]
    if masks is not None:
        return pair(folder, folder, masks, skip=skip)
    images, labels = _named(folders, IMAGE_FOLDERS), _named(folders, MASK_FOLDERS)
    if images and labels:
        return pair(folder, images, labels, skip=skip)
    if _are_parts(folders, loose):
        return _parts(folder, folders, skip)
    found = {each: files_below(each) for each in folders}
    if images and [each for each in found if found[each]] == [images] and not loose:
        return list_folder(images, skip=skip)
    if any(found.values()):
        return _classes(folder, found, loose)
    if apart(loose)[1]:
        return pair(folder, folder, folder, skip=skip)
    if loose:
        return _flat(folder, loose, files)
    raise DataError(_nothing(folder, files))


def list_inputs(folder: Path, masks: Path | None = None) -> Listing:
    """All examples of a folder, without classes and masks: to be predicted."""
    paths = _inputs(folder)
    if masks is not None:
        paths = [path for path in paths if not path.is_relative_to(masks)]
    paths, beside = apart(paths)
    if not paths:
        raise DataError(_nothing(folder, entries(folder)[1]))
    names = [path.relative_to(folder).as_posix() for path in paths]
    listing = Listing(str(folder), paths, names, {"image": list(names)})
    _tell_of_masks(listing, beside)
    return listing


def _inputs(folder: Path) -> list[Path]:
    folders, files = entries(folder)
    loose = [path for path in files if family(path)]
    images, labels = _named(folders, IMAGE_FOLDERS), _named(folders, MASK_FOLDERS)
    if images and labels:
        return files_below(images)
    below = _inputs if _are_parts(folders, loose) else files_below
    return [*loose, *(path for each in folders for path in below(each))]


def _are_parts(folders: Sequence[Path], loose: Sequence[Path]) -> bool:
    return bool(folders) and not loose and all(each.name.lower() in PARTS for each in folders)


def _named(folders: Sequence[Path], names: frozenset[str]) -> Path | None:
    return next((each for each in folders if each.name.lower() in names), None)


def _flat(folder: Path, images: list[Path], files: list[Path]) -> Listing:
    names = [path.name for path in images]
    listing = Listing(str(folder), images, names, {"image": list(names)})
    if len(files) > len(images):
        listing.notes.append(f"{_count(files, 'file')} in all, {len(images)} of them images.")
    return listing


def _classes(folder: Path, found: dict[Path, list[Path]], loose: list[Path]) -> Listing:
    beside = [mask for paths in found.values() for mask in apart(paths)[1]]
    found = {each: apart(paths)[0] for each, paths in found.items()}
    full = [each for each in found if found[each]]
    paths = [path for each in full for path in found[each]]
    names = [path.relative_to(folder).as_posix() for path in paths]
    classes = [each.name for each in full for _ in found[each]]
    listing = Listing(str(folder), paths, names, {"image": list(names), "class": list(classes)})
    listing.target = "class"
    _tell_of_masks(listing, beside)
    empty = [each.name for each in found if not found[each]]
    if empty:
        listing.notes.append(f"no images in {', '.join(empty[:5])}: left out.")
    if loose:
        listing.notes.append(f"{_count(loose, 'image')} beside the class folders left out.")
    parts = [each.name for each in full if each.name.lower() in PARTS]
    if parts:
        listing.notes.append(
            f"folder '{parts[0]}' is taken for a class, as not all folders beside it are parts of "
            "the data (train, valid, test)."
        )
    single = [each.name for each in full if len(found[each]) == 1]
    if single:
        listing.notes.append(
            f"one image only in class {', '.join(single[:5])}: it cannot be both trained on and "
            "evaluated."
        )
    return listing


def _tell_of_masks(listing: Listing, masks: Sequence[Path]) -> None:
    if masks:
        listing.notes.append(
            f"{_count(masks, 'mask')} left out: called like an image beside them ({masks[0].name})."
        )


def _parts(folder: Path, parts: list[Path], skip: bool) -> Listing:
    """train/ and test/ of one kind; a part without what the others tell is left out."""
    listings = {part.name: list_folder(part, skip=skip) for part in parts}
    told = {name: each.target for name, each in listings.items() if each.target is not None}
    if len(set(told.values())) > 1:
        kinds = ", ".join(f"{name} by {target}" for name, target in told.items())
        raise DataError(f"{folder}: parts of two kinds ({kinds}): give parts of one kind.")
    target = next(iter(told.values()), None)
    merged = Listing(str(folder), [], [], {"image": [], "split": []}, target=target)
    if target == "class":
        merged.columns["class"] = []
    for name, listing in listings.items():
        if listing.target != target:
            merged.notes.append(
                f"{name}: {_count(listing.paths, 'image')} without {target} left out."
            )
            continue
        names = [path.relative_to(folder).as_posix() for path in listing.paths]
        merged.paths += listing.paths
        merged.names += names
        merged.masks += listing.masks
        merged.columns["image"] += names
        merged.columns["split"] += [_part(name)] * len(names)
        if target == "class":
            merged.columns["class"] += listing.columns["class"]
        merged.notes += [f"{name}: {note}" for note in listing.notes]
    return merged


def _part(name: str) -> str:
    """train, validation or test, however the folder spells it."""
    starts = {"tr": "train", "va": "validation", "te": "test"}
    return starts[name.lower()[:2]]


def _nothing(folder: Path, files: Sequence[Path]) -> str:
    if not files:
        return f"{folder} is an empty folder; expected images, or folders of them."
    endings = sorted({path.suffix.lower() or path.name for path in files})[:5]
    return f"{folder} holds no images, only {', '.join(endings)} files. PNG and JPEG are read."


def _count(items: Sequence[object], noun: str) -> str:
    return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"


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
