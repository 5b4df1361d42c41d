"""What a search may change, and between which values."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ansatz.errors import UsageError
from ansatz.fitting.recipe import Recipe

# Options that are searched under another name: widths are equal, and so many.
SHAPE = ("width", "depth")


class Range(NamedTuple):
    """Numbers from ``low`` to ``high``; on the log scale where that spans a factor of ten.

    Example:
        >>> from ansatz.tuning.space import Range
        >>> Range(16, 512).log, Range(1, 4).log, Range(16, 512).whole
        (True, False, True)
    """

    low: float
    high: float

    @property
    def log(self) -> bool:
        """Whether the range is searched on the log scale."""
        return self.low > 0 and self.high >= 10 * self.low

    @property
    def whole(self) -> bool:
        """Whether values are whole numbers."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def holds(self, value: Any) -> bool:
        """Whether the value lies in it."""
        return isinstance(value, int | float) and self.low <= value <= self.high

    def sentence(self) -> str:
        """As it is written on the command line."""
        return f"{self.low:g}..{self.high:g}{' (log)' if self.log else ''}"


class Choice(NamedTuple):
    """One of several values.

    Example:
        >>> from ansatz.tuning.space import Choice
        >>> Choice(("relu", "silu")).sentence()
        'relu, silu'
    """

    values: tuple[Any, ...]

    def holds(self, value: Any) -> bool:
        """Whether the value is among them."""
        return value in self.values

    def sentence(self) -> str:
        """As it is written on the command line."""
        return ", ".join(str(value) for value in self.values)


Space = dict[str, Range | Choice]


def default_space(
    recipe: Recipe, *, network: str | None, laws: Sequence[str], rows: float
) -> Space:
    """What is searched of a fit to a table unless the user says otherwise.

    ================  ==========================================================
    ``width``         16 to 512 hidden units in every layer, log scale
    ``depth``         1 to 4 hidden layers
    ``dropout``       0 to 0.5
    ``learning_rate`` 3e-4 to 3e-2, log scale
    ``weight_decay``  1e-4 to 1, log scale
    ``batch_size``    powers of two from 16 to 512, at most a quarter of the rows
    ``activation``    silu, relu, gelu, tanh
    ``likelihood``    the candidates, if none was given
    ================  ==========================================================

    The shape is that of an ``mlp``; a recipe that takes all rows at once keeps doing so.

    Args:
        recipe: the default for these rows.
        network: by name; None where several are tried.
        laws: candidates that can be compared.
        rows: to learn from.

    Example:
        >>> from ansatz.fitting.recipe import choose_recipe
        >>> from ansatz.tuning.space import default_space
        >>> list(default_space(choose_recipe(1_000), network="mlp", laws=["normal"], rows=1_000))
        ['width', 'depth', 'dropout', 'learning_rate', 'weight_decay', 'batch_size', 'activation']
    """
    space: Space = {}
    if network == "mlp":
        space |= {"width": Range(16, 512), "depth": Range(1, 4), "dropout": Range(0.0, 0.5)}
    space["learning_rate"] = Range(3e-4, 3e-2)
    space["weight_decay"] = Range(1e-4, 1.0)
    if recipe.batch_size:
        sizes = [2**k for k in range(4, 10) if 2**k <= max(16, rows / 4)]
        space["batch_size"] = Choice(tuple(sorted({*sizes, recipe.batch_size})))
    if network == "mlp":
        space["activation"] = Choice(("silu", "relu", "gelu", "tanh"))
    if len(laws) > 1:
        space["likelihood"] = Choice(tuple(laws))
    return space


def parse_space(texts: Sequence[str]) -> Space:
    """Dimensions from ``name=low..high`` and ``name=a,b,c``; one value fixes the option.

    Example:
        >>> from ansatz.tuning.space import parse_space
        >>> parse_space(["dropout=0..0.3", "activation=relu,tanh", "depth=2"])["dropout"]
        Range(low=0, high=0.3)
    """
    return {name: dimension for name, dimension in map(_parse, texts)}


def _parse(text: str) -> tuple[str, Range | Choice]:
    name, equals, values = text.partition("=")
    name, values = name.strip().replace("-", "_"), values.strip()
    expected = f"expected --space NAME=LOW..HIGH or NAME=A,B,C, got '{text}'."
    if not name or not equals or not values:
        raise UsageError(expected)
    if ".." in values:
        ends = values.split("..")
        try:
            low, high = (_number(end) for end in ends)
        except ValueError:
            raise UsageError(expected) from None
        if not low < high:
            raise UsageError(f"--space {name}: the range must go up, got {values}.")
        return name, Range(low, high)
    try:
        parsed = json.loads(f"[{values}]")  # [64, 64], [128] are two values
    except ValueError:
        parsed = [_value(part.strip()) for part in values.split(",")]
    if len({json.dumps(value) for value in parsed}) < len(parsed):
        raise UsageError(f"--space {name}: a value is given twice: {values}.")
    return name, Choice(tuple(parsed))


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return int(text) if text.strip().lstrip("+-").isdigit() else number


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def settings_of(parameters: Mapping[str, Any], network: str = "mlp") -> dict[str, Any]:
    """Options of a fit from a point of the space: width and depth of an mlp become widths.

    Args:
        parameters: the point.
        network: by name; others have a width or a depth of their own.

    Example:
        >>> from ansatz.tuning.space import settings_of
        >>> settings_of({"width": 64, "depth": 2, "dropout": 0.1})
        {'dropout': 0.1, 'widths': [64, 64]}
        >>> settings_of({"width": 64}, "small_resnet")
        {'width': 64}
    """
    if network != "mlp":
        return dict(parameters)
    found = {name: value for name, value in parameters.items() if name not in SHAPE}
    if "width" in parameters or "depth" in parameters:
        found["widths"] = [parameters.get("width", 128)] * parameters.get("depth", 2)
    return found


def point_of(
    recipe: Recipe, law: str, space: Space, network: Mapping[str, Any] | None = None
) -> dict[str, Any] | None:
    """The default recipe as a point of the space; None where it lies outside.

    Args:
        recipe: the default.
        law: by name.
        space: what may vary.
        network: its name and its own options, which win over the recipe's.

    Example:
        >>> from ansatz.fitting.recipe import choose_recipe
        >>> from ansatz.tuning.space import parse_space, point_of
        >>> point_of(choose_recipe(1_000), "normal", parse_space(["width=16..256"]))
        {'width': 128}
    """
    values = {**recipe.model_dump(), "likelihood": law}
    if recipe.widths and len(set(recipe.widths)) == 1:
        values |= {"width": recipe.widths[0], "depth": len(recipe.widths)}
    values |= network or {}
    point = {name: values.get(name) for name in space}
    if all(dimension.holds(point[name]) for name, dimension in space.items()):
        return point
    return None


def check_space(space: Space, known: Sequence[str]) -> None:
    """Refuses names that are no option of the fit.

    Example:
        >>> from ansatz.tuning.space import check_space, parse_space
        >>> check_space(parse_space(["droput=0..0.3"]), ["dropout"])
        Traceback (most recent call last):
        ...
        ansatz.errors.UsageError: --space: unknown option 'droput'. Did you mean 'dropout'?
    """
    import difflib

    names = ["likelihood", "network", *known]
    for name in space:
        if name in names:
            continue
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"Did you mean '{near[0]}'?" if near else f"Known: {', '.join(sorted(names))}."
        raise UsageError(f"--space: unknown option '{name}'. {hint}")
    if "widths" in space and any(name in space for name in SHAPE):
        raise UsageError("--space: widths takes the place of width and depth.")
