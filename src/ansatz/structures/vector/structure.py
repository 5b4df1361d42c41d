"""Rows of a table: the order of the columns is fixed, nothing else is known."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz import likelihoods, networks
from ansatz.data import Batch, Column, as_frame, infer_columns
from ansatz.data.columns import plain_columns, stratum_codes
from ansatz.data.source import Source
from ansatz.errors import DataError, ModelError, UsageError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.contracts.exporter import Exporter
from ansatz.fitting.contracts.inference import Posterior
from ansatz.fitting.contracts.structure import Feed, LinearBaseline, LinearDesign, TableParts
from ansatz.fitting.job import Job
from ansatz.fitting.linear_posterior import rebuild_linear
from ansatz.fitting.model import Model, PointPosterior, Trained
from ansatz.fitting.problem import Problem
from ansatz.fitting.read_again import Notify, ReadAgain
from ansatz.fitting.recipe import BINS, MANY, SOME, Recipe
from ansatz.fitting.request import Request
from ansatz.fitting.split import SplitJob
from ansatz.fitting.task import Task
from ansatz.fitting.tensor_structure import TensorStructure
from ansatz.likelihoods import Likelihood
from ansatz.likelihoods.registry import Dispersion, varies, with_dispersion
from ansatz.linear import LinearFit
from ansatz.spec import InputSpec
from ansatz.storage import load_into
from ansatz.structures.vector.formula_preprocessor import (
    FormulaPreprocessor,
    learn_preprocessor,
    load_preprocessor,
)
from ansatz.structures.vector.likelihood_scores import TableLikelihoodScores
from ansatz.structures.vector.linear_model import fit_linear_model, linear_design, linear_posterior
from ansatz.structures.vector.linear_penalty import choose_penalty, said
from ansatz.structures.vector.problem import build_problem, refuse_images, why_a_stream
from ansatz.structures.vector.reading_again import read_table_again
from ansatz.structures.vector.rows import TableEncoder, TableRows, bent_columns, read_table_rows
from ansatz.structures.vector.stream_rows import stream_recipe, stream_source
from ansatz.structures.vector.streaming import split_stream, streaming
from ansatz.symmetry import Group
from ansatz.training import Penalty, Supervised

STREAMED = 8_192  # of a stream: hidden layers are wide


class Vector(TensorStructure):
    """A fixed number of features per row, without any symmetry.

    A network's input is ``(x,)`` with x ``(B, D)``, or ``(x, codes)`` with codes ``(B, C)`` of
    categorical columns that the network embeds.

    Example:
        >>> from ansatz import structures
        >>> structures.create("vector").network("row")
        'mlp'
    """

    name: ClassVar[str] = "vector"
    unit: ClassVar[tuple[str, str]] = ("row", "rows")
    element: ClassVar[tuple[str, str] | None] = None
    solves: ClassVar[bool] = True
    report: ClassVar[str] = "ansatz.structures.vector.report.contribution:VectorReport"

    # Rows.

    def problem(self, data: Any, column_roles: ColumnRoles, **how: Any) -> Problem:
        how.pop("memory", None)
        return build_problem(data, column_roles, **how)

    def reading(self, request: Request, how: Mapping[str, Any]) -> AbstractContextManager[Problem]:
        """The rows of a table, or a sample of them where they are more than memory holds."""
        refuse_images(request.data)
        why = why_a_stream(request)
        if why is not None:
            return streaming(request, how, why)
        return nullcontext(self.problem(request.data, request.column_roles(), **how))

    def split(self, problem: Problem, task: Task, job: Job, test: float) -> SplitJob | None:
        return None if problem.on_disk is None else split_stream(problem, task, job, test)

    def read_again(
        self, model: Model, data: str, *, outcomes: bool, options: Mapping[str, Any], notify: Notify
    ) -> ReadAgain:
        return read_table_again(model, data, outcomes=outcomes, options=options, notify=notify)

    def new_data(self, model: Model, source: str) -> str:
        return "NEW.csv"

    def groups(self, spec: InputSpec) -> list[Group]:
        raise UsageError(
            "the columns of a table have no symmetry to certify; in Python ansatz.certify takes "
            "any network and any group."
        )

    def from_python(
        self, X: Any, *, estimator: Any, reset: bool, roles: Mapping[str, str] | None = None
    ) -> TableRows:
        known = None
        if not reset and estimator.model_.features["columns"] is not None:
            known = [Column.model_validate(each) for each in estimator.model_.features["columns"]]
        return read_table_rows(X, estimator=estimator, columns=known, reset=reset, roles=roles)

    def of_columns(
        self, frame: Any, names: list[str], place: tuple[str, Any], spec: InputSpec | None
    ) -> TableRows:
        """Some columns of a table; their roles are inferred for a fit alone."""
        chosen = frame[names]
        columns = infer_columns(chosen) if spec is None else None
        return TableRows(chosen if columns is None else plain_columns(chosen, columns), columns)

    def from_table(self, model: Model, table: Any, *, outcomes: bool) -> TableParts:
        column_roles = model.column_roles
        assert column_roles is not None
        frame = column_roles.plain(as_frame(table))
        # A table without columns has no names.
        names = list(model.features["names"] or ())
        absent = [name for name in names if name not in frame.columns]
        if absent:
            listed = ", ".join(f"'{name}'" for name in absent[:5])
            raise DataError(f"the table lacks {len(absent)} columns of the fit: {listed}.")
        y = column_roles.outcomes(frame) if outcomes else None
        return TableParts(
            frame[names],
            y,
            column_roles.weight(frame),
            column_roles.offsets(frame),
            column_roles.trial_counts(frame),
        )

    def shared(self, rows: Sequence[Any]) -> TableRows:
        """The columns that all tables have; those of the first where some have no names."""
        first: TableRows = rows[0]
        if any(getattr(each, "columns", None) is None for each in rows):
            return first
        common = [n for n in first.values if all(n in each.values.columns for each in rows)]
        if not common:
            return first
        kept = [column for column in first.columns or () if column.name in common]
        return TableRows(first.values[common], kept, formula=first.formula)

    def nothing(self, count: int) -> TableRows:
        return TableRows(pd.DataFrame(index=range(count)), [])

    def contents(self, rows: TableRows) -> pd.DataFrame:
        return rows.frame

    # Recipe and encoder.

    def settle(
        self, recipe: Recipe, job: Job, network: str | nn.Module, options: Mapping[str, Any]
    ) -> Recipe:
        if not recipe.bins:
            return recipe
        bins = choose_bins(job.rows, recipe.bins, network, options)  # type: ignore[arg-type]
        return recipe.model_copy(update={"bins": bins})

    def alternative(
        self, recipe: Recipe, job: Job, network: str | nn.Module, options: Mapping[str, Any]
    ) -> Recipe | None:
        """Bins of numbers, where rows are too few to take them unasked."""
        rows: TableRows = job.rows  # type: ignore[assignment]
        if recipe.bins or not SOME <= job.mass < MANY or not rows.numbers:
            return None
        bins = choose_bins(rows, BINS, network, options)
        return recipe.model_copy(update={"bins": bins}) if bins else None

    def limit(self, recipe: Recipe, job: Job, options: Mapping[str, Any]) -> Recipe:
        stream = job.rows.stream  # type: ignore[attr-defined]
        return recipe if stream is None else stream_recipe(recipe, stream, options)

    def encoder(
        self,
        rows: TableRows,
        weight: NDArray[np.float64],
        recipe: Recipe,
        options: Mapping[str, Any],
    ) -> TableEncoder:
        """Scales and levels of the columns, those of a stream from all training rows."""
        if rows.stream is not None:
            return TableEncoder(rows.stream.parts.learner.preprocessor(rows.values, weight))
        quantile = bent_columns(options)
        made = learn_preprocessor(rows, weight, quantile=quantile, bins=recipe.bins)
        return TableEncoder(made)

    def load_encoder(self, state: Mapping[str, Any]) -> TableEncoder:
        return TableEncoder(load_preprocessor(dict(state)))

    # Training.

    def inputs(self, encoder: TableEncoder, rows: TableRows) -> tuple[Tensor, ...]:
        """Encodes numbers without clipping, and without notes on levels of held-out rows only."""
        return encoder.preprocessor.transform(rows.values, notes=[])

    def adapt(
        self, network: nn.Module, encoder: TableEncoder, job: Job, objective: Supervised
    ) -> nn.Module:
        """Shows an embedding the quantiles of the columns, and asks the network once."""
        if isinstance(network, networks.MLP) and network.inputs.needs_rows:
            rows: TableRows = job.rows  # type: ignore[assignment]
            network.observe(self.inputs(encoder, rows)[0].to(next(network.parameters()).dtype))
        return super().adapt(network, encoder, job, objective)

    def source(
        self, job: Job, encoder: TableEncoder, feed: Feed, options: Mapping[str, Any]
    ) -> Source:
        """Tensors in memory, or training rows from disk, in a new order each epoch."""
        recipe, stream = feed.recipe, job.rows.stream  # type: ignore[attr-defined]
        if feed.training and stream is not None:

            def encode(part: Job) -> Batch:
                batch = self.batch(part, encoder, recipe)
                assert batch is not None
                return batch

            return stream_source(stream, encoder, feed, encode)
        return super().source(job, encoder, feed, options)

    def likelihood_scores(
        self, job: Job, total: float, *, linear: bool, seed: int
    ) -> TableLikelihoodScores:
        return TableLikelihoodScores(job, total, linear=linear, seed=seed)

    # Predictions.

    def raws(
        self,
        networks: Sequence[Trained],
        encoder: TableEncoder,
        rows: TableRows,
        offset: Tensor | None,
        *,
        notes: list[str] | None,
        options: Mapping[str, Any],
    ) -> Iterator[Iterable[Tensor]]:
        """Encodes the rows once and asks the networks, 65,536 rows at a time.

        Of a stream, 8,192 rows are encoded at a time; at most five notes stand for all.
        """
        if rows.stream is not None:
            for first in range(0, len(rows), STREAMED):
                part, found = slice(first, first + STREAMED), None if notes is None else list[str]()
                extra = None if offset is None else offset[part]
                yield from self.raws(
                    networks, encoder, rows[part], extra, notes=found, options=options
                )
                if notes is not None and found is not None:
                    notes += [note for note in found if note not in notes]
                    del notes[5:]
            return
        whole = super().raws(networks, encoder, rows, offset, notes=notes, options=options)
        codes = None if rows.columns is None else stratum_codes(rows.frame, rows.columns)
        if codes is None:
            yield from whole
            return
        first = 0
        for raws in map(list, whole):  # the curve of a row depends on its stratum
            last = first + len(raws[0])
            own = torch.from_numpy(codes[first:last]).to(raws[0]).unsqueeze(1)
            yield [torch.cat([raw, own], 1) for raw in raws]
            first = last

    def jobs(self, job: Job) -> Iterator[Job] | None:
        stream = job.rows.stream  # type: ignore[attr-defined]
        return None if stream is None or stream.is_held else stream.jobs()

    # Linear models.

    def linear(
        self,
        likelihood: Likelihood,
        job: Job,
        *,
        class_names: list[str] | None = None,
        null: bool = False,
        penalty: Penalty | None = None,
    ) -> LinearBaseline:
        return fit_linear_model(
            likelihood, job, class_names=class_names, null=null, penalty=penalty
        )

    def linear_design(self, job: Job) -> LinearDesign:
        return linear_design(job)

    def penalty(self, likelihood: Likelihood, job: Job, seed: int) -> Penalty | None:
        return choose_penalty(with_dispersion(likelihood, "constant"), job, seed)

    def constant(self, objective: Supervised, job: Job) -> PointPosterior:
        assert objective.shift is not None
        rows: TableRows = job.rows  # type: ignore[assignment]
        preprocessor = learn_preprocessor(rows, job.weight.numpy(), purpose="linear")
        network: Any = networks.create(
            "linear", inputs=preprocessor.spec, outputs=objective.shift.numel()
        )
        nn.init.zeros_(network.output.bias)
        return linear_posterior(preprocessor, network, objective)

    def baseline(self, likelihood: Likelihood, job: Job, seed: int) -> tuple[Posterior, list[str]]:
        """The linear model of a likelihood, with a dispersion that is constant or linear in x.

        With a likelihood that has a dispersion it is fitted twice; the lower AIC on the training
        rows wins, corrected for few rows. Where a penalty is better out of fold, it is penalised.
        """
        dispersions: tuple[Dispersion, ...] = ("constant",)
        if varies(likelihood):
            dispersions = ("constant", "predicted")
        tried = [
            fit_linear_model(
                with_dispersion(likelihood, "predicted"), job, dispersion=each, null=False
            )
            for each in dispersions
        ]
        best = min(tried, key=lambda found: sum(_aic(fit) for fit in found.fits))
        penalty = self.penalty(likelihood, job, seed)
        if penalty is not None:
            plain = with_dispersion(likelihood, "constant")
            best = fit_linear_model(plain, job, null=False, penalty=penalty)
            return best.posterior, [f"linear model: {said(penalty)}, better out of fold."]
        messages = [message for fit in best.fits for message in fit.messages]
        if best is not tried[0]:
            messages.append("its dispersion is linear in x, too, which has the lower AICc.")
        sentences = dict.fromkeys(f"linear model: {sentence}" for sentence in messages)
        return best.posterior, list(sentences)

    def load_linear(
        self, record: Mapping[str, Any], tensors: Mapping[str, Tensor]
    ) -> PointPosterior:
        """The linear model that was saved among the members of a mixture."""
        preprocessor = load_preprocessor(record["preprocessing"])
        network: Any = networks.create(
            "linear", inputs=preprocessor.spec, outputs=record["outputs"]
        )
        likelihood = likelihoods.create(
            record["likelihood"]["name"], **record["likelihood"]["options"]
        ).double()
        prefix = "objective.likelihood."
        likelihood.load_state_dict(
            {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)},
            strict=False,
        )
        objective = Supervised(
            likelihood, tensors.get("objective.shift"), tensors.get("objective.scale")
        )
        if not isinstance(network, nn.Module):
            raise ModelError("the linear model is not a network.")
        for name, part in (("network", network.double()), ("objective", objective)):
            own = {n.removeprefix(f"{name}."): t for n, t in tensors.items() if n.startswith(name)}
            load_into(part, own, where="weights.safetensors")
        trained = Trained(network, objective, "linear", {})
        return rebuild_linear(self, TableEncoder(preprocessor), trained, tensors)

    # Search and export.

    def at_once(self, request: Request) -> Request:
        options = request.options
        if options["stream"] or options["memory_limit"] is not None:
            raise UsageError(
                "a search reads a table at once: leave out --stream and --memory-limit."
            )
        return request.but(stream=False)

    def require_answers(self, network: nn.Module, name: str, inputs: InputSpec, axis: str) -> None:
        with torch.no_grad():
            network(torch.zeros(1, inputs.features))

    def exporter(self, encoder: TableEncoder, names: Sequence[str] | None) -> Exporter:
        from ansatz.structures.vector.export import TableExporter

        if isinstance(encoder.preprocessor, FormulaPreprocessor):
            raise UsageError("a model with a formula cannot be exported: a graph has no splines.")

        strata = [c.name for c in encoder.preprocessor.columns if c.role == "stratum"]
        if strata:
            raise UsageError(
                f"a model with strata ('{strata[0]}') cannot be exported: a graph has one survival "
                "curve for all rows. Fit without strata, or one model for each stratum."
            )
        return TableExporter(encoder, names)


def _aic(fit: LinearFit) -> float:
    """AIC + 2 k (k + 1) / (n - k - 1), infinite where no rows are left over.

    AIC alone takes a dispersion with a coefficient per column whenever columns are many.
    """
    k, left = fit.parameters, fit.observations - fit.parameters - 1
    return math.inf if fit.aic is None or left <= 0 else fit.aic + 2 * k * (k + 1) / left


_FEATURES = 512  # at most, of all numbers
_NUMBERS = 2**27  # features times rows: half a gigabyte


def choose_bins(
    rows: TableRows, wanted: int, network: Any, network_options: Mapping[str, Any] | None = None
) -> int:
    """Chooses the default number of bins of each number; 0 for none.

    A network of the user's own takes the columns as they are; embeddings bend by themselves;
    hundreds of columns would become thousands of features, millions of rows gigabytes.
    """
    embeds = "numeric_embedding" in (network_options or {})
    if network != "mlp" or embeds or rows.formula is not None:
        return 0
    features = min(_FEATURES, _NUMBERS // max(len(rows), 1))
    bins = min(wanted, features // max(rows.numbers, 1))
    return bins if bins >= 8 else 0
