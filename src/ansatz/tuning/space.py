"""The space of a search: what the user changes of it, and points of it."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from ansatz.errors import UsageError
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.space import Choice, Range, Space

# Options that are searched under another name: widths are equal, and so many.
SHAPE = ("width", "depth")


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
    """Options of a fit from a point of the space: width and depth of an mlp become widths."""
    if network != "mlp":
        return dict(parameters)
    found = {name: value for name, value in parameters.items() if name not in SHAPE}
    if "width" in parameters or "depth" in parameters:
        found["widths"] = [parameters.get("width", 128)] * parameters.get("depth", 2)
    return found


def point_of(
    recipe: Recipe, likelihood: str, space: Space, network: Mapping[str, Any] | None = None
) -> dict[str, Any] | None:
    """The default recipe as a point of the space; None where it lies outside."""
    values = {**recipe.model_dump(), "likelihood": likelihood}
    if recipe.widths and len(set(recipe.widths)) == 1:
        values |= {"width": recipe.widths[0], "depth": len(recipe.widths)}
    values |= network or {}
    point = {name: values.get(name) for name in space}
    if all(dimension.holds(point[name]) for name, dimension in space.items()):
        return point
    return None


def check_space(space: Space, known: Sequence[str]) -> None:
    """Refuses names that are not options of the fit."""
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
