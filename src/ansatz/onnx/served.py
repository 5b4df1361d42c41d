"""The whole function that a model serves, from columns or cells to its answers."""

import contextlib
import copy
import io
import logging
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from ansatz.likelihoods import Censored, Likelihood
from ansatz.onnx.answers import law_parameters, predictions
from ansatz.onnx.columns import TableColumns
from ansatz.onnx.grid_cells import GridCells
from ansatz.onnx.inputs import Input, graph_inputs

Answer = Callable[[Likelihood, Tensor], dict[str, Tensor]]
_ROWS = 1009  # of the example: no other axis is likely to have this length
_GRIDS = 11  # likewise, where a row is many numbers


class Member(nn.Module):
    """One fitted model of a table: its preprocessing, its network, shift and scale.

    Args:
        model: a fitted :class:`~ansatz.fitting.model.TableModel`.
        inputs: the columns of the graph.
        double: computes in float64; a linear model always does, as its columns keep their units.

    Shapes:
        - cells: ``(N,)`` each, or one ``(N, D)``; offset ``(N,)``.
        - returns: the raw numbers, ``(N, P)`` or ``(N, K, P)``.

    Example:
        >>> import numpy as np
        >>> import torch
        >>> from ansatz import Regressor
        >>> from ansatz.onnx.inputs import graph_inputs
        >>> from ansatz.onnx.served import Member
        >>> x = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> model = Regressor(network="linear").fit(x, 2 * x[:, 0] + 1)
        >>> member = Member(model.model_, graph_inputs(model), double=True)
        >>> member((torch.ones(1, 1),), None).item()
        3.0
    """

    def __init__(self, model: Any, inputs: list[Input], *, double: bool) -> None:
        super().__init__()
        linear = model.network_name == "linear"
        self.inner = torch.float64 if double or linear else torch.float32
        is_grid = model.preprocessor.spec.structure == "grid"
        self.columns: Any = (
            GridCells(model.preprocessor) if is_grid else TableColumns(model.preprocessor, inputs)
        )
        self.network = copy.deepcopy(model.answering).to(self.inner).eval()
        self.objective = copy.deepcopy(model.objective).to(self.inner).eval()

    def forward(self, cells: tuple[Tensor, ...], offset: Tensor | None) -> Tensor:
        features = self.columns(*cells)
        inputs = tuple(t.to(self.inner) if t.is_floating_point() else t for t in features)
        given = None if offset is None else offset.to(self.inner)
        return self.objective.raw(self.network, inputs, given)


