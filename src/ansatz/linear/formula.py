"""Formulas as in R: the columns of the outcome, and the terms, checked and parsed."""

import ast
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ansatz.errors import UsageError

if TYPE_CHECKING:
    from formulaic import SimpleFormula

# A formula may come with a model from elsewhere: only these names can be called, on columns and
# numbers, so that reading one runs no code.
_MATH = ("log", "log2", "log10", "log1p", "exp", "expm1", "sqrt", "abs", "sin", "cos", "tanh")
_TRANSFORMS = ("bs", "cr", "cs", "cc", "poly", "center", "scale", "C", "I")
_CONTRASTS = ("treatment", "sum", "helmert", "poly", "diff", "SAS")
_NODES = (
    *(ast.Expression, ast.Load, ast.Constant, ast.Name, ast.List, ast.Tuple, ast.Call, ast.keyword),
    *(ast.UnaryOp, ast.USub, ast.UAdd, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow),
    *(ast.Attribute, ast.Compare, ast.Gt, ast.GtE, ast.Lt, ast.LtE, ast.Eq, ast.NotEq),
)
LARGEST = 1000  # degrees of freedom of a spline, or the degree of a polynomial
_LONGEST = 10_000  # characters


class Sides(NamedTuple):
    """The two sides of a formula."""

    target: list[str]
    terms: str


def split_formula(formula: str) -> Sides:
    """Splits ``"y ~ terms"`` into the columns of the outcome and the terms.

    The outcome is a column, or several joined by ``+``; without ``~`` all of it is terms.

    Example:
        >>> from ansatz.linear import split_formula
        >>> split_formula("price ~ area * site")
        Sides(target=['price'], terms='area * site')
    """
    if not isinstance(formula, str):
        raise UsageError(f"a formula is a text like 'y ~ a * b', got {formula!r}.")
    if len(formula) > _LONGEST:
        raise UsageError(f"a formula has at most {_LONGEST} characters, got {len(formula)}.")
    left, tilde, right = formula.partition("~")
    if not tilde:
        left, right = "", left
    if "~" in right:
        raise UsageError(f"a formula has one '~', got {formula!r}.")
    names = [name.strip().strip("`") for name in left.split("+")] if left.strip() else []
    odd = [name for name in names if re.search(r"[()*/^|]", name) or not name]
    if odd:
        raise UsageError(
            f"formula: the left side names columns, got '{left.strip()}'. To transform the "
            "outcome, add a column, or choose a likelihood with that link "
            "(log_normal for a logarithm)."
        )
    if not right.strip():
        raise UsageError(f"formula: no terms in {formula!r}. A constant model is 'y ~ 1'.")
    return Sides(names, right.strip())


def formula_variables(formula: str, columns: Sequence[str]) -> list[str]:
    """The columns that the terms of a formula use, in the order of the table.

    Example:
        >>> from ansatz.linear import formula_variables
        >>> formula_variables("y ~ a * log(b)", ["y", "b", "c", "a"])
        ['b', 'a']
    """
    sides = split_formula(formula)
    known = [name for name in columns if name not in sides.target]
    used: set[str] = set()
    for term in parse_terms(sides.terms, known):
        for factor in term.factors:
            used |= _checked(factor, known)
    return [name for name in known if name in used]


def parse_terms(terms: str, columns: Sequence[str]) -> "SimpleFormula":
    """The terms of a formula, each checked; an intercept is always among them."""
    from formulaic import Formula

    try:
        context = {"__formulaic_variables_available__": list(columns)}
        parsed: Any = Formula(terms, _context=context)
        each = list(parsed)
        flat = all(hasattr(term, "factors") for term in each)
    except Exception as error:
        raise UsageError(f"formula '{terms}': {first_line(error)}.") from None
    if not flat:
        raise UsageError(f"formula '{terms}': one model has one list of terms, without '|'.")
    if not any(term.degree == 0 for term in each):
        raise UsageError(
            f"formula '{terms}': every model here has an intercept; leave out '- 1' and '0 +'."
        )
    for term in each:
        for factor in term.factors:
            _checked(factor, columns)
    return parsed


