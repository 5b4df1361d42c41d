"""Reports what was fitted, how the training went, and the command that repeats it."""

import shlex
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ansatz import __version__
from ansatz.figures.number_format import number
from ansatz.figures.section import Figure, Section, Table, Text
from ansatz.figures.style import INK, LINEAR, MODEL, figure, to_svg
from ansatz.fitting import FitOptions, Request
from ansatz.fitting.model import estimator_of
from ansatz.fitting.problem import structure_of
from ansatz.fitting.provenance import Provenance, provenance_of
from ansatz.fitting.recipe_choice import RecipeChoice
from ansatz.fitting.scores import is_linear
from ansatz.report.evidence import Evidence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ansatz.training import History

STOPPED = {
    "patience": "the validation loss stopped falling",
    "steps": "all steps were taken",
    "epochs": "all epochs were done",
    "time limit": "the time limit was reached",
    "interrupted": "it was interrupted",
}


def draw_history(axes: "Axes", history: "History") -> None:
    """Draws the training loss, the validation loss and the best step."""
    for name, label, colour in (
        ("running_loss", "training (running, with dropout)", INK),
        ("train_loss", "training", LINEAR),
        ("valid_loss", "validation", MODEL),
    ):
        pairs = [
            (float(record["step"] or 0), float(record[name] or 0.0))
            for record in history.records
            if record.get(name) is not None and record.get("step") is not None
        ]
        if pairs:
            steps, losses = np.array(pairs).T
            axes.plot(steps, losses, label=label, color=colour)
    if history.best_step is not None and history.best_loss is not None:
        axes.axvline(history.best_step, color=INK, linewidth=0.8, linestyle=":")
        axes.plot([history.best_step], [history.best_loss], "o", color=MODEL)
    axes.set_xlabel("step")
    axes.set_ylabel("loss per row")
    if axes.get_legend_handles_labels()[0]:
        axes.legend()


def command_line(evidence: Evidence) -> str | None:
    """Writes the command that repeats the fit; None for a model made in Python."""
    origin = provenance_of(evidence.model)
    if origin is None:
        return None
    source = origin.source
    place = "TABLE" if source.kind == "memory" else shlex.quote(source.path or source.name)
    return _repeated(origin).command(place)


def _repeated(origin: Provenance) -> Request:
    """Joins the given options with those that the fit chose."""
    given: dict[str, Any] = dict(origin.asked.given)
    seed, folds = origin.asked.options["seed"], given.pop("folds", None)
    columns = {name: value for name, value in origin.column_roles.items() if value}
    if columns.get("order"):  # of a long table: other roles follow from --id and --time
        columns = {name: value for name, value in columns.items() if name in given}
    named = {"x": given.get("x")} if _must_name_structure(origin) else {}
    named |= {"likelihood": given.get("likelihood"), "network": origin.network}
    found = {name: value for name, value in {**columns, **named}.items() if value}
    named_already = {*found, "x", "seed", "test"}
    found |= {name: value for name, value in given.items() if name not in named_already}
    found["seed"] = seed
    if folds is not None:
        found["folds"] = folds
    elif not origin.given:  # else the test is the data's own
        found["test"] = origin.test
    return Request(origin.asked.data, cast(FitOptions, found))


def _must_name_structure(origin: Provenance) -> bool:
    """Tests whether the data do not determine their structure: rows of a table may be signals."""
    source, x = origin.source, origin.asked.options["x"]
    if source.kind != "file" or x is None:
        return False
    return structure_of(source.path or source.name, None) != x


def python_lines(evidence: Evidence) -> str:
    """Writes the Python that repeats the fit."""
    origin = provenance_of(evidence.model)
    if origin is None:
        estimator = estimator_of(evidence.model)
        kind = type(estimator).__name__
        return f"from ansatz import {kind}\nmodel = {_constructor(estimator)}\nmodel.fit(X, y)"
    source = origin.source
    place = "table" if source.kind == "memory" else repr(source.path or source.name)
    return f"import ansatz\nfit = {_repeated(origin).python(place)}"


def _constructor(estimator: Any) -> str:
    defaults = type(estimator)().get_params(deep=False)
    given = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if name in ("likelihood", "network") or repr(value) != repr(defaults[name])
    }
    words = ", ".join(f"{name}={value!r}" for name, value in given.items())
    return f"{type(estimator).__name__}({words})"


def section(evidence: Evidence) -> Section | None:
    """Reports likelihood, network, recipe, learning curves and how to repeat the fit."""
    fit, model = evidence.fit, evidence.model
    parts: list[Text | Table | Figure] = [Table(["", ""], _facts(evidence), "")]
    if fit.get("candidates"):
        parts.append(_candidates(fit["candidates"]))
    history = model.history
    if history is not None and len(history.records) > 1:
        parts.append(_curves(history))
    parts += evidence.contribution.layers(evidence)
    command = command_line(evidence)
    if command is not None:
        parts += [Text("The command that repeats the fit:"), Text(command, "code")]
    parts += [Text("In Python:"), Text(python_lines(evidence), "code")]
    return Section("What was fitted", _lead(evidence), parts)