class ServedModel(nn.Module):
    """Columns in; raw numbers, the law's parameters and predictions out.

    Args:
        estimator: a fitted one, of one network or of an ensemble.
        inputs: from :func:`~ansatz.onnx.inputs.graph_inputs`.
        double: takes and computes in float64, else in float32.

    Attributes:
        law: what the raw numbers are the parameters of; of an ensemble, the mixture.
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
        ['raw', 'law_mean', 'law_sd', 'prediction']
        >>> served(torch.ones(1, 1))[3]
        tensor([3.])
    """

    law: Likelihood

    def __init__(self, estimator: Any, inputs: list[Input], *, double: bool = False) -> None:
        super().__init__()
        model = estimator.model_
        self.inputs = inputs
        self.given = torch.float64 if double else torch.float32
        columns = [given for given in inputs if _is_column(given)]
        models = getattr(model, "members", [model])
        self.members = nn.ModuleList(Member(one, columns, double=double) for one in models)
        self.inner = self._member(0).inner
        self.combination = copy.deepcopy(getattr(model, "combination", None))
        if self.combination is None:
            self.law = self._member(0).objective.likelihood
        else:
            for law in self.combination.laws:
                law.to(self.inner)
            self.law = self.combination.likelihood.to(self.inner)
        self.requires_grad_(False)
        self._estimator = [estimator]  # in a list: a module would adopt a module
        self.answers: list[Answer] = []
        self.outputs: list[str] = []
        self.notes: list[str] = []
        self._choose_answers()

    def example(self) -> tuple[Tensor, ...]:
        """Rows to trace with."""
        return tuple(self._cells(given) for given in self.inputs)

    def raw(self, *cells: Tensor) -> Tensor:
        """The law's parameters, ``(N, P)`` or ``(N, K, P)``; of a mixture ``(N, S, ..., P)``."""
        count = sum(_is_column(given) for given in self.inputs)
        offset: Tensor | None = None
        for given, cell in zip(self.inputs[count:], cells[count:], strict=True):
            part = cell.double()
            part = part.log() if given.kind == "exposure" else part
            offset = part if offset is None else offset + part
        raws = [member(cells[:count], offset).to(self.inner) for member in self.members]
        if self.combination is None:
            return raws[0]
        served: Tensor = self.combination.serve(raws)
        return served.to(self.inner)

    def forward(self, *cells: Tensor) -> tuple[Tensor, ...]:
        raw = self.raw(*cells)
        found = {"raw": raw}
        for answer in self.answers:
            found |= answer(self.law, raw)
        kept = (found[name] for name in self.outputs)
        return tuple(t.to(self.given) if t.is_floating_point() else t.long() for t in kept)

    def _member(self, place: int) -> Member:
        member = self.members[place]
        assert isinstance(member, Member)
        return member

    def _choose_answers(self) -> None:
        estimator, law = self._estimator[0], self.law
        with torch.no_grad():
            raw = self.raw(*self.example())
        self.outputs = ["raw"]
        wanted: list[tuple[str, Answer]] = [
            ("the parameters of the law", law_parameters),
            ("the prediction", lambda law, raw: predictions(estimator, law, raw)),
        ]
        inner = law.law if isinstance(law, Censored) else law
        for what, answer in wanted:
            names = _traceable(answer, law, raw)
            if names is None:
                self.notes.append(
                    f"{what}: {inner.name} has it by no ONNX operations; it follows from the other "
                    f"outputs by the law's formula (ansatz show {inner.name})."
                )
            else:
                self.answers.append(answer)
                self.outputs += names

    def _cells(self, given: Input) -> Tensor:
        if given.kind == "grid":
            return torch.zeros(_GRIDS, *self._member(0).columns.shape, dtype=self.given)
        if given.kind == "matrix":
            center = self._member(0).columns.center.to(self.given)
            return center.expand(_ROWS, -1).clone()
        if given.kind in ("number", "offset", "exposure"):
            is_grid = self.inputs[0].kind == "grid"
            return torch.ones(_GRIDS if is_grid else _ROWS, dtype=self.given)
        return torch.zeros(_ROWS, dtype=torch.int64)


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
        ['raw', 'law_logits', 'prediction', 'probabilities']
    """
    return ServedModel(estimator, graph_inputs(estimator), double=double)


class _Head(nn.Module):
    def __init__(self, answer: Answer, law: Likelihood) -> None:
        super().__init__()
        self.answer, self.law = answer, law

    def forward(self, raw: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.answer(self.law, raw).values())


def _traceable(answer: Answer, law: Likelihood, raw: Tensor) -> list[str] | None:
    """The names of what a function of the law gives; None where it is no graph of tensors."""
    with torch.no_grad(), quiet():
        found = answer(law, raw)
        names = [name for name, value in found.items() if value.shape[0] == raw.shape[0]]
        if not names:
            return []
        try:
            rows = {0: torch.export.Dim("rows")}
            torch.export.export(_Head(answer, law), (raw,), dynamic_shapes=(rows,))
        except Exception:  # torch raises whatever the first step it cannot follow raises
            return None
    return names


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keeps torch's tracer from writing its intermediate graphs to the terminal.

    Example:
        >>> from ansatz.onnx.served import quiet
        >>> with quiet():
        ...     pass
    """
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


def _is_column(given: Input) -> bool:
    return given.kind not in ("offset", "exposure")
