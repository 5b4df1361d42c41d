"""Whole files of every format that Ansatz reads, for the mutator to damage."""

import gzip
import io
import os
import signal
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROWS, IMAGES, SIDE, SLICES = 60, 16, 12, 4


class Kind(NamedTuple):
    """A model of the corpus: the options of its fit and the data that it predicts."""

    data: str
    options: tuple[str, ...]


_SHORT = ("--set", "epochs=2")
MODELS = {
    "number": Kind("table.csv", ("--target", "y", "--likelihood", "normal", *_SHORT)),
    "ensemble": Kind(
        "table.csv",
        ("--target", "class", "--inference", "ensemble", "--set", "members=2", *_SHORT),
    ),
    "linear": Kind(
        "table.csv", ("--target", "count", "--likelihood", "poisson", "--network", "linear")
    ),
    "survival": Kind(
        "table.csv",
        *[("--target", "time", "--event", "event", "--likelihood", "weibull", *_SHORT)],
    ),
    "images": Kind("images", ("--network", "lenet5", *_SHORT)),
    "masks": Kind("pictures.npz", ("--network", "unet", "--set", "depth=1", *_SHORT)),
    "volumes": Kind("volumes.npz", ("--target", "class", *_SHORT)),
}
_QUIET = ("--quiet", "--json")


