"""ansatz tune: search for a better recipe, and say honestly whether there is one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ansatz.cli.completion import complete
from ansatz.cli.counter import Counter
from ansatz.cli.destination import require_free
from ansatz.cli.document import print_document
from ansatz.cli.pairs import pairs_of, stem
from ansatz.cli.reading import (
    Comment,
    Decimal,
    Delimiter,
    Encoding,
    MemoryLimit,
    Missing,
    Names,
    NoHeader,
    Stream,
    number_or_colour,
    reader_options,
    whole_numbers,
    words,
)
from ansatz.cli.terminal import number, print_table, remark, say
from ansatz.errors import UsageError

if TYPE_CHECKING:
    from ansatz.tuning import Trial, Tuning

_SEARCH, _MODEL, _ROWS, _RUN = "The search", "The model", "Rows and columns", "The run"
_IMAGES = "Images, signals and volumes"


def _option(help: str, panel: str, *names: str, **extra: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=False, **extra)


def tune(
    data: Annotated[
        str,
        typer.Argument(
            help="A file (CSV, gz, Parquet, Arrow, npz), a folder of images, or a data set's name.",
            autocompletion=complete("datasets"),
        ),
    ],
    target: Annotated[
        str | None, _option("The column to predict; several as A,B.", _MODEL, metavar="COL")
    ] = None,
    trials: Annotated[
        int, _option("Configurations to try besides the default. Default: 30.", _SEARCH, min=1)
    ] = 30,
    folds: Annotated[
        int, _option("Folds of the training rows that judge a trial. Default: 3.", _SEARCH, min=2)
    ] = 3,
    space: Annotated[
        list[str] | None,
        _option(
            "What an option may be: dropout=0..0.3, activation=relu,tanh, network=A,B. May be "
            "repeated.",
            _SEARCH,
            metavar="NAME=VALUES",
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        _option("Begin no trial after so many seconds.", _SEARCH, metavar="SECONDS"),
    ] = None,
    event: Annotated[
        str | None, _option("Survival: 1 for an event, 0 for censored.", _MODEL, metavar="COL")
    ] = None,
    entry: Annotated[
        str | None, _option("Survival: watched from this time on.", _MODEL, metavar="COL")
    ] = None,
    lower: Annotated[
        str | None, _option("In place of --target: y lies above this.", _MODEL, metavar="COL")
    ] = None,
    upper: Annotated[
        str | None, _option("With --lower: and not above this.", _MODEL, metavar="COL")
    ] = None,
    trials_column: Annotated[
        str | None,
        _option("The target counts the successes of so many trials.", _MODEL, metavar="COL"),
    ] = None,
    x: Annotated[
        str | None,
        _option(
            "What x looks like: vector, or grid: signals, images, volumes. Default: by the data.",
            _MODEL,
            "--x",
            metavar="STRUCTURE",
            autocompletion=complete("structures"),
        ),
    ] = None,
    likelihood: Annotated[
        str | None,
        _option(
            "What kind of quantity y is. Searched by default.",
            _MODEL,
            metavar="NAME",
            autocompletion=complete("likelihoods"),
        ),
    ] = None,
    network: Annotated[
        str | None,
        _option("The network.", _MODEL, metavar="NAME", autocompletion=complete("networks")),
    ] = None,
    inference: Annotated[
        str, _option("How sure you need to be. Default: point.", _MODEL, metavar="NAME")
    ] = "point",
    set_: Annotated[
        list[str] | None,
        _option("An option that is fixed, as for fit.", _MODEL, "--set", metavar="KEY=VALUE"),
    ] = None,
    test: Annotated[
        float | None,
        _option("Share of the rows kept from the search. Default: 0.2, or the data's own.", _ROWS),
    ] = None,
    group: Annotated[
        str | None, _option("Rows alike in this column stay on one side.", _ROWS, metavar="COL")
    ] = None,
    time: Annotated[
        str | None, _option("Every split is forward in this column.", _ROWS, metavar="COL")
    ] = None,
    weights: Annotated[
        str | None,
        _option(
            "How often each row counts; or a file of weights that the network begins with.",
            _ROWS,
            metavar="COL|FILE",
        ),
    ] = None,
    offset: Annotated[
        str | None, _option("Added to the linear predictor.", _ROWS, metavar="COL")
    ] = None,
    exposure: Annotated[
        str | None, _option("Its logarithm is added.", _ROWS, metavar="COL")
    ] = None,
    drop: Annotated[str | None, _option("Columns to leave out.", _ROWS, metavar="A,B,...")] = None,
    role: Annotated[
        list[str] | None, _option("What a column is, as for fit.", _ROWS, metavar="COL=ROLE")
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
            "What the pages of an image file are, as for fit.",
            _IMAGES,
            metavar="images|volume|first",
        ),
    ] = None,
    pieces: Annotated[
        int | None,
        _option("Cut each image with its mask into so many, as for fit.", _IMAGES, metavar="N"),
    ] = None,
    size: Annotated[
        str | None,
        _option("Bring all images to this size, like 64 or 48x64.", _IMAGES, metavar="H[xW]"),
    ] = None,
    channels: Annotated[
        str | None,
        _option("The axis of the channels, or how many, as for fit.", _IMAGES, metavar="WHERE|N"),
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
        bool, _option("Leave out files that cannot be read.", _IMAGES, "--skip-corrupt")
    ] = False,
    freeze: Annotated[
        str | None,
        _option("Leave this of the network as it began, as for fit.", _IMAGES, metavar="PART"),
    ] = None,
    out: Annotated[
        Path | None, _option("Folder for the model. Default: DATA-tuned.", _RUN, metavar="DIR")
    ] = None,
    overwrite: Annotated[bool, _option("Replace what is at --out.", _RUN, "--overwrite")] = False,
    resume: Annotated[bool, _option("Go on where a search was stopped.", _RUN, "--resume")] = False,
    device: Annotated[
        str, _option("auto, cpu, cuda or mps. Default: auto.", _RUN, metavar="NAME")
    ] = "auto",
    seed: Annotated[int, _option("One seed for the whole search. Default: 0.", _RUN, min=0)] = 0,
    quiet: Annotated[bool, _option("No progress.", _RUN, "--quiet", "-q")] = False,
    as_json: Annotated[bool, _option("Print one JSON document.", _RUN, "--json")] = False,
    delimiter: Delimiter = None,
    no_header: NoHeader = None,
    names: Names = None,
    comment: Comment = None,
    missing: Missing = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    stream: Stream = None,
    memory_limit: MemoryLimit = None,
) -> None:
    """Search for a better recipe than the default, judged by rows the search never sees.

    Trials are judged on folds of the training rows. The best is fitted to all of them and
    compared with the default recipe on the test rows, once. A search that was stopped goes on
    with --resume.

    Example:
        ansatz tune houses.csv --target price
        ansatz tune houses.csv --target price --trials 50 --space depth=1..3
        ansatz tune houses.csv --target price --resume
        ansatz tune flowers/ --space network=lenet5,small_resnet
    """
    from ansatz.cli.config import has_own_target

    if target is None and lower is None and masks is None and not has_own_target(data):
        raise UsageError("ansatz tune: --target COLUMN is missing.")
    options = pairs_of("options", set_ or [])
    if freeze is not None:
        options["freeze"] = int(freeze) if freeze.isdigit() else freeze
    grids = {
        "image": image,
        "masks": masks,
        "pages": pages,
        "pieces": pieces,
        "size": None if size is None else whole_numbers("--size", size),
        "channels": int(channels) if channels is not None and channels.isdigit() else channels,
        "unlabelled": None if unlabelled is None else number_or_colour("--unlabelled", unlabelled),
        "on_corrupt": "skip" if skip_corrupt else None,
    }
    folder = out or Path(f"{stem(data)}-tuned")
    advice = "To replace it: --overwrite; to keep it: another --out."
    require_free(folder, overwrite=overwrite or resume, advice=advice)
    from ansatz.tuning import tune as search

    counter = Counter("trial", quiet=quiet)
    with counter:
        found = search(
            data,
            target=words(target) or (),
            trials=trials,
            folds=folds,
            space=space or (),
            time_limit=time_limit,
            event=event,
            entry=entry,
            lower=lower,
            upper=upper,
            trials_column=trials_column,
            x=x,
            likelihood=likelihood,
            network=network,
            inference=inference,
            out=folder,
            overwrite=overwrite,
            resume=resume,
            device=device,
            seed=seed,
            test=test,
            group=group,
            time=time,
            weights=weights,
            offset=offset,
            exposure=exposure,
            roles=pairs_of("roles", role or []),
            drop=words(drop) or (),
            progress=counter.show,
            options=options,
            stream=stream,
            memory_limit=memory_limit,
            **{name: value for name, value in grids.items() if value is not None},
            **reader_options(delimiter, no_header, names, comment, missing, decimal, encoding),
        )
    if as_json:
        print_document(found.to_dict())
    else:
        print_tuning(found)


def print_tuning(found: "Tuning") -> None:
    """Prints the best trials, the test beside the default recipe, and the verdict.

    Example:
        >>> from ansatz.cli.tune import print_tuning
        >>> print_tuning.__name__
        'print_tuning'
    """
    import shlex

    for note in found.notes:
        remark(f"note: {note}")
    shown = found.leaders()
    if found.trials[0] not in shown:
        shown.append(found.trials[0])
    print_trials(found, shown)
    say(f"score: mean of {found.folds} inner folds; better than the default by, +- corrected error")
    say()
    if found.comparison is not None:
        from ansatz.cli.compare import print_scores

        print_scores(found.comparison)
        say()
    say(found.verdict)
    for caution in () if found.comparison is None else found.comparison.cautions:
        say(f"  {caution}")
    if found.fit.folder is not None:
        folder = shlex.quote(str(found.fit.folder))
        say()
        say(f"model: {folder}")
        say(f"next:  ansatz report {folder}")


def print_trials(found: "Tuning", shown: "list[Trial]") -> None:
    """Prints trials as columns: a recipe is read downwards.

    Example:
        >>> from ansatz.cli.tune import print_trials
        >>> print_trials.__name__
        'print_trials'
    """
    gains = [found.gain(trial) for trial in shown]
    header = ["trial", *("default" if t.number == 0 else str(t.number) for t in shown)]
    rows = [
        ["score", *(number(trial.score) for trial in shown)],
        ["better by", *("" if gain is None else f"{gain[0]:+.3g}" for gain in gains)],
        ["+-", *("" if gain is None else number(gain[1]) for gain in gains)],
    ]
    for name in found.space:
        rows.append([name, *(number(trial.parameters.get(name)) for trial in shown)])
    print_table(header, rows, numbers=range(1, len(header)))
