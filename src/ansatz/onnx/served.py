"""The whole function that a model serves, from columns or pixels to its answers."""

import contextlib
import copy
import io
import logging
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.fitting.contracts.outcome import Outcome
from ansatz.fitting.contracts.rows import Encoder
from ansatz.fitting.model import Model, Trained
from ansatz.likelihoods import Censored, CurveDistribution, Distribution, Likelihood
from ansatz.onnx.inputs import exporter_of, fitted_model, graph_inputs


def likelihood_parameters(likelihood: Likelihood, raw: Tensor) -> dict[str, Tensor]:
    """Names the parameters of the predictive distribution as the distribution does.

    Args:
        likelihood: the likelihood.
        raw: ``(N, ..., P)``.
    """
    if not likelihood.has_distribution:
        return {}
    distribution = likelihood.distribution(raw)
    if isinstance(distribution, CurveDistribution):  # its survival curve holds it all
        return {}
    found = _tensors(distribution, "likelihood")
    return {k: v if v.ndim else v.expand(raw.shape[:-1]) for k, v in found.items()}


def _tensors(distribution: Distribution, prefix: str) -> dict[str, Tensor]:
    """The tensors that a distribution was made of; one inside another adds its name."""
    found: dict[str, Tensor] = {}
    for name, value in vars(distribution).items():
        words = f"{prefix}_{name.lstrip('_')}"
        if isinstance(value, Tensor):
            found[words] = value
        elif isinstance(value, Distribution):
            found |= _tensors(value, prefix if name == "base" else words)  # base: stretched
        elif isinstance(value, list) and value and isinstance(value[0], Distribution):
            parts = [_tensors(part, prefix) for part in value]  # members: an axis behind the rows
            found |= {key: torch.stack([part[key] for part in parts], 1) for key in parts[0]}
    return found


def curve_times(likelihood: Likelihood) -> list[float]:
    """Lists the times of survival curves without a formula; empty for other likelihoods."""
    times = getattr(likelihood, "baseline_times", getattr(likelihood, "cuts", None))
    return [] if times is None else times.tolist()


Answer = Callable[[Likelihood, Tensor], dict[str, Tensor]]


class Member(nn.Module):
    """One network: from values to its inputs, then its answer, shift and scale.

    Shapes:
        - values: ``(N, ...)`` each; offset ``(N,)``.
        - returns: the raw numbers, ``(N, P)`` or ``(N, K, P)``.
    """

    def __init__(self, columns: nn.Module, trained: Trained, kind: torch.dtype) -> None:
        super().__init__()
        self.columns, self.inner = columns, kind
        self.network = copy.deepcopy(trained.answering).to(kind).eval()
        self.objective = copy.deepcopy(trained.objective).to(kind).eval()

    def forward(self, values: tuple[Tensor, ...], offset: Tensor | None) -> Tensor:
        features = self.columns(*values)
        inputs = tuple(t.to(self.inner) if t.is_floating_point() else t for t in features)
        given = None if offset is None else offset.to(self.inner)
        return self.objective.raw(self.network, inputs, given)