def write_corpus(folder: Path, run: Callable[[list[str]], int]) -> None:
    """Writes all seed files into ``folder``; ``run`` runs one command of the command line."""
    random = np.random.default_rng(0)
    frame = _frame(random)
    text = frame.to_csv(index=False)
    (folder / "table.csv").write_text(text)
    (folder / "table.csv.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    frame.astype({"town": "category"}).to_parquet(folder / "table.parquet")
    frame.to_feather(folder / "table.feather")
    numbers = frame.select_dtypes("number").dropna(axis=1)
    columns = {str(name): numbers[name].to_numpy() for name in numbers}
    np.savez(folder / "table.npz", **columns)
    np.savez_compressed(folder / "packed.npz", **columns)
    _write_package_files(folder, frame)
    _write_grids(folder, random)
    _write_configurations(folder)
    for name, kind in MODELS.items():
        data, out = str(folder / kind.data), str(folder / f"{name}-model")
        command = ["fit", data, *kind.options, *_QUIET, "--out", out]
        if run(command) != 0:
            raise RuntimeError(f"cannot make the model {name}: ansatz {' '.join(command)}")
    for name, command in RUNS.items():
        _interrupt([*command(folder), "--out", str(folder / name)], run)
    _write_weights(folder)


def _resumable(*words: str) -> Callable[[Path], list[str]]:
    return lambda folder: ["fit", str(folder / words[0]), *words[1:], *_QUIET]


RUNS = {  # interrupted runs: the command that began them
    "run-table": _resumable("table.csv", "--target", "y", "--likelihood", "normal", *_SHORT),
    "run-stream": _resumable(
        *("table.csv", "--target", "y", "--likelihood", "normal", "--stream", *_SHORT)
    ),
    "run-ensemble": _resumable("table.csv", *MODELS["ensemble"].options),
    "run-images": _resumable("images", "--network", "lenet5", *_SHORT),
}


def _interrupt(command: list[str], run: Callable[[list[str]], int]) -> None:
    """Runs a fit to its first checkpoint, where a signal stops it after one more step."""
    from ansatz.storage.run_folder import RunFolder

    save = RunFolder.save

    def save_and_stop(self: RunFolder, *arguments: Any, **options: Any) -> Any:
        RunFolder.save = save  # type: ignore[method-assign]  # a second signal ends it at once
        os.kill(os.getpid(), signal.SIGTERM)
        return save(self, *arguments, **options)

    RunFolder.save = save_and_stop  # type: ignore[method-assign]
    try:
        run(command)
    finally:
        RunFolder.save = save  # type: ignore[method-assign]


def _write_weights(folder: Path) -> None:
    """The weights of the model of images, as files that a fit can begin with."""
    import torch

    from ansatz.storage import read_tensors, write_tensors

    saved = read_tensors(folder / "images-model" / "weights.safetensors")
    own = {
        name.removeprefix("network."): tensor
        for name, tensor in saved.items()
        if name.startswith("network.")
    }
    write_tensors(folder / "weights.safetensors", own)
    torch.save(own, folder / "weights.pth")


def _frame(random: np.random.Generator) -> Any:
    import pandas as pd

    x = random.normal(size=ROWS)
    days = pd.date_range("2020-01-01", periods=ROWS, freq="9D")
    return pd.DataFrame(
        {
            "a": np.where(random.random(ROWS) < 0.1, np.nan, x).round(3),
            "b": random.integers(0, 9, ROWS),
            "town": random.choice(["Jena", "Weimar", "Gera"], ROWS),
            "day": days.strftime("%Y-%m-%d"),
            "y": (2 * x + random.normal(size=ROWS)).round(3),
            "class": np.where(x + random.normal(size=ROWS) > 0, "up", "down"),
            "count": random.poisson(np.exp(0.3 * x)),
            "time": random.exponential(size=ROWS).round(3) + 0.01,
            "event": random.integers(0, 2, ROWS),
        }
    )


def _write_package_files(folder: Path, frame: Any) -> None:
    """The table as other programs write it, and in an archive."""
    import pyreadr
    import pyreadstat

    frame.to_excel(folder / "table.xlsx", index=False)
    labels = {"b": {0: "none"}}
    pyreadstat.write_dta(frame, folder / "table.dta", variable_value_labels=labels)
    pyreadstat.write_sav(frame, folder / "table.sav", variable_value_labels=labels)
    pyreadstat.write_sav(frame, folder / "table.zsav", compress=True)
    pyreadstat.write_xport(frame, folder / "table.xpt")
    pyreadr.write_rds(str(folder / "table.rds"), frame, compress="gzip")
    pyreadr.write_rdata(str(folder / "table.rdata"), frame, df_name="table")
    with zipfile.ZipFile(folder / "table.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(folder / "table.csv", "table.csv")


def _write_grids(folder: Path, random: np.random.Generator) -> None:
    pixels = random.integers(0, 256, (IMAGES, SIDE, SIDE), dtype=np.uint8)
    labels = np.arange(IMAGES, dtype=np.uint8) % 2
    volumes = random.normal(size=(IMAGES, 1, SLICES, SIDE, SIDE)).astype(np.float32)
    masks = (pixels > 128).astype(np.uint8)
    np.save(folder / "pictures.npy", pixels)
    np.savez(folder / "pictures.npz", x=pixels, masks=masks)
    np.savez_compressed(folder / "labelled.npz", x=pixels, y=labels)
    np.savez(folder / "volumes.npz", x=volumes, **{"class": labels})
    (folder / "train-images-idx3-ubyte").write_bytes(_idx(pixels))
    (folder / "train-labels-idx1-ubyte").write_bytes(_idx(labels))
    (folder / "volume.nii").write_bytes(_nifti(volumes[0, 0]))
    (folder / "volume.nii.gz").write_bytes(gzip.compress(_nifti(volumes[0, 0]), mtime=0))
    for number in range(IMAGES):
        place = folder / "images" / ("even", "odd")[number % 2] / f"{number}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(encode_image(pixels[number], "PNG"))
    for name, content in images(pixels).items():
        (folder / name).write_bytes(content)


def images(pixels: np.ndarray) -> dict[str, bytes]:
    """Image files of every format, by name: grey, colours, palettes, 16 bits, pages."""
    from PIL import Image

    grey, colours = pixels[0], np.stack([pixels[0], pixels[1], pixels[2]], -1)
    deep = grey.astype(np.uint16) * 257
    palette = Image.fromarray(colours).quantize(16)
    pages = [Image.fromarray(each) for each in pixels[1:4]]
    stack: dict[str, Any] = {"save_all": True, "append_images": pages}
    return {
        "grey.png": encode_image(grey, "PNG"),
        "deep.png": encode_image(deep, "PNG"),
        "palette.png": encode_image(palette, "PNG"),
        "grey.jpg": encode_image(grey, "JPEG"),
        "colours.jpg": encode_image(colours, "JPEG", progressive=True),
        "plain.tif": encode_image(grey, "TIFF"),
        "lzw.tif": encode_image(colours, "TIFF", compression="tiff_lzw"),
        "deflate.tif": encode_image(deep, "TIFF", compression="tiff_adobe_deflate"),
        "jpeg.tif": encode_image(colours, "TIFF", compression="jpeg"),
        "fax.tif": encode_image(Image.fromarray(grey > 99), "TIFF", compression="group4"),
        "pages.tif": encode_image(grey, "TIFF", **stack),
        "palette.gif": encode_image(palette, "GIF"),
        "frames.gif": encode_image(grey, "GIF", **stack),
        "grey.bmp": encode_image(grey, "BMP"),
        "colours.bmp": encode_image(colours, "BMP"),
        "lossy.webp": encode_image(colours, "WEBP"),
        "lossless.webp": encode_image(colours, "WEBP", lossless=True),
        "grey.pgm": encode_image(grey, "PPM"),
        "colours.ppm": encode_image(colours, "PPM"),
        "plain.pgm": b"P2\n# grey\n3 2\n255\n0 1 2\n3 4 5\n",
    }


def encode_image(pixels: Any, form: str, **options: Any) -> bytes:
    """The bytes of an image file."""
    from PIL import Image

    image = Image.fromarray(pixels) if isinstance(pixels, np.ndarray) else pixels
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def _idx(values: np.ndarray) -> bytes:
    head = struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape)
    return head + values.tobytes()


def _nifti(volume: np.ndarray) -> bytes:
    head = bytearray(352)
    struct.pack_into("<i", head, 0, 348)
    struct.pack_into("<8h", head, 40, 3, *volume.shape[::-1], 1, 1, 1, 1)
    struct.pack_into("<2h", head, 70, 16, 32)
    struct.pack_into("<8f", head, 76, 1.0, *([1.0] * 7))
    struct.pack_into("<3f", head, 108, 352.0, 1.0, 0.0)
    head[344:348] = b"n+1\0"
    return bytes(head) + volume.tobytes()


def _write_configurations(folder: Path) -> None:
    import json

    options = {
        "target": ["y"],
        "likelihood": "normal",
        "network": "mlp",
        "inference": "point",
        "test": 0.25,
        "drop": ["town"],
        "roles": {"b": "numeric"},
        "seed": 3,
        "time_limit": 60.0,
        "options": {"widths": [8, 8], "dropout": 0.1, "epochs": 2},
        "missing": ["NA"],
        "weights": "count",
    }
    (folder / "options.json").write_text(json.dumps(options, indent=1))
    (folder / "options.toml").write_text(
        'target = ["y"]\nlikelihood = "normal"\nnetwork = "mlp"\ntest = 0.25\ndrop = ["town"]\n'
        'seed = 3\ntime_limit = 60.0\nmissing = ["NA"]\n\n[options]\nwidths = [8, 8]\n'
        'dropout = 0.1\nepochs = 2\n\n[roles]\nb = "numeric"\n'
    )
