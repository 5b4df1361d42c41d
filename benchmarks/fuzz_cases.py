"""One damaged input per call: what is damaged, how, and the command that reads it."""

import gzip
import io
import json
import shutil
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from fuzz_corpus import MODELS, RUNS
from fuzz_mutations import damage_bytes, damage_json, damage_png, damage_table, encode_damaged

from ansatz.storage.folder import MANIFEST, FileEntry, decode_manifest, encode_manifest

Damage = Callable[[bytes, Random], bytes]


class Input(NamedTuple):
    """The command that reads a damaged input, and the names of which a refusal states one."""

    arguments: list[str]
    names: tuple[str, ...]


class Maker(NamedTuple):
    """Makes inputs of one format: ``make(corpus, work, random)``."""

    make: Callable[[Path, Path, Random], Input]
    share: float = 1.0  # how many inputs, against the other formats


def _table_commands(corpus: Path, file: str, random: Random) -> list[str]:
    model = str(corpus / f"{random.choice(('number', 'ensemble', 'linear'))}-model")
    return random.choice(
        (
            ["predict", model, file],
            ["predict", model, file, "--stream"],
            ["evaluate", model, file],
            ["evaluate", str(corpus / "survival-model"), file],
            ["fit", file, "--target", random.choice(("y", "class", "count")), "--dry-run"],
            ["fit", file, "--target", "y", "--dry-run", "--stream"],
            ["fit", file, "--target", "time", "--event", "event", "--dry-run"],
            [*("fit", file, "--target", "y", "--network", "linear"), *("-q", "--out", "out")],
        )
    )


def _grid_commands(corpus: Path, file: str, random: Random) -> list[str]:
    return random.choice(
        (
            ["predict", str(corpus / "images-model"), file],
            ["predict", str(corpus / "images-model"), file, "--pages", "images"],
            ["predict", str(corpus / "masks-model"), file],
            ["predict", str(corpus / "volumes-model"), file],
            ["evaluate", str(corpus / "masks-model"), file],
            ["fit", file, "--x", "grid", "--target", "class", "--dry-run"],
            ["fit", "folder", "--x", "grid", "--dry-run"],
        )
    )


def files(
    names: Sequence[str],
    commands: Callable[[Path, str, Random], list[str]],
    *damages: Damage,
    share: float = 1.0,
) -> Maker:
    """Inputs that are one file of data, damaged by one of ``damages``."""

    def make(corpus: Path, work: Path, random: Random) -> Input:
        name = random.choice(names)
        content = random.choice(damages)((corpus / name).read_bytes(), random)
        arguments = commands(corpus, name, random)
        if "folder" in arguments:  # among whole images
            shutil.copytree(corpus / "images", work / "folder")
            (work / "folder" / "even" / name).write_bytes(content)
            return Input(arguments, ("folder",))
        (work / name).write_bytes(content)
        if "-images-" in name:
            shutil.copy(corpus / name.replace("images-idx3", "labels-idx1"), work)
        return Input(arguments, (name,))

    return Maker(make, share)


def _damage_cells(content: bytes, random: Random) -> bytes:
    return damage_table(content.decode(), random).encode(errors="surrogatepass")


def _damage_inside_gzip(content: bytes, random: Random) -> bytes:
    return gzip.compress(damage_bytes(gzip.decompress(content), random), mtime=0)


def _damage_packed(content: bytes, random: Random) -> bytes:
    packed = content[:2] == b"\x1f\x8b"
    return _damage_inside_gzip(content, random) if packed else damage_bytes(content, random)


