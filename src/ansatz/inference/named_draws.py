"""Draws of parameters by name: a table, the probability of a hypothesis, an export to ArviZ."""

import ast
import operator
import re
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ansatz.errors import MissingExtraError, UsageError
from ansatz.inference.convergence import ess_mean

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]


@runtime_checkable
class NamedDraws(Protocol):
    """A posterior whose parameters have names."""

    @property
    def names(self) -> list[str]:
        """Of the M parameters."""
        ...

    numbers: Tensor  # (C, N, M)


def named_draws(posterior: Any) -> NamedDraws:
    """The posterior, where its parameters have names; others are refused."""
    if not isinstance(posterior, NamedDraws):
        raise UsageError(
            "this model has no draws of named parameters: fit with network='linear' and "
            "inference='nuts'."
        )
    return posterior


def posterior_frame(posterior: NamedDraws) -> "pd.DataFrame":
    """All draws, a column for each parameter, by chain and draw."""
    import pandas as pd

    chains, count, size = posterior.numbers.shape
    index = pd.MultiIndex.from_product([range(chains), range(count)], names=["chain", "draw"])
    return pd.DataFrame(
        posterior.numbers.reshape(-1, size).numpy(), index=index, columns=posterior.names
    )


class Hypothesis(NamedTuple):
    """The probability of a statement about parameters, with its Monte-Carlo error.

    Args:
        statement: as it was given.
        probability: the share of draws for which it is true.
        mcse: the standard error of that share.
    """

    statement: str
    probability: float
    mcse: float

    def __str__(self) -> str:
        return f"P({self.statement}) = {self.probability:.3f}, MCSE {self.mcse:.3f}"


def hypothesis(posterior: NamedDraws, statement: str) -> Hypothesis:
    """The share of draws for which a statement is true: ``"age > 0"``, ``"age > 2 * bmi"``.

    Args:
        posterior: with named parameters.
        statement: one comparison, or several with ``and``; names as in the summary.
    """
    values = {name: posterior.numbers[..., k].numpy() for k, name in enumerate(posterior.names)}
    text, known = _placeholders(statement, values)
    try:
        tree = ast.parse(text, mode="eval").body
        found = np.asarray(_value(tree, known))
    except (SyntaxError, _Unknown) as error:
        listed = ", ".join(posterior.names[:20])
        raise UsageError(
            f"hypothesis: cannot read '{statement}'{_named(error)}. Compare parameters and "
            f"numbers, like '{posterior.names[-1]} > 0'. Parameters: {listed}."
        ) from None
    if found.dtype != bool:
        raise UsageError(f"hypothesis: '{statement}' is a number: compare it, like '... > 0'.")
    true = np.broadcast_to(found, posterior.numbers.shape[:2]).astype(float)
    share = float(true.mean())
    count = float(ess_mean(true))
    return Hypothesis(statement, share, float(np.sqrt(share * (1 - share) / count)))


class _Unknown(ValueError):
    """A name or an operation that a statement cannot have."""


def _named(error: Exception) -> str:
    return f": {error}" if isinstance(error, _Unknown) else ""


def _placeholders(statement: str, values: dict[str, Array]) -> tuple[str, dict[str, Array]]:
    """Names, which may hold spaces and brackets, as identifiers; the longest names first."""
    found, text = {}, statement.replace("`", "")
    for number, name in enumerate(sorted(values, key=len, reverse=True)):
        word = f"parameter_{number}_"
        pattern = rf"(?<![\w.]){re.escape(name)}(?![\w\[(])"
        text, count = re.subn(pattern, word, text)
        if count:
            found[word] = values[name]
    return text, found


_OPERATIONS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
}


def _value(node: ast.expr, known: dict[str, Array]) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    if isinstance(node, ast.Name):
        if node.id not in known:
            raise _Unknown(f"there is no parameter '{node.id}'")
        return known[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_value(node.left, known), _value(node.right, known))
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_value(node.operand, known))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "abs":
        return np.abs(_value(node.args[0], known))
    if isinstance(node, ast.Compare) and all(type(op) in _OPERATIONS for op in node.ops):
        values = [_value(each, known) for each in (node.left, *node.comparators)]
        pairs = zip(node.ops, values, values[1:], strict=False)
        return np.all(
            np.broadcast_arrays(*(_OPERATIONS[type(op)](a, b) for op, a, b in pairs)), axis=0
        )
    if isinstance(node, ast.BoolOp):
        parts = np.broadcast_arrays(*(_value(each, known) for each in node.values))
        return np.all(parts, axis=0) if isinstance(node.op, ast.And) else np.any(parts, axis=0)
    raise _Unknown("it holds more than names, numbers, + - * / **, abs, < > and 'and', 'or'")


def to_arviz(posterior: NamedDraws) -> Any:
    """The draws as ArviZ has them: InferenceData, or a DataTree from version 1 on."""
    try:
        with warnings.catch_warnings():  # it announces its next version once a day
            warnings.simplefilter("ignore", FutureWarning)
            import arviz
    except ImportError:
        raise MissingExtraError("exports to ArviZ", "bayes") from None
    columns = {name: posterior.numbers[..., k].numpy() for k, name in enumerate(posterior.names)}
    if hasattr(arviz, "InferenceData"):
        return arviz.from_dict(posterior=columns)
    return arviz.from_dict({"posterior": columns})


def quantiles(numbers: Array, levels: Sequence[float]) -> Array:
    """Quantiles of every parameter over all draws, ``(L, M)``."""
    found: Array = np.quantile(numbers.reshape(-1, numbers.shape[-1]), levels, axis=0)
    return found