class ServedModel(nn.Module):
    """Cells in; raw numbers, the likelihood's parameters and predictions out.

    Args:
        model: fitted.
        double: takes and computes in float64, else in float32.

    Attributes:
        inputs: from :func:`~ansatz.onnx.inputs.graph_inputs`.
        likelihood: what the raw numbers are the parameters of; of an ensemble, the mixture.
        outputs: the names of what it gives, in their order.
        notes: what it cannot give, and why.

    Example:
        >>> import numpy as np
        >>> import torch
        >>> from ansatz import Regressor
        >>> from ansatz.onnx import served_module
        >>> x = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> served = served_module(Regressor(network="linear").fit(x, 2 * x[:, 0] + 1))
        >>> served.outputs
        ['raw', 'likelihood_mean', 'likelihood_sd', 'prediction']
        >>> served(torch.ones(1, 1))[3]
        tensor([3.])
    """

    likelihood: Likelihood

    def __init__(self, model: Model, *, double: bool = False) -> None:
        super().__init__()
        exporter = exporter_of(model)
        self.inputs, self.columns = graph_inputs(model), len(exporter.inputs)
        self.steps = exporter.steps
        self.given = torch.float64 if double else torch.float32

        def computes(encoder: Encoder) -> torch.dtype:
            return torch.float64 if double or exporter.keeps_units(encoder) else torch.float32

        self.inner = computes(model.encoder)
        found = model.posterior.composition(self.inner)
        if found is None:
            raise UsageError(f"inference '{model.posterior.name}' cannot be exported.")
        self.members = nn.ModuleList(
            Member(exporter.module(encoder), trained, computes(encoder))
            for encoder, trained in found.members
        )
        self.combine, self.words = found.combine, found.words
        self.likelihood = (
            self.first.objective.likelihood if found.likelihood is None else found.likelihood
        )
        self.requires_grad_(False)
        values = exporter.example(self.given)
        ones = torch.ones(len(values[0]), dtype=self.given)
        self.example_values = (*values, *(ones for _ in self.inputs[self.columns :]))
        self.answers: list[Answer] = []
        self.outputs: list[str] = []
        self.notes: list[str] = []
        self._choose_answers(model.outcome)

    @property
    def first(self) -> Member:
        """The first of the networks."""
        member = self.members[0]
        assert isinstance(member, Member)
        return member

    def example(self) -> tuple[Tensor, ...]:
        """Rows to trace with."""
        return self.example_values

    def raw(self, *values: Tensor) -> Tensor:
        """Computes raw numbers, ``(N, P)`` or ``(N, K, P)``; of a mixture ``(N, S, ..., P)``."""
        count, offset = self.columns, None
        for given, value in zip(self.inputs[count:], values[count:], strict=True):
            part = value.double()
            part = part.log() if given.kind == "exposure" else part
            offset = part if offset is None else offset + part
        raws = [member(values[:count], offset).to(self.inner) for member in self.members]
        return raws[0] if self.combine is None else self.combine(raws).to(self.inner)

    def forward(self, *values: Tensor) -> tuple[Tensor, ...]:
        raw = self.raw(*values)
        found = {"raw": raw}
        for answer in self.answers:
            found |= answer(self.likelihood, raw)
        kept = (found[name] for name in self.outputs)
        return tuple(t.to(self.given) if t.is_floating_point() else t.long() for t in kept)

    def _choose_answers(self, outcome: Outcome) -> None:
        likelihood = self.likelihood
        with torch.no_grad():
            raw = self.raw(*self.example())
        self.outputs = ["raw"]
        wanted: list[tuple[str, Answer]] = [
            ("the parameters of the likelihood", likelihood_parameters),
            ("the prediction", outcome.answers),
        ]
        inner = likelihood.likelihood if isinstance(likelihood, Censored) else likelihood
        for what, answer in wanted:
            names = _traceable(answer, likelihood, raw)
            if names is None:
                self.notes.append(
                    f"{what}: {inner.name} has it by no ONNX operations; it follows from the other "
                    f"outputs by the likelihood's formula (ansatz show {inner.name})."
                )
            else:
                self.answers.append(answer)
                self.outputs += names


def served_module(estimator: Any, *, double: bool = False) -> ServedModel:
    """The map that a fitted estimator serves, as one module that can be traced.

    Args:
        estimator: a fitted ``Regressor``, ``Classifier``, ``SurvivalRegressor`` or ``Ranker``.
        double: computes in float64.

    Example:
        >>> import numpy as np
        >>> from ansatz import Classifier
        >>> from ansatz.onnx import served_module
        >>> x = np.linspace(-1, 1, 40).reshape(-1, 1)
        >>> model = Classifier(network="linear").fit(x, (x[:, 0] + np.sin(9 * x[:, 0]) > 0))
        >>> served_module(model).outputs
        ['raw', 'likelihood_logits', 'prediction', 'probabilities']
    """
    return ServedModel(fitted_model(estimator), double=double)


class _Head(nn.Module):
    def __init__(self, answer: Answer, likelihood: Likelihood) -> None:
        super().__init__()
        self.answer, self.likelihood = answer, likelihood

    def forward(self, raw: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.answer(self.likelihood, raw).values())


def _traceable(answer: Answer, likelihood: Likelihood, raw: Tensor) -> list[str] | None:
    """Names what a function of the likelihood gives; None if it is not a graph of tensors."""
    with torch.no_grad(), quiet():
        found = answer(likelihood, raw)
        names = [name for name, value in found.items() if value.shape[0] == raw.shape[0]]
        if not names:
            return []
        try:
            rows = {0: torch.export.Dim("rows")}
            torch.export.export(_Head(answer, likelihood), (raw,), dynamic_shapes=(rows,))
        except Exception:  # torch raises whatever the first step it cannot follow raises
            return None
    return names


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keeps torch's tracer from writing its intermediate graphs to the terminal."""
    before, nowhere = logging.root.manager.disable, io.StringIO()
    logging.disable(logging.CRITICAL)
    # torch's own trace is always on and describes every graph to whoever listens.
    trace = logging.getLogger("torch.__trace")
    listening, trace.handlers = trace.handlers, []
    try:
        with (
            contextlib.redirect_stdout(nowhere),
            contextlib.redirect_stderr(nowhere),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
        trace.handlers = listening
