"""ansatz predict: a saved model's answers, as CSV or JSON."""

import math
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ansatz.cli.destination import require_free
from ansatz.cli.document import print_document
from ansatz.cli.options import AGAIN, takes
from ansatz.cli.terminal import remark, say
from ansatz.errors import UsageError
from ansatz.fitting.options.tables import ReadingAgain

if TYPE_CHECKING:
    import pandas as pd

_NOT_CSV = {".parquet", ".arrow", ".feather", ".npz", ".json", ".xlsx", ".xls", ".gz", ".zip"}


class Output(NamedTuple):
    """Where predictions go, and how.

    Args:
        file: None for standard output.
        overwrite: replace the file.
        raw: leave text in CSV that looks like a formula as it is.
        as_json: one JSON document in place of CSV.

    Example:
        >>> from ansatz.cli.predict import Output
        >>> Output().file is None
        True
    """

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
                + (", or say --json." if ending == ".json" else ".")
            )
        require_free(self.file, overwrite=self.overwrite, advice="To replace it: --overwrite.")

    def blocks(self, frames: "Iterable[pd.DataFrame]") -> Iterator[bytes]:
        """What is written, piece by piece."""
        from ansatz.cli.records import json_blocks
        from ansatz.cli.spreadsheet import csv_blocks

        if self.as_json:
            yield from json_blocks(frames)
            return
        for number, frame in enumerate(frames):
            yield from csv_blocks(frame, raw=self.raw, header=number == 0)

    def tell(self, count: int) -> None:
        """Says what was written to the file."""
        if self.as_json:
            print_document({"predictions": count, "out": self.file})
        else:
            say(f"{count} predictions: {self.file}")


@takes(ReadingAgain, AGAIN)
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
            help="Bounds by the predicted law, or conformal: those that held rows set aside.",
            metavar="law|conformal",
        ),
    ] = "law",
    times: Annotated[
        str | None,
        typer.Option(help="Survival models: add the chance to get past each time.", metavar="T,T"),
    ] = None,
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
    ends in .tif, else the share of each class.

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
    if method not in ("law", "conformal"):
        raise UsageError(f"--method must be law or conformal, got {method}.")
    options: dict[str, Any] = {} if times is None else {"times": _numbers(times)}
    output = Output(out, overwrite, raw, as_json)
    output.check()
    from ansatz.cli.model import open_model, open_table, prepare, reading_for

    estimator = open_model(model)
    if options and not hasattr(estimator, "predict_survival"):
        raise UsageError("--times is for survival models; this one has no survival curve.")
    if method != "law":
        from ansatz.estimators.predictions import require_scores

        require_scores(estimator)
        options["method"] = method
    reading = reading_for(estimator, given)
    if reading.structure == "grid":
        _grids(estimator, data, reading.options, output, interval, options)
        return
    why = reading.why_a_stream(data)
    if why is not None:
        _stream(estimator, data, reading.options, why, output, interval, options)
        return
    table = open_table(data, reading.options, estimator)
    predictions = estimator.predict_frame(prepare(estimator, table), interval=interval, **options)
    if interval is not None and not any(name.startswith("lower") for name in predictions.columns):
        remark(f"note: {_no_interval(estimator)}")
    _write(predictions, output)


def _grids(
    estimator: Any,
    data: str,
    files: dict[str, Any],
    output: Output,
    interval: float | None,
    options: dict[str, Any],
) -> None:
    """Predicts images, signals or volumes; masks are written as a folder of images."""
    from ansatz.cli.grids import open_grids, predict_grids, predict_shares, write_masks
    from ansatz.cli.mask_folder import is_tiff

    out = output.file
    is_image = out is not None and is_tiff(out)
    if is_image and not estimator.labels_cells:
        raise UsageError(f"--out {out}: predictions are CSV; name the file something.csv.")
    if estimator.labels_cells and out is not None and (is_image or not out.suffix):
        overwrite, as_json = output.overwrite, output.as_json
        write_masks(estimator, data, files, out, overwrite=overwrite, as_json=as_json)
        return
    if estimator.labels_cells:
        predictions = predict_shares(estimator, data, files)
    else:
        table = open_grids(estimator, data, files)
        predictions = predict_grids(estimator, table, interval=interval, **options)
    if interval is not None and not any(name.startswith("lower") for name in predictions.columns):
        remark(f"note: {_no_interval(estimator)}")
    _write(predictions, output)


def _stream(
    estimator: Any,
    data: str,
    reading: dict[str, Any],
    why: str,
    output: Output,
    interval: float | None,
    options: dict[str, Any],
) -> None:
    """Predicts a table that is larger than memory, writing as it goes."""
    from ansatz.cli.streaming import frames_of, predict_blocks
    from ansatz.storage.disk import write_chunks

    counts: list[int] = []
    frames = frames_of(estimator, data, reading, why)
    found = predict_blocks(estimator, frames, interval=interval, options=options, counts=counts)
    blocks = output.blocks(found)
    if output.file is None:
        for block in blocks:
            _send(block)
    else:
        write_chunks(output.file, blocks, overwrite=output.overwrite)
        output.tell(sum(counts))


def _no_interval(estimator: Any) -> str:
    """Why bounds were asked for in vain."""
    if hasattr(estimator, "predict_survival"):
        return "several causes have no interval; --times adds chances by each time."
    return "classes have no interval; p_CLASS says how sure the model is."


def _numbers(text: str) -> list[float]:
    try:
        found = [float(word) for word in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(map(math.isfinite, found)):
        raise UsageError(f"--times takes numbers like 12,24, got '{text}'.")
    return found


def _write(predictions: "pd.DataFrame", output: Output) -> None:
    blocks = output.blocks([predictions])
    if output.file is None:
        for block in blocks:
            _send(block)
        return
    from ansatz.storage import write_file

    write_file(output.file, b"".join(blocks), overwrite=output.overwrite)
    output.tell(len(predictions))


def _send(block: bytes) -> None:
    binary = getattr(sys.stdout, "buffer", None)
    if binary is None:
        sys.stdout.write(block.decode())
    else:  # bytes: no newline translation, and UTF-8 whatever the terminal's locale
        binary.write(block)
        binary.flush()