def damage_members(content: bytes, random: Random) -> bytes:
    """Damages the members of a zip archive, so that its own sums stay right."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w") as new:
        for entry in old.infolist():
            member = old.read(entry)
            if random.random() < 0.4:
                member = damage_bytes(member, random)
            new.writestr(entry.filename, member, entry.compress_type)
    return made.getvalue()


def _make_model(corpus: Path, work: Path, random: Random) -> Input:
    kind = random.choice(list(MODELS))
    data = _copy_model(kind, corpus, work, random)
    command: list[str] = random.choice(
        (
            *(["predict", "model", data], ["evaluate", "model", data], ["inspect", "model"]),
            ["predict", "model", data, "--interval", "0.9"],
            ["fit", data, *MODELS[kind].options, "--out", "model", "--overwrite", "--dry-run"],
        )
    )
    return Input(command, ("model",))


def _make_page(corpus: Path, work: Path, random: Random) -> Input:
    """What a model is turned into, which takes seconds."""
    data = _copy_model(random.choice(list(MODELS)), corpus, work, random)
    command: list[str] = random.choice(
        (
            ["export", "model", "model.onnx"],
            ["report", "model", "--data", data, "--out", "model.html", "--quiet"],
        )
    )
    return Input(command, ("model",))


def _copy_model(kind: str, corpus: Path, work: Path, random: Random) -> str:
    """Copies and damages a model; returns data that it can predict."""
    shutil.copytree(corpus / f"{kind}-model", work / "model")
    _damage_folder(work / "model", "ansatz.json", random)
    return str(corpus / MODELS[kind].data)


def _make_checkpoint(corpus: Path, work: Path, random: Random) -> Input:
    kind = random.choice(list(RUNS))
    training = f"{kind}.training"
    shutil.copytree(corpus / training, work / training)
    step = random.choice(sorted((work / training).iterdir()))
    for other in (work / training).iterdir():
        if other != step:
            shutil.rmtree(other)
    _damage_folder(step, "state.json", random)
    command = [*RUNS[kind](corpus), "--out", kind, "--resume"]
    if random.random() < 0.2:
        command.append("--force")
    return Input(["inspect", training] if random.random() < 0.1 else command, (kind,))


def _damage_folder(folder: Path, specification: str, random: Random) -> None:
    """Damages a file of a saved folder; mostly its manifest vouches for it again."""
    way = random.random()
    name = random.choice(sorted(path.name for path in folder.iterdir() if path.name != MANIFEST))
    if way < 0.7:
        name = specification
        value = json.loads((folder / name).read_bytes())
        content = encode_damaged(damage_json(value, random), random)
    elif way < 0.85 and name.endswith(".safetensors"):
        content = damage_tensors((folder / name).read_bytes(), random)
    else:
        content = damage_bytes((folder / name).read_bytes(), random)
    if way > 0.97:
        name, content = MANIFEST, damage_bytes((folder / MANIFEST).read_bytes(), random)
    (folder / name).write_bytes(content)
    if name != MANIFEST and random.random() < 0.97:
        old = decode_manifest((folder / MANIFEST).read_bytes())
        header = damage_json(old.header, random) if random.random() < 0.05 else old.header
        new = old._replace(files={**old.files, name: FileEntry.of(content)}, header=header)
        (folder / MANIFEST).write_bytes(encode_manifest(new))


def damage_tensors(content: bytes, random: Random) -> bytes:
    """Edits the header of a safetensors file, or its numbers."""
    size = int.from_bytes(content[:8], "little")
    header, data = content[8 : 8 + size], content[8 + size :]
    if random.random() < 0.5:
        return content[: 8 + size] + damage_bytes(data, random)[: len(data)].ljust(len(data), b"\0")
    header = json.dumps(damage_json(json.loads(header), random)).encode()
    return len(header).to_bytes(8, "little") + header + data


def _make_weights(corpus: Path, work: Path, random: Random) -> Input:
    name = random.choice(("weights.safetensors", "weights.pth"))
    damage = random.choice((damage_bytes, damage_tensors if name[-1] == "s" else damage_members))
    (work / name).write_bytes(damage((corpus / name).read_bytes(), random))
    options = [*MODELS["images"].options, "--pretrained", name, "--quiet", "--out", "out"]
    # Weights that are numbers, but too large to train with, are found in training.
    return Input(["fit", str(corpus / "images"), *options], (name, "step 1: "))


def _make_configuration(corpus: Path, work: Path, random: Random) -> Input:
    name = random.choice(("options.json", "options.json", "options.toml"))
    content = (corpus / name).read_bytes()
    if name.endswith("json") and random.random() < 0.8:
        content = encode_damaged(damage_json(json.loads(content), random), random)
    else:
        content = damage_bytes(content, random)
    (work / name).write_bytes(content)
    words = ["fit", str(corpus / "table.csv"), "--config", name, "--dry-run", "--out", "out"]
    return Input(words, ("",))  # what an option asks for, its owner refuses under its name


_TIFF = ("plain.tif", "lzw.tif", "deflate.tif", "jpeg.tif", "fax.tif", "pages.tif")

FORMATS: dict[str, Maker] = {
    "csv": files(("table.csv",), _table_commands, damage_bytes, _damage_cells, _damage_cells),
    "gz": files(("table.csv.gz",), _table_commands, damage_bytes, _damage_inside_gzip),
    "parquet": files(("table.parquet",), _table_commands, damage_bytes),
    "arrow": files(("table.feather",), _table_commands, damage_bytes),
    "zip": files(("table.zip",), _table_commands, damage_bytes, damage_members, share=0.5),
    "xlsx": files(("table.xlsx",), _table_commands, damage_bytes, damage_members, share=0.7),
    "stata": files(("table.dta",), _table_commands, damage_bytes, share=0.5),
    "spss": files(("table.sav", "table.zsav"), _table_commands, damage_bytes, share=0.7),
    "sas": files(("table.xpt",), _table_commands, damage_bytes, share=0.5),
    "r": files(
        ("table.rds", "table.rdata"), _table_commands, damage_bytes, _damage_packed, share=0.7
    ),
    "npz": files(
        ("table.npz", "packed.npz"), _table_commands, damage_bytes, damage_members, share=0.5
    ),
    "npz of grids": files(
        *[("pictures.npz", "labelled.npz", "volumes.npz"), _grid_commands],
        *[damage_bytes, damage_members],
        share=0.5,
    ),
    "npy": files(("pictures.npy",), _grid_commands, damage_bytes, share=0.5),
    "idx": files(("train-images-idx3-ubyte",), _grid_commands, damage_bytes, share=0.5),
    "png": files(("grey.png", "deep.png", "palette.png"), _grid_commands, damage_bytes, damage_png),
    "jpeg": files(("grey.jpg", "colours.jpg"), _grid_commands, damage_bytes),
    "tiff": files(_TIFF, _grid_commands, damage_bytes),
    "gif": files(("palette.gif", "frames.gif"), _grid_commands, damage_bytes),
    "bmp": files(("grey.bmp", "colours.bmp"), _grid_commands, damage_bytes, share=0.5),
    "webp": files(("lossy.webp", "lossless.webp"), _grid_commands, damage_bytes),
    "ppm": files(("grey.pgm", "colours.ppm", "plain.pgm"), _grid_commands, damage_bytes, share=0.5),
    "nifti": files(("volume.nii", "volume.nii.gz"), _grid_commands, damage_bytes),
    "weights": Maker(_make_weights, 0.5),
    "checkpoint": Maker(_make_checkpoint, 0.7),
    "model": Maker(_make_model, 3.0),
    "export and report": Maker(_make_page, 0.15),
    "configuration": Maker(_make_configuration),
}
