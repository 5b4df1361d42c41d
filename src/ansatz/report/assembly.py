"""Builds a report: computes every section that applies and writes the page."""

import math
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ansatz import __version__
from ansatz.data import DataWarning
from ansatz.errors import AnsatzError, UsageError
from ansatz.facts import Facts, as_html, as_text
from ansatz.figures.number_format import number, printable
from ansatz.figures.page import render, write_page
from ansatz.figures.section import Chapter, Figure, Section, Table, Text
from ansatz.fitting.model import Model
from ansatz.fitting.replay import replay
from ansatz.fitting.split import warn_of_training_rows
from ansatz.registry import load
from ansatz.report.evidence import Evidence
from ansatz.report.gathering import gather, replayed
from ansatz.report.score_tables import verdict
from ansatz.report.what_was_fitted import describe_network, likelihood_name


def headline(evidence: Evidence) -> list[str]:
    """Writes what was fitted, whether it beats the baselines and whether it is calibrated."""
    kind = "likelihood" if evidence.likelihood.has_distribution else "loss"
    what = (
        f"{describe_network(evidence).capitalize()} of {printable(evidence.target, 80)} with the "
        f"{likelihood_name(evidence)} {kind}, evaluated on {number(len(evidence.weight))} "
        f"{evidence.rows_called}:"
    )
    beats = verdict(evidence)
    if not beats:
        beats = "there is no baseline to compare it with."
    calibration = evidence.outcome_report.calibration(evidence)
    found = [f"{what} {beats[0].lower()}{beats[1:]}", f"Calibration: {calibration}"]
    return [*found, *_warnings(evidence)]


def _warnings(evidence: Evidence) -> list[str]:
    """Warns of rows that the model was trained on, or may have been."""
    count, many = evidence.total or len(evidence.weight), evidence.unit.many
    if evidence.trained_on is None:
        return [f"Whether the model was trained on these {many} is not known."]
    return [
        sentence[0].upper() + sentence[1:]
        for sentence in warn_of_training_rows(evidence.trained_on, count, many)
    ]


_ALWAYS = [
    Chapter(10, "what was fitted", "ansatz.report.what_was_fitted:section"),
    Chapter(20, "scores beside other models", "ansatz.report.score_tables:section"),
    Chapter(25, "the posterior", "ansatz.report.posterior:section"),
]


def chapters(evidence: Evidence) -> list[Chapter]:
    """Lists the chapters of a report in the order of the page.

    Outcomes place theirs from 30 to 39, structures from 40 to 79, before decisions, and from 90
    on, after them.
    """
    general = _ALWAYS + evidence.outcome_report.chapters()
    if evidence.model.outcome.is_x:  # the other chapters are about predictions
        return sorted(general)
    return sorted(general + evidence.contribution.chapters(evidence.axis))


class Report(NamedTuple):
    """A report: the page as HTML, its opening sentences, its sections.

    Example:
        >>> from ansatz.report import Report
        >>> Report("<!doctype html>", ["It beats the linear model."], []).verdict
        ['It beats the linear model.']
    """

    page: str
    verdict: list[str]
    sections: list[Section]

    def __repr__(self) -> str:
        return as_text(*self._facts())

    def _repr_html_(self) -> str:
        return as_html(*self._facts())

    def _facts(self) -> tuple[str, Facts]:
        titles = [each.title for each in self.sections]
        return f"Report: {len(titles)} sections, {len(self.page):,} letters of HTML", [
            ("verdict", " ".join(self.verdict)),
            ("sections", "; ".join(titles)),
            ("page", "in .page; report(..., path='report.html') writes it"),
        ]


def build(evidence: Evidence, progress: Callable[[str], None] | None = None) -> Report:
    """Computes every section that applies and renders the page.

    A section that fails is replaced by a warning with the error; the others stay.

    Args:
        evidence: of a model on its test rows.
        progress: called with the name of each section before it is computed.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.report import gather
        >>> from ansatz.report.assembly import build
        >>> x = np.arange(60.0).reshape(-1, 1)
        >>> model = Regressor("normal", network="linear").fit(x, np.cos(x[:, 0]))
        >>> build(gather(model, x, np.cos(x[:, 0]))).sections[0].title
        'What was fitted'
    """
    found = []
    for chapter in chapters(evidence):
        if progress is not None:
            progress(chapter.words)
        section = _section(chapter, evidence)
        if section is not None:
            found.append(section if evidence.trained_on == 0 else _of_given_rows(section))
    verdict = headline(evidence)
    rows = f"{number(len(evidence.weight))} {evidence.rows_called}"
    if evidence.total is not None:
        count = f"{number(len(evidence.weight))} of {number(evidence.total)}"
        rows = f"a sample of {count} {evidence.rows_called}"
    where = f", {evidence.unit.many} of {evidence.origin}" if evidence.origin else ""
    page = render(
        found,
        title=f"{Path(evidence.name).name or 'model'}: {evidence.target}",
        kicker=f"Evidence of a fitted model, {rows}{where}; ansatz {__version__}.",
        verdict=verdict,
        footer=(
            f"Computed from the {evidence.rows_called}, unless a section states otherwise. "
            f"{evidence.contribution.caveat}"
        ),
    )
    return Report(page, verdict, found)