def describe_network(evidence: Evidence) -> str:
    """Describes the network in a few words."""
    model = evidence.model
    if not model.has_features:
        return "a constant model"
    if is_linear(model):
        has_features = evidence.contribution.has_features(evidence)
        return "a linear model" if has_features else "a constant model"
    count = evidence.fit.get("parameters") or model.parameters
    words = [model.network_name, f"{number(int(count))} parameters"]
    return f"{model.task.inference.words} ({', '.join(filter(None, words))})"


def likelihood_name(evidence: Evidence) -> str:
    """Names the likelihood as in options."""
    name = evidence.fit.get("likelihood")
    return str(name or getattr(evidence.likelihood, "likelihood", evidence.likelihood).name)


def _lead(evidence: Evidence) -> str:
    likelihood = likelihood_name(evidence)
    why = "was given"
    if evidence.fit.get("candidates"):
        why = "was chosen by out-of-fold log score among those whose support contains the values"
    elif _was_derived(evidence):
        why = "follows from the values of the outcome"
    kind = "likelihood" if evidence.likelihood.has_distribution else "loss"
    return f"{describe_network(evidence).capitalize()} with the {kind} {likelihood}, which {why}."


def _was_derived(evidence: Evidence) -> bool:
    origin = provenance_of(evidence.model)
    if origin is None:
        return bool(evidence.model.task.settings.arguments.get("likelihood") == "auto")
    return not origin.asked.options["likelihood"]


def _facts(evidence: Evidence) -> list[list[Any]]:
    fit, model = evidence.fit, evidence.model
    history = model.history
    rows = fit.get("rows", {})
    facts: list[list[Any]] = [
        ["outcome", evidence.target],
        ["likelihood", f"{likelihood_name(evidence)}{_described(evidence.likelihood.options)}"],
        ["network", describe_network(evidence)],
        ["inference", model.task.inference.name],
    ]
    recipe = fit.get("recipe", {}).get("recipe")
    if recipe is None and model.recipe is not None:
        recipe = model.recipe.sentence(model.network_name)
    if recipe:
        facts.append(["recipe", recipe])
    choice = RecipeChoice.of(model)
    if choice is not None:
        facts.append(["choice of the recipe", str(choice)])
    if rows:
        parts = [part for part in ("train", "valid", "test") if rows.get(part)]
        facts.append([evidence.unit.many, ", ".join(f"{rows[part]} {part}" for part in parts)])
    if history is not None and history.stop_reason:
        reason = STOPPED.get(history.stop_reason, history.stop_reason)
        best = f"; {_kept(evidence, history)}" if history.best_step else ""
        facts.append(["training", f"{history.steps} steps until {reason}{best}"])
    if fit.get("seconds") is not None:
        facts.append(["seconds", f"{number(float(fit['seconds']), 3)} for fit and test"])
    facts.append(["seed", fit.get("seed", model.task.settings.seed)])
    facts.append(["version", f"ansatz {__version__}"])
    return [[name, value if isinstance(value, str | int) else str(value)] for name, value in facts]


def _kept(evidence: Evidence, history: "History") -> str:
    """Says whose weights of which step are in the model."""
    if len(evidence.model.posterior.networks) > 1:
        return (
            "every network kept the weights of its own best step (the curves are means over the "
            f"networks, the best at step {history.best_step})"
        )
    return f"the weights of step {history.best_step} were kept"


def _described(options: dict[str, Any]) -> str:
    words = [
        f"{name} {value}"
        for name, value in options.items()
        if isinstance(value, str | int | float) and name != "likelihood"
    ]
    return f" ({', '.join(words)})" if words else ""


def _candidates(candidates: list[dict[str, Any]]) -> Table:
    known = {row.get("models") for row in candidates} - {None, ""}
    models = f" of {known.pop()}" if len(known) == 1 else ""
    rows = [
        [
            row["likelihood"],
            float(row["score"]),
            float(row["worse"]) if row["worse"] > 0 else "",
            float(row["error"]) if row["worse"] > 0 else "",
        ]
        for row in sorted(candidates, key=lambda row: row["worse"])
    ]
    return Table(
        ["likelihood", "out-of-fold log score", "worse by", "±"],
        rows,
        f"Log scores{models}, cross-validated on the training rows; the simplest likelihood within "
        "one standard error of the best is chosen.",
    )


def _curves(history: "History") -> Figure:
    with figure(6.4, 2.6) as paper:
        draw_history(paper.subplots(), history)
        return Figure(
            to_svg(paper),
            "The loss during training, the mean of several networks; the dotted line marks "
            "the best step. The loss is that of training, which may scale the outcome.",
            "Learning curves.",
        )
