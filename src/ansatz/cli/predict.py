"""ansatz predict: a saved model's answers, as CSV or JSON."""

import json
import math
import sys
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ansatz.cli.options import AGAIN, takes
from ansatz.cli.output import plain, print_document, print_line, print_note, require_free
from ansatz.errors import UsageError
from ansatz.fitting.options.commands import ReadingToPredict

if TYPE_CHECKING:
    import pandas as pd


_NOT_CSV = {".parquet", ".arrow", ".feather", ".npz", ".json", ".xlsx", ".xls", ".gz", ".zip"}


class Output(NamedTuple):
    """The file and the format of predictions."""

    file: Path | None = None
    overwrite: bool = False
    raw: bool = False
    as_json: bool = False

    def check(self) -> None:
        """Refuses a file of another kind, and one that is there."""
        if self.file is None:
            return
        ending = self.file.suffix.lower()
        odd = (_NOT_CSV | {".csv"}) - {".json"} if self.as_json else _NOT_CSV
        if ending in odd:
            kind = "JSON" if self.as_json else "CSV"
            raise UsageError(
                f"--out {self.file}: predictions are {kind}; name the file something.{kind.lower()}"
                + (", or add --json." if ending == ".json" else ".")
            )
        require_free(self.file, overwrite=self.overwrite, advice="To replace it: --overwrite.")

    def blocks(self, frames: "Iterable[pd.DataFrame]") -> Iterator[bytes]:
        """Yields what is written, block by block."""
        from ansatz.cli.predict import csv_blocks, json_blocks

        if self.as_json:
            yield from json_blocks(frames)
            return
        for number, frame in enumerate(frames):
            yield from csv_blocks(frame, raw=self.raw, header=number == 0)

    def write(self, frames: "Iterable[pd.DataFrame]", *, in_chunks: bool) -> None:
        """Writes predictions to the file, whole or not at all, or to standard output."""
        if self.file is None:
            for block in self.blocks(frames):
                send(block)
            return
        from ansatz.storage import write_file
        from ansatz.storage.disk import write_chunks

        counts: list[int] = []
        blocks = self.blocks(_counted(frames, counts))
        if in_chunks:
            write_chunks(self.file, blocks, overwrite=self.overwrite)
        else:
            write_file(self.file, b"".join(blocks), overwrite=self.overwrite)
        if self.as_json:
            print_document({"predictions": sum(counts), "out": self.file})
        else:
            print_line(f"{sum(counts)} predictions: {self.file}")


