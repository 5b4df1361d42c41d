"""Examples that a model of x drew, filled or reconstructed, written as files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansatz.cli.output import print_line, require_free
from ansatz.errors import UsageError

GAP = 2  # pixels between the images of one picture


def open_synthesizer(folder: Path) -> Any:
    """The model of x in a folder; another model is refused."""
    from ansatz.cli.opening import open_model
    from ansatz.estimators.synthesizer import Synthesizer

    found = open_model(folder)
    if not isinstance(found, Synthesizer):
        raise UsageError(f"{folder} is not a model of x itself: fit one with --task generate.")
    return found


def read_given(words: Sequence[str]) -> dict[str, str] | None:
    """Reads COL=VALUE words; None without any."""
    found = {}
    for word in words:
        for pair in word.split(","):
            name, equals, value = pair.partition("=")
            if not equals or not name:
                raise UsageError(f"expected --given COL=VALUE, got '{pair}'.")
            found[name.strip()] = value.strip()
    return found or None


def read_examples(estimator: Any, data: str) -> tuple[Any, Any]:
    """Examples of a file and what they are given, read as those of the fit were."""
    from ansatz.cli.opening import naming, open_data

    with naming(data):
        read = open_data(estimator, data, {})
        found: tuple[Any, Any] = estimator.parts(read.table)
    return found


def check_out(out: Path | None, overwrite: bool) -> None:
    """Refuses a place that is taken."""
    if out is not None:
        require_free(out, overwrite=overwrite, advice="To replace it: --overwrite.")


def write_examples(found: Any, out: Path | None, *, overwrite: bool) -> None:
    """Writes a table as CSV, images as one picture or a folder of files, arrays as npz."""
    import numpy as np

    from ansatz.cli.predict import csv_blocks, send
    from ansatz.storage import write_file

    if hasattr(found, "columns"):
        blocks = csv_blocks(found.reset_index(drop=True), raw=False, header=True, index=False)
        if out is None:
            for block in blocks:
                send(block)
            return
        if out.suffix.lower() != ".csv":
            raise UsageError(f"--out {out}: rows of a table are CSV; name the file something.csv.")
        write_file(out, b"".join(blocks), overwrite=overwrite)
        print_line(f"{len(found):,} rows: {out}")
        return
    if out is None:
        raise UsageError("images need a place: --out grid.png, --out FOLDER or --out FILE.npz.")
    values = np.asarray(found)
    suffix = out.suffix.lower()
    if suffix == ".npz":
        write_file(out, _packed(values), overwrite=overwrite)
    elif suffix == ".png":
        write_file(out, _picture(values), overwrite=overwrite)
    elif suffix:
        raise UsageError(f"--out {out}: images go to a .png, an .npz or a folder.")
    else:
        _write_folder(values, out, overwrite)
    print_line(f"{len(values):,} examples: {out}")


def _packed(values: Any) -> bytes:
    import io

    import numpy as np

    stream = io.BytesIO()
    np.savez_compressed(stream, x=values)
    return stream.getvalue()


def _bytes(values: Any) -> Any:
    """Images ``(N, C, H, W)`` as numbers of 0..255, channels last."""
    import numpy as np

    if values.ndim != 4 or values.shape[1] not in (1, 3):
        raise UsageError("such examples are not images of 1 or 3 channels: --out FILE.npz.")
    images = values.astype(float)
    if values.dtype == np.uint8 and images.size and images.max() <= 1:
        images = images * 255
    if values.dtype != np.uint8:
        low, high = float(images.min()), float(images.max())
        images = (images - low) / max(high - low, 1e-12) * 255
    return np.moveaxis(images.round().clip(0, 255).astype(np.uint8), 1, -1)


def _png(image: Any) -> bytes:
    import io

    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image).save(stream, format="PNG")
    return stream.getvalue()


def _picture(values: Any) -> bytes:
    """All images in one, row by row."""
    import math

    import numpy as np

    images = _bytes(values)
    if not len(images):
        raise UsageError("there is no image to write: -n 1 or more.")
    count, height, width, channels = images.shape
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    sheet = np.full((rows * (height + GAP), columns * (width + GAP), channels), 128, np.uint8)
    for number, image in enumerate(images):
        top, left = (number // columns) * (height + GAP), (number % columns) * (width + GAP)
        sheet[top : top + height, left : left + width] = image
    return _png(sheet)


def _write_folder(values: Any, out: Path, overwrite: bool) -> None:
    import shutil

    images = _bytes(values)
    if out.exists() and overwrite:
        shutil.rmtree(out)
    out.mkdir(parents=True)
    for number, image in enumerate(images):
        (out / f"{number:06d}.png").write_bytes(_png(image))