def _checked(factor: Any, columns: Iterable[str]) -> set[str]:
    """The columns of a factor; what is not arithmetic, a known function or a column is refused."""
    expression, known = str(factor.expr), set(columns)
    method = factor.eval_method.value
    if method == "literal":
        return set()
    if method == "lookup":
        return {_require_column(expression, known)}
    quoted: dict[str, str] = {}

    def hide(found: re.Match[str]) -> str:
        name = f"quoted_{len(quoted)}"
        quoted[name] = found[1]
        return name

    try:
        tree = ast.parse(re.sub(r"`([^`]*)`", hide, expression), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UsageError(f"formula: '{expression}' cannot be read.") from None
    used: set[str] = set()
    functions: set[ast.AST] = set()
    for node in ast.walk(tree):
        if not isinstance(node, _NODES):
            raise UsageError(
                f"formula: '{expression}': {type(node).__name__} is not allowed. A term takes "
                "columns, numbers, arithmetic and the functions of docs/linear-models.md."
            )
        if isinstance(node, ast.Call):
            functions.add(node.func)
            _check_call(node, expression)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            allowed = {"np": _MATH, "contr": _CONTRASTS}.get(owner, ())
            if node.attr not in allowed:
                raise UsageError(f"formula: '{expression}': '{ast.unparse(node)}' is not known.")
            functions.add(node.value)
        elif isinstance(node, ast.BinOp):
            _check_arithmetic(node, expression)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node not in functions:
            used.add(_require_column(quoted.get(node.id, node.id), known))
    return used


def _check_call(node: ast.Call, expression: str) -> None:
    name = ast.unparse(node.func)
    plain = name.removeprefix("np.").removeprefix("contr.")
    if plain not in (*_MATH, *_TRANSFORMS, *_CONTRASTS) or any(
        k.arg is None for k in node.keywords
    ):
        if plain == "offset":
            raise UsageError("formula: an offset is a column of its own: --offset or --exposure.")
        raise UsageError(
            f"formula: '{expression}': '{name}' is not a known function. Known: "
            f"{', '.join((*_TRANSFORMS, *_MATH))}."
        )
    for each in [*node.args, *(k.value for k in node.keywords)]:
        value = each.value if isinstance(each, ast.Constant) else None
        large = isinstance(value, int) and abs(value) > LARGEST
        if large and plain in ("bs", "cr", "cs", "cc", "poly"):
            raise UsageError(f"formula: '{expression}': {value!r} is more than {LARGEST}.")


def _check_arithmetic(node: ast.BinOp, expression: str) -> None:
    """Numbers and columns only; a power of columns, since 9**9**9 would never end."""
    for side in (node.left, node.right):
        text = isinstance(side, ast.Constant) and not isinstance(side.value, int | float)
        if text or isinstance(side, ast.List | ast.Tuple):
            raise UsageError(f"formula: '{expression}': arithmetic takes columns and numbers.")
    names = any(isinstance(part, ast.Name) for part in ast.walk(node.left))
    if isinstance(node.op, ast.Pow) and not names:
        raise UsageError(f"formula: '{expression}': a power needs a column as its base.")


def _require_column(name: str, known: set[str]) -> str:
    if name not in known:
        import difflib

        near = difflib.get_close_matches(name, sorted(known), n=1)
        hint = (
            f"Did you mean '{near[0]}'?" if near else f"Columns: {', '.join(sorted(known)[:20])}."
        )
        raise UsageError(f"formula: no column '{name}'. {hint}")
    return name


def term_text(term: Any) -> str:
    """A term as a formula spells it; names that are not words in backquotes."""
    parts = []
    for factor in term.factors:
        name = str(factor.expr)
        plain = factor.eval_method.value != "lookup" or name.isidentifier()
        parts.append(name if plain else f"`{name}`")
    return ":".join(parts) or "1"


def formula_functions() -> dict[str, Any]:
    """The functions of formulas that formulaic has otherwise or lacks."""
    from formulaic.transforms import basis_spline
    from formulaic.utils.stateful_transforms import stateful_transform

    def bs(data: Any, *given: Any, _state: dict[str, Any], **options: Any) -> Any:
        return basis_spline(data, *given, _state=_state, **{"extrapolation": "extend", **options})

    return {name: getattr(np, name) for name in _MATH} | {"bs": stateful_transform(bs)}


def first_line(error: BaseException) -> str:
    """The first line of an error, without its full stop."""
    return (str(error) or type(error).__name__).splitlines()[0].rstrip(".")[:300]