@takes(ReadingToPredict, AGAIN)
def predict(
    given: dict[str, Any],
    model: Annotated[Path, typer.Argument(help="The folder that ansatz fit wrote.")],
    data: Annotated[
        str,
        typer.Argument(
            help="A table with the columns of the training table; for images a folder or file."
        ),
    ],
    interval: Annotated[
        float | None,
        typer.Option(
            help="Add the bounds that hold this share of the probability.", metavar="LEVEL"
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="Bounds of the predicted distribution, or conformal bounds of held-out rows.",
            metavar="predictive|conformal",
        ),
    ] = "predictive",
    times: Annotated[
        str | None,
        typer.Option(help="Survival models: add the chance to get past each time.", metavar="T,T"),
    ] = None,
    instances: Annotated[
        bool, typer.Option("--instances", help="Masks: number the objects, count them.")
    ] = False,
    allow_unconverged: Annotated[
        bool,
        typer.Option("--allow-unconverged", help="Answer although draws have failed to converge."),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Write here instead of standard output.", metavar="FILE")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace FILE.")] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="Leave text that looks like a formula as it is.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Predict each row of a table with a saved model.

    Writes CSV: row (0 for the first), prediction, lower and upper with --interval, and
    p_CLASS for each class; with --json a list of such records. A survival model predicts the
    median, and with --times survival_T for each time. A model of masks writes them as images
    where --out is a folder, each of the size of its image, or as the pages of one file where it
    ends in .tif, else the share of each class. With --instances the pixels of each connected
    object have a number of their own.

    Example:
        ansatz predict houses-model new.csv
        ansatz predict houses-model new.csv --interval 0.9 --out predictions.csv
        ansatz predict patients-model new.csv --times 12,24 --json
        ansatz predict flowers-model photos/ --out predictions.csv
        ansatz predict cells-model slides/ --out masks/
        ansatz predict cells-model test-volume.tif --out test-labels.tif
    """
    if interval is not None and not 0 < interval < 1:
        raise UsageError(f"--interval must be in (0, 1), got {interval}. For 90 percent: 0.9.")
    if method not in ("predictive", "conformal"):
        raise UsageError(f"--method must be predictive or conformal, got {method}.")
    options: dict[str, Any] = {} if times is None else {"times": _numbers(times)}
    output = Output(out, overwrite, raw, as_json)
    output.check()
    from ansatz.cli.opening import naming, open_data, open_model

    estimator = open_model(model, allow_unconverged=allow_unconverged)
    outcome = estimator.model_.outcome
    if times is not None and "times" not in outcome.frame_options:
        raise UsageError("--times is for survival models; this one has no survival curve.")
    if instances:
        if "instances" not in outcome.frame_options:
            raise UsageError("--instances is for masks; this model predicts none.")
        options["instances"] = True
    if given.pop("components", False):
        options["components"] = True
    if method != "predictive":
        from ansatz.fitting.intervals import require_scores

        require_scores(estimator.model_)
        options["method"] = method
    with naming(data):
        read = open_data(estimator, data, given)
        if out is not None and read.writes(out):
            written = read.write(estimator, out, overwrite=overwrite, **options)
            if as_json:
                print_document(written.document)
            else:
                print_line(written.sentence)
            return
        frames = read.frames(estimator, interval=interval, **options)
        first = list(islice(frames, 1))  # an error in it leaves nothing half-written
        if interval is not None and not any(_has_bounds(frame) for frame in first):
            print_note(f"note: {outcome.no_interval}")
        output.write(chain(first, frames), in_chunks=read.in_chunks)


def _has_bounds(frame: "pd.DataFrame") -> bool:
    return any(name.startswith("lower") for name in frame.columns)


def _numbers(text: str) -> list[float]:
    try:
        found = [float(word) for word in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(map(math.isfinite, found)):
        raise UsageError(f"--times takes numbers like 12,24, got '{text}'.")
    return found


def _counted(frames: "Iterable[pd.DataFrame]", counts: list[int]) -> "Iterator[pd.DataFrame]":
    for frame in frames:
        counts.append(len(frame))
        yield frame


def send(block: bytes) -> None:
    """Writes to standard output."""
    binary = getattr(sys.stdout, "buffer", None)
    if binary is None:
        sys.stdout.write(block.decode())
    else:  # bytes: no newline translation, and UTF-8 whatever the terminal's locale
        binary.write(block)
        binary.flush()


_BLOCK = 10_000  # rows; a reader that closes the pipe is noticed between blocks


def json_blocks(frames: "Iterable[pd.DataFrame]") -> Iterator[bytes]:
    r"""Frames as a JSON list of their rows, a line each, in blocks of UTF-8."""
    before = "[\n  "
    for frame in frames:
        frame = frame.rename_axis(index=frame.index.name or "row").reset_index()
        names = [str(name) for name in frame.columns]
        for start in range(0, len(frame), _BLOCK):
            block = frame.iloc[start : start + _BLOCK]
            rows = zip(*(block[name].tolist() for name in block.columns), strict=True)
            lines = [_line(dict(zip(names, row, strict=True))) for row in rows]
            yield (before + ",\n  ".join(lines)).encode("utf-8", "backslashreplace")
            before = ",\n  "
    yield b"[]\n" if before == "[\n  " else b"\n]\n"


def _line(record: dict[str, object]) -> str:
    return json.dumps(plain(record), allow_nan=False, ensure_ascii=False)


_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # OWASP, CSV injection (CWE-1236)


def escaped(value: Any) -> Any:
    """A string that a spreadsheet would run gets a leading quote; a number stays what it is."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def csv_blocks(
    frame: "pd.DataFrame", *, raw: bool = False, header: bool = True, index: bool = True
) -> Iterator[bytes]:
    r"""The frame as CSV, header first, in blocks of UTF-8."""
    frame = frame.rename_axis(index=frame.index.name or "row")
    if not raw:
        frame = frame.rename(columns=escaped)
        frame.index = frame.index.map(escaped)
    for start in range(0, max(len(frame), 1), _BLOCK):
        block = frame.iloc[start : start + _BLOCK]
        if not raw:
            block = block.apply(lambda column: column.map(escaped) if _is_text(column) else column)
        text = block.to_csv(header=header and start == 0, index=index, lineterminator="\n")
        yield text.encode("utf-8", "backslashreplace")


def _is_text(column: "pd.Series") -> bool:
    return column.dtype.kind not in "biufcmM"