_TEST = re.compile(r"\btest (?=rows?\b|outcomes?\b|[a-z]+s\b)")


def _of_given_rows(section: Section) -> Section:
    """Calls rows given rows where it is not known that they are test rows."""
    parts: list[Text | Table | Figure] = []
    for part in section.parts:
        if isinstance(part, Text):
            parts.append(part if part.kind == "code" else replace(part, text=_given(part.text)))
        elif isinstance(part, Table):
            parts.append(replace(part, caption=_given(part.caption)))
        else:
            parts.append(replace(part, caption=_given(part.caption), alt=_given(part.alt)))
    return replace(section, lead=_given(section.lead), parts=parts)


def _given(text: str) -> str:
    return _TEST.sub("given ", text)


def _section(chapter: Chapter, evidence: Evidence) -> Section | None:
    try:
        made: Section | None = load(chapter.section)(evidence)
    except (AnsatzError, ValueError, TypeError, RuntimeError, ArithmeticError) as error:
        message = printable(str(error).split("\n")[0], 300)
        warning = Text(f"Could not be computed: {message}", "warning")
        return Section(chapter.words.capitalize(), "", [warning])
    return made


def write_report(
    model: Any,
    path: str | Path,
    *,
    data: Any = None,
    refits: int | None = None,
    costs: dict[str, float] | None = None,
    overwrite: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Writes the report of a saved model, on the test rows of its fit.

    Args:
        model: a folder, a ``Fit``, or a model that ``ansatz.fit`` made.
        path: the file to write.
        data: the table, if it has moved since the fit.
        refits: number of networks refitted for the bands of effects; None chooses by cost.
        costs: costs of decisions: ``under``, ``over``, ``miss``, ``alarm``.
        overwrite: replace what is at ``path``.
        progress: called with the name of each section before it is computed.

    Example:
        >>> import ansatz, pathlib, tempfile
        >>> from ansatz.report import write_report
        >>> table = {"x": range(50), "y": range(50)}
        >>> fit = ansatz.fit(table, target="y", likelihood="normal", network="linear")
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "report.html"
        >>> write_report(fit, path, data=table, refits=0).page == path.read_text("utf-8")
        True
    """
    settings = {"refits": refits, "costs": check_costs(costs or {})}
    if progress is not None:
        progress("reading the rows again")
    report = build(replayed(replay(model, data), settings=settings), progress)
    write_page(path, report.page, overwrite=overwrite)
    return report


def report_model(
    model: Any,
    X: Any,
    y: Any = None,
    path: str | Path | None = None,
    *,
    refits: int | None = None,
    costs: dict[str, float] | None = None,
    overwrite: bool = False,
    **rows: Any,
) -> Report:
    """Builds the report of a fitted model on given rows; ``estimator.report`` calls this.

    Args:
        model: a fitted estimator, or its :class:`~ansatz.fitting.model.Model`.
        X: features, or a table with the target for a model of ``ansatz.fit``.
        y: outcomes; None takes them, weights and offsets from the table.
        path: the file to write; None writes none.
        refits: number of networks refitted for the bands of effects.
        costs: costs of decisions: ``under``, ``over``, ``miss``, ``alarm``.
        overwrite: replace what is at ``path``.
        rows: more arguments of :func:`ansatz.report.gather`: weights, offset, group, time,
            training, seed, name.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> x = np.random.default_rng(0).normal(size=(60, 1))
        >>> model = Regressor("normal", network="linear").fit(x, x[:, 0])
        >>> report = model.report(x, x[:, 0] + np.cos(9 * x[:, 0]), refits=0)
        >>> report.page.startswith("<!doctype html>")
        True
    """
    if y is None:
        fitted: Model = getattr(model, "model_", model)
        if fitted.column_roles is None:
            raise UsageError("this model was fitted to X and y: evaluate(X, y) needs both.")
        X, y, weight, offset, _ = fitted.structure.from_table(fitted, X, outcomes=True)
        rows = {"sample_weight": weight, "offset": offset, **rows}
    settings = {"refits": refits, "costs": check_costs(costs or {})}
    evidence = gather(model, X, y, settings=settings, **rows)
    if evidence.trained_on:
        warnings.warn(_warnings(evidence)[0], DataWarning, stacklevel=3)
    report = build(evidence)
    if path is not None:
        write_page(path, report.page, overwrite=overwrite)
    return report


def check_costs(costs: dict[str, float]) -> dict[str, float]:
    """Checks that costs come in pairs and are positive."""
    for one, other in (("under", "over"), ("miss", "alarm")):
        if (one in costs) != (other in costs):
            raise UsageError(
                f"--cost-{one} and --cost-{other} go together: the best decision depends on their "
                "ratio."
            )
    for name, cost in costs.items():
        if not (math.isfinite(cost) and cost > 0):
            raise UsageError(f"--cost-{name} must be a positive number, got {cost}.")
    return costs
