"""The options of the commands, merged from the tables of their owners."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

from ansatz.fitting.options.generative import GenerativeOptions
from ansatz.fitting.options.graph import GraphOptions
from ansatz.fitting.options.grid import FileReading, GridOptions, MaskReading
from ansatz.fitting.options.links import EdgeColumns, EdgeReading, TripleOptions
from ansatz.fitting.options.molecule import MoleculeOptions
from ansatz.fitting.options.option import (
    MODEL,
    ROWS,
    RUN,
    TRAINING,
    Option,
    read_priors,
    read_settings,
    refuse_weights_file,
    words,
)
from ansatz.fitting.options.sequence import PairOptions
from ansatz.fitting.options.series import SeriesOptions
from ansatz.fitting.options.sets import SetOptions
from ansatz.fitting.options.transfer import AdapterOptions, TransferOptions
from ansatz.fitting.options.vector import TableReading, VectorOptions

SEARCH = "The search"


class SearchOptions(TypedDict, total=False):
    """The options of ``ansatz tune`` besides those of a fit."""

    searches: Annotated[
        int,
        Option(
            "Configurations to try besides the default. Default: 30.",
            SEARCH,
            default=30,
            metavar="N",
            common=True,
        ),
    ]
    folds: Annotated[
        int,
        Option("Folds of the training rows that evaluate a trial. Default: 3.", SEARCH, default=3),
    ]
    space: Annotated[
        str | Sequence[str] | Mapping[str, Any],
        Option(
            "What an option may be: dropout=0..0.3, activation=relu,tanh, network=A,B. May be "
            "repeated.",
            SEARCH,
            default=(),
            metavar="NAME=VALUES",
            reads=list[str],
            listed=True,
            common=True,
        ),
    ]
    time_limit: Annotated[
        float | None,
        Option(
            "Begin no trial after this time.",
            SEARCH,
            metavar="SECONDS",
            limits={"gt": 0},
            common=True,
        ),
    ]
    progress: Annotated[Any, Option("Called with trials done, trials in all and the best so far.")]


class TunedPlaceOptions(TypedDict, total=False):
    """The place of the model that a search chose."""

    out: Annotated[
        str | Path | None,
        Option(
            "Folder for the model. Default: DATA-tuned.",
            RUN,
            metavar="DIR",
            decides=False,
            common=True,
        ),
    ]


class PosteriorOptions(TypedDict, total=False):
    """The prior and the varying terms of a posterior."""

    priors: Annotated[
        Mapping[str, str] | None,
        Option(
            "Prior of a posterior: coefficients, intercept, a column, sigma, sd or correlation, "
            "and a distribution: --prior 'sigma=half_cauchy(2)'. May be repeated.",
            MODEL,
            default={},
            flags=("--prior",),
            metavar="NAME=PRIOR",
            reads=list[str],
            parse=read_priors,
        ),
    ]
    random: Annotated[
        str | Sequence[str] | None,
        Option(
            "A term that varies between groups: '1|subject', 'days|subject' (correlated) or "
            "'days||subject'. May be repeated.",
            MODEL,
            default=[],
            metavar="TERMS|GROUP",
            reads=list[str],
            listed=True,
        ),
    ]


class InferenceSettings(PosteriorOptions, total=False):
    """The options of inferences."""

    members: Annotated[int, Option("Networks of the ensemble.")]
    kernel: Annotated[str, Option("Of a Gaussian process (ansatz list kernels): matern52.")]
    restarts: Annotated[int, Option("Beginnings of the search for a kernel's parameters: 3.")]
    inducing: Annotated[int, Option("Inducing rows of a Gaussian process of many rows: 512.")]
    time: Annotated[float, Option("Of gradient flow in a network of infinite width: infinity.")]
    chains: Annotated[int, Option("Chains of a sampler: 4.")]
    warmup: Annotated[int, Option("Draws that adapt a sampler: 1000; networks 500.")]
    draws: Annotated[int, Option("Draws of each chain: 1000; networks 500; sgld and sghmc 100.")]
    thin: Annotated[int, Option("One of this many draws is kept: 1; networks keep 100 a chain.")]
    target_accept: Annotated[float, Option("Acceptance that step sizes are adapted to: 0.8.")]
    max_depth: Annotated[int, Option("Doublings of a path of nuts at most: 10; networks 8.")]
    metric: Annotated[str, Option("auto, dense or diagonal; auto is dense to 500 parameters.")]
    step_size: Annotated[float, Option("Of sgld and sghmc: 1e-4, by a cosine in each cycle.")]
    friction: Annotated[float, Option("Of sghmc: 0.1.")]
    cycles: Annotated[int, Option("Cycles of the step size of sgld and sghmc: 4.")]
    curvature: Annotated[str, Option("Of laplace: kron, or full, or diag.")]
    subset: Annotated[str, Option("Weights that laplace is about: all, or those of the last map.")]
    prior_share: Annotated[float, Option("Rows that learn the prior of pac_bayes: 0.5.")]
    samples: Annotated[
        int, Option("Draws: 100; of pac_bayes 20, of laplace with a linear model 4000.")
    ]


_OUTCOME: Any = {"panel": MODEL, "metavar": "COL", "limits": {"min_length": 1}}


class OutcomeOptions(TypedDict, total=False):
    """The columns that hold the outcome."""

    target: Annotated[
        str | Sequence[str],
        Option(
            "The column to predict; several as A,B.",
            default=[],
            reads=str,
            parse=words,
            listed=True,
            **_OUTCOME,
            common=True,
        ),
    ]
    event: Annotated[
        str | None,
        Option(
            "Survival: 1 (yes, true) where the target is the time of an event, 0 (no, false) where "
            "the row was censored; "
            "or COL=VALUE.",
            **_OUTCOME,
        ),
    ]
    entry: Annotated[
        str | None, Option("Survival: the time from which the row was watched.", **_OUTCOME)
    ]
    strata: Annotated[
        str | None,
        Option(
            "Survival: cox has a baseline hazard for each value of this column, which is not a "
            "feature.",
            **_OUTCOME,
        ),
    ]
    lower: Annotated[str | None, Option("In place of --target: y lies above this.", **_OUTCOME)]
    upper: Annotated[
        str | None, Option("With --lower: and not above this; empty is open.", **_OUTCOME)
    ]
    trials: Annotated[
        str | None, Option("Number of trials; the target counts their successes.", **_OUTCOME)
    ]


class OutcomeSettings(TypedDict, total=False):
    """Options of classes, rankings and intervals, as ``--set`` takes them."""

    classes: Annotated[Sequence[Any], Option("The classes, in their order.")]
    class_weight: Annotated[
        str | Mapping[Any, float], Option("'balanced', or how much each class counts.")
    ]
    unranked: Annotated[str, Option("Items that a ranking leaves out: last, or absent.")]
    prior: Annotated[float, Option("Comparisons of every item with one at the mean of the scores.")]
    layout: Annotated[str, Option("How a ranking is written: places, items or orders.")]
    calibration: Annotated[float, Option("Share of the rows held out for conformal intervals.")]


_COLUMN: Any = {"panel": ROWS, "metavar": "COL"}
_RUN: Any = {"panel": RUN, "decides": False}
_SWITCH: Any = {**_RUN, "default": False, "reads": bool}


class AxesOptions(TypedDict, total=False):
    """The choices of structure, likelihood, network and inference."""

    x: Annotated[
        str | None,
        Option(
            "What x looks like: vector, the rows of a table, grid: signals, images, volumes, "
            "or sequence: texts, signals of any length. Default: by the data.",
            MODEL,
            metavar="STRUCTURE",
            complete="structures",
        ),
    ]
    likelihood: Annotated[
        str | None,
        Option(
            "What kind of quantity y is (ansatz list likelihoods). Chosen from y by default.",
            MODEL,
            metavar="NAME",
            complete="likelihoods",
            common=True,
        ),
    ]
    network: Annotated[
        str | None,
        Option(
            "The network (ansatz list networks); 'linear' for a GLM.",
            MODEL,
            metavar="NAME",
            complete="networks",
            common=True,
        ),
    ]
    task: Annotated[
        str | None,
        Option(
            "What is predicted (ansatz list outcomes), where the target does not show it.",
            MODEL,
            metavar="NAME",
            complete="outcomes",
        ),
    ]
    inference: Annotated[
        str,
        Option(
            "How sure you need to be (ansatz list inferences). Default: an ensemble for tables of "
            "100 to 1,000 training rows, where no option of the training is set; else point.",
            MODEL,
            default="auto",
            metavar="NAME",
            common=True,
            complete="inferences",
        ),
    ]
    options: Annotated[
        Mapping[str, Any] | None,
        Option(
            "An option of the network, the likelihood or the training, the value as JSON: "
            "--set widths=[64,64]. Where several have it: --set network.dropout=0.1.",
            MODEL,
            default={},
            flags=("--set",),
            metavar="KEY=VALUE",
            reads=list[str],
            parse=read_settings,
        ),
    ]


class TestOptions(TypedDict, total=False):
    """Which rows are held out for the test."""

    test: Annotated[
        float | None,
        Option(
            "Share of the rows held out for the test. Default: 0.2.",
            ROWS,
            limits={"ge": 0, "lt": 1},
        ),
    ]


class FoldOptions(TypedDict, total=False):
    """Folds in place of one test share."""

    folds: Annotated[
        int | None,
        Option("Number of folds of a cross-validation.", ROWS, limits={"ge": 2, "le": 1000}),
    ]


class ValidationOptions(TypedDict, total=False):
    """The rows that stop the training, where the user brings them."""

    validation_data: Annotated[
        Any,
        Option(
            "Table with the same columns, whose rows decide when the training of a network stops, "
            "in place of a share of the rows.",
            ROWS,
            flags=("--validation",),
            metavar="FILE",
            reads=str,
            reader=True,
        ),
    ]


class RowOptions(TypedDict, total=False):
    """Columns that weigh, group or order the rows."""

    group: Annotated[str | None, Option("Rows alike in this column stay on one side.", **_COLUMN)]
    time: Annotated[str | None, Option("Test on the latest rows by this column.", **_COLUMN)]
    weights: Annotated[
        str | None, Option("How often each row counts.", check=refuse_weights_file, **_COLUMN)
    ]
    offset: Annotated[str | None, Option("Added to the linear predictor.", **_COLUMN)]
    exposure: Annotated[
        str | None, Option("Its logarithm is added to the linear predictor.", **_COLUMN)
    ]
    drop: Annotated[
        str | Sequence[str],
        Option(
            "Columns to leave out.",
            ROWS,
            default=[],
            metavar="A,B,...",
            reads=str,
            parse=words,
            listed=True,
            limits={"min_length": 1},
        ),
    ]


class PlaceOptions(TypedDict, total=False):
    """The place of the model."""

    out: Annotated[
        str | Path | None,
        Option("Folder for the model. Default: DATA-model.", metavar="DIR", **_RUN, common=True),
    ]


class RunOptions(TypedDict, total=False):
    """The options of a run."""

    overwrite: Annotated[bool, Option("Replace what is at --out.", **_SWITCH)]
    resume: Annotated[bool, Option("Go on where an interrupted run stopped.", **_SWITCH)]
    device: Annotated[
        str,
        Option("auto, cpu, cuda or mps. Default: auto.", default="auto", metavar="NAME", **_RUN),
    ]
    seed: Annotated[
        int,
        Option(
            "One seed for the whole run. Default: 0.", RUN, default=0, limits={"ge": 0, "lt": 2**63}
        ),
    ]


class TrainingRunOptions(TypedDict, total=False):
    """The options of one training."""

    force: Annotated[bool, Option("Resume although data or options changed.", **_SWITCH)]
    time_limit: Annotated[
        float | None,
        Option(
            "Stop training after this time.", RUN, metavar="SECONDS", limits={"gt": 0}, common=True
        ),
    ]
    tensorboard: Annotated[
        str | Path | None, Option("Write TensorBoard logs to this folder.", metavar="DIR", **_RUN)
    ]
    progress: Annotated[
        str | int,
        Option(
            "No progress.",
            default="off",
            flags=("--quiet", "-q"),
            reads=bool,
            parse=lambda quiet: "off",
            **_RUN,
        ),
    ]


class ProcessOptions(TypedDict, total=False):
    """The number of processes that a command starts."""

    processes: Annotated[
        int,
        Option(
            "Number of processes of this machine, which share every batch. Default: 1; "
            "for several machines see torchrun.",
            default=1,
            metavar="N",
            limits={"ge": 1, "le": 1024},
            **_RUN,
        ),
    ]


class MemoryOptions(TypedDict, total=False):
    """The limits of memory."""

    stream: Annotated[
        bool | None,
        Option(
            "Read the table block by block, images file by file, in bounded memory, or all at "
            "once. Default: by their size.",
            flags=("--stream/--no-stream",),
            reads=bool,
            **_RUN,
        ),
    ]
    memory_limit: Annotated[
        str | int | None,
        Option(
            "What the table or the decoded images may take in memory, like 4GB; more is "
            "streamed. Default: a quarter of what is free.",
            metavar="SIZE",
            reads=str,
            limits={"min_length": 1},
            **_RUN,
        ),
    ]
    limit_bytes: Annotated[
        int | None, Option("What a file may have or unpack to, in bytes.", reader=True)
    ]


_TRAINING: Any = {"panel": TRAINING}


class TrainingOptions(TypedDict, total=False):
    """The options of the training that have a name of their own."""

    optimizer: Annotated[
        str | None,
        Option(
            "The optimizer (ansatz list optimizers). Default: adamw.",
            metavar="NAME",
            complete="optimizers",
            **_TRAINING,
        ),
    ]
    schedule: Annotated[
        str | None,
        Option(
            "Schedule of the learning rate (ansatz list schedules). Default: by the number of "
            "rows, mostly cosine.",
            metavar="NAME",
            complete="schedules",
            **_TRAINING,
        ),
    ]
    penalty: Annotated[
        str | None,
        Option(
            "Penalty on the weights (ansatz list penalties; lasso, ridge, group_lasso), with its "
            "strength. A linear model chooses a strength that is not given by cross-validation.",
            metavar="NAME[=STRENGTH]",
            complete="penalties",
            **_TRAINING,
        ),
    ]
    clip: Annotated[
        float | None,
        Option(
            "The largest norm of a gradient; 0 for any. Default: 5.",
            metavar="NORM",
            limits={"ge": 0},
            **_TRAINING,
        ),
    ]
    average: Annotated[
        str | None,
        Option("Average of the weights: ema, swa or none.", metavar="NAME", **_TRAINING),
    ]
    patience: Annotated[
        int | None,
        Option(
            "Evaluations without progress before the training stops.",
            metavar="N",
            limits={"ge": 1},
            **_TRAINING,
        ),
    ]
    min_improvement: Annotated[
        float | None,
        Option(
            "What counts as progress: a validation loss that is lower by this. Default: 0.001, or "
            "0.1 % of the gain so far where that is less.",
            metavar="LOSS",
            limits={"ge": 0},
            **_TRAINING,
        ),
    ]
    teacher: Annotated[
        Any,
        Option(
            "A saved model whose predictions of the rows are part of the loss (distillation).",
            metavar="MODEL",
            reads=str,
            **_TRAINING,
        ),
    ]
    callbacks: Annotated[
        Sequence[Any] | None,
        Option("Callbacks that see each step (ansatz.training.Callback).", decides=False),
    ]


class TrainingSettings(TrainingOptions, total=False):
    """The recipe of the training, as ``--set`` and ``options=`` take it."""

    epochs: Annotated[float, Option("Passes over the rows, in place of the budget of steps.")]
    steps: Annotated[int, Option("The budget in updates, in place of epochs.")]
    batch_size: Annotated[int, Option("Rows per step; 0 takes all rows at once.")]
    learning_rate: Annotated[float, Option("Peak of the learning rate.")]
    optimizer_options: Annotated[Mapping[str, Any], Option("Options of the optimizer.")]
    schedule_options: Annotated[Mapping[str, Any], Option("Options of the schedule.")]
    weight_decay: Annotated[float, Option("On matrices; decoupled where the optimizer can.")]
    holdout: Annotated[float, Option("Share of the rows that decide when to stop.")]
    folds: Annotated[int, Option("With all rows at once, folds that choose the number of steps.")]
    evaluations: Annotated[int, Option("How often the held-out rows are scored.")]
    dtype: Annotated[str, Option("float32 or float64, the type of the training.")]
    recompute: Annotated[
        bool,
        Option("Gradient checkpointing: less memory, a second forward pass.", decides=False),
    ]
    teacher_temperature: Annotated[float, Option("Of a teacher of classes. Default: 2.")]
    teacher_weight: Annotated[float, Option("Of the teacher in the loss. Default: 0.5.")]
    warm_start: Annotated[bool, Option("Begin with the weights of the last fit.")]
    n_jobs: Annotated[int, Option("Threads of the training.", decides=False)]
    verbose: Annotated[int, Option("Lines of progress.", decides=False)]


class NetworkSettings(TypedDict, total=False):
    """The options of the default network, as ``--set`` takes them; others have their own."""

    widths: Annotated[Sequence[int], Option("Hidden units per layer.")]
    activation: Annotated[str, Option("Of the hidden layers.")]
    dropout: Annotated[float, Option("Share of hidden units dropped in training.")]


class FitOptions(
    OutcomeOptions,
    AxesOptions,
    PosteriorOptions,
    TrainingOptions,
    TestOptions,
    FoldOptions,
    RowOptions,
    ValidationOptions,
    VectorOptions,
    GridOptions,
    PairOptions,
    SeriesOptions,
    SetOptions,
    TripleOptions,
    GenerativeOptions,
    MoleculeOptions,
    GraphOptions,
    TransferOptions,
    AdapterOptions,
    PlaceOptions,
    RunOptions,
    TrainingRunOptions,
    MemoryOptions,
    total=False,
):
    """Everything that ``ansatz.fit`` can be asked for.

    Example:
        >>> from ansatz.fitting import FitOptions
        >>> FitOptions(target="price", seed=1)
        {'target': 'price', 'seed': 1}
    """


class FitCommand(FitOptions, ProcessOptions, total=False):
    """Everything that ``ansatz fit`` and its ``--config`` can be asked for.

    Example:
        >>> from ansatz.fitting.options import FitCommand
        >>> FitCommand(target="price", processes=2)["processes"]
        2
    """


class TuneOptions(
    SearchOptions,
    OutcomeOptions,
    AxesOptions,
    TrainingOptions,
    TestOptions,
    RowOptions,
    VectorOptions,
    GridOptions,
    PairOptions,
    SeriesOptions,
    SetOptions,
    TripleOptions,
    MoleculeOptions,
    GraphOptions,
    TransferOptions,
    AdapterOptions,
    PosteriorOptions,
    TunedPlaceOptions,
    RunOptions,
    MemoryOptions,
    total=False,
):
    """Everything that ``ansatz.tune`` can be asked for.

    Example:
        >>> from ansatz.fitting.options import TuneOptions
        >>> TuneOptions(target="price", searches=10)["searches"]
        10
    """


class ReadingAgain(FileReading, EdgeReading, EdgeColumns, TableReading, MemoryOptions, total=False):
    """The options of reading data for a prediction."""


class ReadingToPredict(ReadingAgain, total=False):
    """The options of a prediction."""

    components: Annotated[
        bool,
        Option("Add the standard deviation, within and between components.", **_SWITCH),
    ]


class ReadingOutcomes(MaskReading, ReadingAgain, total=False):
    """The options of reading data for an evaluation."""
