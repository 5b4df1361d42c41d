"""Predicted masks as image files, whole or not at all."""

import contextlib
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansatz.data.grids.nifti import is_nifti
from ansatz.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray


Value = int | tuple[int, int, int]  # a byte, or red, green and blue


def mask_values(classes: Sequence[Any]) -> dict[Any, Value]:
    """The value of each class in a mask file: its own number or colour, else its place."""
    from ansatz.data.grids.masks import are_colours, rgb_of

    words = [str(name) for name in classes]
    if are_colours(words):
        return {name: rgb_of(word) for name, word in zip(classes, words, strict=True)}
    if all(word.isdecimal() and int(word) < 256 for word in words):
        return {name: int(word) for name, word in zip(classes, words, strict=True)}
    return {name: place for place, name in enumerate(classes)}


def pixels_of(labels: "NDArray[Any]", values: Mapping[Any, Value]) -> "NDArray[Any]":
    """Bytes ``(..., H, W)``, or ``(..., H, W, 3)`` where the values are colours."""
    import numpy as np

    levels = np.array(list(values.values()), np.uint8)  # (K,) or (K, 3)
    codes = np.zeros(labels.shape, np.intp)
    for code, name in enumerate(values):
        codes[labels == name] = code
    return levels[codes]


def file_stems(names: Sequence[str]) -> list[str]:
    """A file's name without its ending for each example's name, no two alike."""
    flat = [_flat(name) for name in names]
    short = [str(Path(name).with_suffix("")) for name in flat]
    chosen = short if len(set(short)) == len(short) else flat
    if len(set(chosen)) < len(chosen):
        chosen = [f"{place}-{name}" for place, name in enumerate(chosen)]
    return chosen


def _flat(name: str) -> str:
    """A path as one word that no system hides: without what leads upwards."""
    path = Path(name)
    parts = [part for part in path.parts if part not in ("..", path.anchor)]
    return "-".join(parts).lstrip(".") or "mask"


def restored(labels: "NDArray[Any]", size: tuple[int, int]) -> "NDArray[Any]":
    """The mask of an image that was fitted into another size, at its own (nearest pixel)."""
    import numpy as np

    from ansatz.data.grids.images import inner_box

    top, left, *inner = inner_box(size, (labels.shape[0], labels.shape[1]))
    rows, columns = (
        ((np.arange(n) + 0.5) * m / n).astype(np.intp) for n, m in zip(size, inner, strict=True)
    )
    return labels[top + rows[:, None], left + columns[None]]


def encode_mask(values: "NDArray[Any]") -> bytes:
    """A PNG file of bytes ``(H, W)``, or of colours ``(H, W, 3)``."""
    from PIL import Image

    page = io.BytesIO()
    Image.fromarray(values).save(page, format="PNG")
    return page.getvalue()


def encode_stack(pages: Sequence[bytes]) -> bytes:
    """A TIFF file with a page for each PNG file."""
    from PIL import Image

    first, *others = (Image.open(io.BytesIO(page)) for page in pages)
    file = io.BytesIO()
    first.save(
        file, format="TIFF", save_all=True, append_images=others, compression="tiff_adobe_deflate"
    )
    return file.getvalue()


def write_mask_files(
    out: Path,
    stacks: Mapping[str, Sequence[bytes]],
    *,
    overwrite: bool,
    volumes: Mapping[str, bytes] | None = None,
) -> None:
    """Masks by the names of their images: a folder of files, or one TIFF file of all of them.

    Args:
        out: a folder or a TIFF file.
        stacks: PNG files by the name of the image.
        overwrite: replace what is there.
        volumes: NIfTI files by the name of the volume; for a folder alone.
    """
    from ansatz.storage import write_file

    if is_tiff(out):
        every = [page for pages in stacks.values() for page in pages]
        write_file(out, encode_stack(every), overwrite=overwrite)
        return
    files = {}
    for name, pages in zip(file_stems(list(stacks)), stacks.values(), strict=True):
        if len(pages) == 1:
            files[f"{name}.png"] = pages[0]
        else:
            files[f"{name}.tif"] = encode_stack(pages)
    names = {name: name.removesuffix(".gz").removesuffix(".nii") for name in volumes or {}}
    for name, content in zip(
        file_stems(list(names.values())), (volumes or {}).values(), strict=True
    ):
        files[f"{name}.nii.gz"] = content
    write_mask_folder(out, files, overwrite=overwrite)


def is_tiff(path: Path) -> bool:
    """Tests whether a file is called as TIFF files are."""
    return path.suffix.lower() in (".tif", ".tiff")


def write_mask_folder(out: Path, files: Mapping[str, bytes], *, overwrite: bool) -> None:
    """Writes files into a new folder that gets its name when it is complete."""
    from ansatz.storage.disk import (
        check_space,
        explain,
        forget,
        new_name,
        remove,
        remove_folder,
        write_bytes,
    )

    _require_masks(out, overwrite)
    size = sum(map(len, files.values()))
    temporary = out.parent / new_name()
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        check_space(out.parent, size, out)
        temporary.mkdir()
        for name, content in files.items():
            write_bytes(temporary / name, content)
        if out.exists():
            remove_folder(out)
        os.rename(temporary, out)
    except OSError as error:
        raise explain(error, out, size) from error
    finally:
        with contextlib.suppress(OSError):
            remove(temporary)
        forget(temporary.name)


def _require_masks(out: Path, overwrite: bool) -> None:
    if not out.exists():
        return
    if not out.is_dir():
        raise UsageError(f"{out} is a file; masks are written to a folder. Choose another --out.")
    odd = next((path.name for path in out.iterdir() if not _is_mask(path)), None)
    if odd is not None:
        raise UsageError(
            f"{out} holds {odd}, which is not a mask: not ours to replace. Another --out."
        )
    if not overwrite and any(out.iterdir()):
        raise UsageError(f"{out} exists. To replace it: --overwrite.")


def _is_mask(path: Path) -> bool:
    return path.suffix.lower() == ".png" or is_tiff(path) or is_nifti(path)
