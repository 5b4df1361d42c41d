"""ansatz fit: from a table or images to a saved model and its evidence."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ansatz.cli.completion import complete
from ansatz.cli.destination import require_free
from ansatz.cli.document import print_document
from ansatz.cli.pairs import pairs_of, stem
from ansatz.cli.processes import fit_in_processes, follow_launcher, is_first, one_voice
from ansatz.cli.reading import (
    Comment,
    Decimal,
    Delimiter,
    Encoding,
    Missing,
    Names,
    NoHeader,
    number_or_colour,
    reader_options,
    whole_numbers,
    words,
)

if TYPE_CHECKING:
    from ansatz.cli.config import FitConfig

_MODEL, _ROWS, _RUN = "The model", "Rows and columns", "The run"
_IMAGES = "Images, signals and volumes"


def _option(help: str, panel: str, *names: str, **extra: Any) -> Any:
    # None is "not given": what is not given here may be given by --config.
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=False, **extra)


def fit(
    data: Annotated[
        str | None,
        typer.Argument(
            help="A file (CSV, gz, Parquet, Arrow, npz), a folder of images, or a data set's name.",
            autocompletion=complete("datasets"),
        ),
    ] = None,
    target: Annotated[
        str | None, _option("The column to predict; several as A,B.", _MODEL, metavar="COL")
    ] = None,
    event: Annotated[
        str | None,
        _option(
            "Survival: 1 where the target is the time of an event, 0 where the row was censored; "
            "or COL=VALUE.",
            _MODEL,
            metavar="COL",
        ),
    ] = None,
    entry: Annotated[
        str | None,
        _option("Survival: the time from which the row was watched.", _MODEL, metavar="COL"),
    ] = None,
    lower: Annotated[
        str | None,
        _option("In place of --target: y lies above this.", _MODEL, metavar="COL"),
    ] = None,
    upper: Annotated[
        str | None,
        _option("With --lower: and not above this; empty is open.", _MODEL, metavar="COL"),
    ] = None,
    trials: Annotated[
        str | None,
        _option("The target counts the successes of so many trials.", _MODEL, metavar="COL"),
    ] = None,
    x: Annotated[
        str | None,
        _option(
            "What x looks like: vector, the rows of a table, or grid: signals, images, volumes. "
            "Default: by the data.",
            _MODEL,
            "--x",
            metavar="STRUCTURE",
            autocompletion=complete("structures"),
        ),
    ] = None,
    likelihood: Annotated[
        str | None,
        _option(
            "What kind of quantity y is (ansatz list likelihoods). Chosen from y by default.",
            _MODEL,
            metavar="NAME",
            autocompletion=complete("likelihoods"),
        ),
    ] = None,
    network: Annotated[
        str | None,
        _option(
            "The network (ansatz list networks); 'linear' for a GLM.",
            _MODEL,
            metavar="NAME",
            autocompletion=complete("networks"),
        ),
    ] = None,
    inference: Annotated[
        str | None, _option("How sure you need to be. Default: point.", _MODEL, metavar="NAME")
    ] = None,
    set_: Annotated[
        list[str] | None,
        _option(
            "An option of the network, the likelihood or the training, the value as JSON: "
            "--set widths=[64,64].",
            _MODEL,
            "--set",
            metavar="KEY=VALUE",
        ),
    ] = None,
    test: Annotated[
        float | None, _option("Share of the rows kept for the test. Default: 0.2.", _ROWS)
    ] = None,
    folds: Annotated[int | None, _option("Cross-validate with this many folds.", _ROWS)] = None,
    group: Annotated[
        str | None, _option("Rows alike in this column stay on one side.", _ROWS, metavar="COL")
    ] = None,
    time: Annotated[
        str | None, _option("Test on the latest rows by this column.", _ROWS, metavar="COL")
    ] = None,
    weights: Annotated[
        str | None,
        _option(
            "How often each row counts; or a file (.safetensors, .pth) of weights that the network "
            "begins with.",
            _ROWS,
            metavar="COL|FILE",
        ),
    ] = None,
    offset: Annotated[
        str | None, _option("Added to the linear predictor.", _ROWS, metavar="COL")
    ] = None,
    exposure: Annotated[
        str | None,
        _option("Its logarithm is added to the linear predictor.", _ROWS, metavar="COL"),
    ] = None,
    drop: Annotated[str | None, _option("Columns to leave out.", _ROWS, metavar="A,B,...")] = None,
    role: Annotated[
        list[str] | None,
        _option(
            "What a column is: numeric, categorical, ordered, date, drop. May be repeated.",
            _ROWS,
            metavar="COL=ROLE",
        ),
    ] = None,
    image: Annotated[
        str | None,
        _option("The column of a table that names image files.", _IMAGES, metavar="COL"),
    ] = None,
    masks: Annotated[
        str | None,
        _option(
            "A label for every pixel: a folder of masks, the column that names them, or a file "
            "with a page for each page of DATA.",
            _IMAGES,
            metavar="DIR|COL|FILE",
        ),
    ] = None,
    pages: Annotated[
        str | None,
        _option(
            "What the pages of an image file (a TIFF stack) are: images, the slices of a volume, "
            "or left out but the first.",
            _IMAGES,
            metavar="images|volume|first",
        ),
    ] = None,
    pieces: Annotated[
        int | None,
        _option(
            "Cut each image or volume with its mask into so many examples, along its longest "
            "axis: where there is one alone.",
            _IMAGES,
            metavar="N",
        ),
    ] = None,
    size: Annotated[
        str | None,
        _option("Bring all images to this size, like 64 or 48x64.", _IMAGES, metavar="H[xW]"),
    ] = None,
    channels: Annotated[
        str | None,
        _option(
            "Arrays: the axis of the channels, first, last or none; or how many (images: 1 or 3).",
            _IMAGES,
            metavar="WHERE|N",
        ),
    ] = None,
    unlabelled: Annotated[
        str | None,
        _option(
            "The value, or the '#rrggbb', in masks that means: not known.",
            _IMAGES,
            metavar="VALUE",
        ),
    ] = None,
    skip_corrupt: Annotated[
        bool | None,
        _option("Leave out files that cannot be read.", _IMAGES, "--skip-corrupt"),
    ] = None,
    freeze: Annotated[
        str | None,
        _option(
            "Leave this of the network as it began: backbone, or a number of groups of layers.",
            _IMAGES,
            metavar="PART",
        ),
    ] = None,
    out: Annotated[
        Path | None, _option("Folder for the model. Default: DATA-model.", _RUN, metavar="DIR")
    ] = None,
    overwrite: Annotated[
        bool | None, _option("Replace what is at --out.", _RUN, "--overwrite")
    ] = None,
    resume: Annotated[
        bool | None, _option("Go on where an interrupted run stopped.", _RUN, "--resume")
    ] = None,
    force: Annotated[
        bool | None, _option("Resume although data or options changed.", _RUN, "--force")
    ] = None,
    device: Annotated[
        str | None, _option("auto, cpu, cuda or mps. Default: auto.", _RUN, metavar="NAME")
    ] = None,
    seed: Annotated[int | None, _option("One seed for the whole run. Default: 0.", _RUN)] = None,
    processes: Annotated[
        int | None,
        _option(
            "Train in so many processes of this machine, which share every batch. Default: 1; "
            "for several machines see torchrun.",
            _RUN,
            metavar="N",
        ),
    ] = None,
    time_limit: Annotated[
        float | None, _option("Stop training after so many seconds.", _RUN, metavar="SECONDS")
    ] = None,
    tensorboard: Annotated[
        Path | None, _option("Write TensorBoard logs to this folder.", _RUN, metavar="DIR")
    ] = None,
    stream: Annotated[
        bool | None,
        _option(
            "Read the table block by block, images file by file, in bounded memory, or all at "
            "once. Default: by their size.",
            _RUN,
            "--stream/--no-stream",
        ),
    ] = None,
    memory_limit: Annotated[
        str | None,
        _option(
            "What the table or the decoded images may take in memory, like 4GB; more is "
            "streamed. Default: a quarter of what is free.",
            _RUN,
            metavar="SIZE",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        _option("Read options from a TOML or JSON file; the command line wins.", _RUN),
    ] = None,
    print_config: Annotated[
        bool, _option("Print all options as JSON for --config, and stop.", _RUN, "--print-config")
    ] = False,
    dry_run: Annotated[
        bool, _option("Read the data, say what would be done, and stop.", _RUN, "--dry-run")
    ] = False,
    quiet: Annotated[bool, _option("No progress.", _RUN, "--quiet", "-q")] = False,
    as_json: Annotated[bool, _option("Print one JSON document.", _RUN, "--json")] = False,
    delimiter: Delimiter = None,
    no_header: NoHeader = None,
    names: Names = None,
    comment: Comment = None,
    missing: Missing = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
) -> None:
    """Fit a network to a table or to images, beside a linear and a constant model.

    Says what each column was taken for, trains, tests on rows that chose nothing, and saves
    the model in a folder.

    Example:
        ansatz fit houses.csv --target price
        ansatz fit claims.csv --target count --likelihood poisson --exposure years
        ansatz fit patients.csv --target weeks --event died --likelihood cox
        ansatz fit visits.csv --target cost --group patient --set widths=[64,64]
        ansatz fit houses.csv --target price --network linear --json
        ansatz fit flowers/ --network resnet18 --weights resnet18.pth --freeze backbone
        ansatz fit cells/ --masks labels/ --likelihood dice
        ansatz fit train-volume.tif --masks train-labels.tif
        ansatz fit scene/ --masks labels/ --pieces 5
        ansatz fit beats.csv --x grid --target rhythm
    """
    from ansatz.cli.config import make_config, read_config

    given = {
        "data": data,
        "target": words(target),
        "event": event,
        "entry": entry,
        "lower": lower,
        "upper": upper,
        "trials": trials,
        "x": x,
        "likelihood": likelihood,
        "network": network,
        "inference": inference,
        "out": None if out is None else str(out),
        "overwrite": overwrite,
        "resume": resume,
        "force": force,
        "device": device,
        "seed": seed,
        "test": test,
        "folds": folds,
        "group": group,
        "time": time,
        "weights": weights,
        "offset": offset,
        "exposure": exposure,
        "drop": words(drop),
        "time_limit": time_limit,
        "processes": processes,
        "tensorboard": None if tensorboard is None else str(tensorboard),
        "stream": stream,
        "memory_limit": memory_limit,
        "progress": "off" if quiet else None,
        "image": image,
        "masks": masks,
        "pages": pages,
        "pieces": pieces,
        "size": None if size is None else whole_numbers("--size", size),
        "channels": int(channels) if channels is not None and channels.isdigit() else channels,
        "unlabelled": None if unlabelled is None else number_or_colour("--unlabelled", unlabelled),
        "on_corrupt": "skip" if skip_corrupt else None,
        **reader_options(delimiter, no_header, names, comment, missing, decimal, encoding),
    }
    content = {} if config is None else read_config(config)
    content |= {key: value for key, value in given.items() if value is not None}
    if role:
        content["roles"] = {**content.get("roles", {}), **pairs_of("roles", role)}
    if set_:
        content["options"] = {**content.get("options", {}), **pairs_of("options", set_)}
    if freeze is not None:
        part = int(freeze) if freeze.isdigit() else freeze
        content["options"] = {**content.get("options", {}), "freeze": part}
    chosen = make_config(content, "ansatz fit" if config is None else f"--config {config}")
    if print_config:
        print_document(chosen.model_dump())
        return
    folder = Path(chosen.out) if chosen.out else Path(f"{stem(chosen.data)}-model")
    advice = "To replace it: --overwrite; to keep it: another --out."
    require_free(folder, overwrite=chosen.overwrite or chosen.resume, advice=advice)
    if dry_run:
        from ansatz.cli.plan import print_plan

        print_plan(chosen, folder, as_json)
    elif chosen.processes > 1:
        fit_in_processes(chosen, folder, as_json)
    else:
        _run(chosen, folder, as_json)


def _run(chosen: "FitConfig", folder: Path, as_json: bool) -> None:
    import ansatz  # after the checks that need no torch
    from ansatz.cli.evidence import print_fit

    options = chosen.model_dump(exclude={"data", "out", "processes"}, exclude_defaults=True)
    follow_launcher()
    with one_voice():
        result = ansatz.fit(chosen.data, out=folder, **{"progress": "auto", **options})
    if not is_first():  # of several processes, one tells the result
        return
    if as_json:
        print_document(result.to_dict())
    else:
        print_fit(result)
