"""ansatz export: a saved model as one file that other programs can serve."""

from pathlib import Path
from typing import Annotated

import typer

from ansatz.cli.output import print_document, print_line, print_note, printable, require_free
from ansatz.errors import UsageError


def export(
    model: Annotated[Path, typer.Argument(help="The folder that ansatz fit wrote.")],
    file: Annotated[
        Path | None,
        typer.Argument(help="What to write; MODEL.onnx by default.", show_default=False),
    ] = None,
    onnx: Annotated[
        bool, typer.Option("--onnx", help="As ONNX, the default.", show_default=False)
    ] = True,
    hf: Annotated[
        bool,
        typer.Option(
            "--hf",
            help="As a folder of Hugging Face: a bert, distilbert or gpt on texts with its "
            "tokenizer; an adapter in PEFT's format.",
            show_default=False,
        ),
    ] = False,
    merge: Annotated[
        bool, typer.Option("--merge", help="With --hf: add an adapter to the weights.")
    ] = False,
    double: Annotated[
        bool, typer.Option("--double", help="Compute in float64, and take float64.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace FILE.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Write a saved model as one ONNX file, preprocessing included, or as a folder.

    The file takes the columns of the table as they are and gives the likelihood's parameters,
    predictions and probabilities. It is run in onnxruntime and compared with the model before it is
    written.

    Example:
        ansatz export houses-model --onnx
        ansatz export houses-model --onnx houses.onnx --double
        ansatz export reviews-model --hf reviews-bert
    """
    if merge and not hf:
        raise UsageError("--merge goes with --hf.")
    path = Path(f"{model}{'-hf' if hf else '.onnx'}") if file is None else file
    require_free(path, overwrite=overwrite, advice="To replace it: --overwrite.")
    from ansatz.cli.opening import open_model

    estimator = open_model(model)
    if hf:
        fitted = estimator.model_
        notes = fitted.structure.export_folder(fitted, str(path), merged=merge)
        for note in notes:
            print_note(f"note: {note}")
        files = sorted(each.name for each in path.iterdir())
        if as_json:
            print_document({"path": str(path), "files": files, "notes": notes})
        else:
            print_line(f"{path}: {', '.join(files)}")
        return
    from ansatz.onnx import export as write

    written = write(estimator, path, double=double, overwrite=overwrite)
    for note in written.notes:
        print_note(f"note: {note}")
    if as_json:
        print_document({**written._asdict(), "path": str(written.path)})
        return
    inputs = ", ".join(map(printable, written.inputs[:8]))
    more = f", and {len(written.inputs) - 8} more" if len(written.inputs) > 8 else ""
    print_line(f"{written.path}: {len(written.inputs)} inputs ({inputs}{more})")
    print_line(f"gives {', '.join(written.outputs)}")
    print_line(
        f"differs from the model by {written.difference:.1e} relative at most, in onnxruntime"
    )
