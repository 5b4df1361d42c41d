"""The space of a search: options of a fit and their values."""

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ansatz.fitting.recipe import Recipe


class Range(NamedTuple):
    """Numbers from ``low`` to ``high``; on the log scale where that spans a factor of ten."""

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
        """Tests whether the value lies in it."""
        return isinstance(value, int | float) and self.low <= value <= self.high

    def sentence(self) -> str:
        """The spelling on the command line."""
        return f"{self.low:g}..{self.high:g}{' (log)' if self.log else ''}"


class Choice(NamedTuple):
    """One of several values."""

    values: tuple[Any, ...]

    def holds(self, value: Any) -> bool:
        """Tests whether the value is among them."""
        return value in self.values

    def sentence(self) -> str:
        """The spelling on the command line."""
        return ", ".join(str(value) for value in self.values)


Space = dict[str, Range | Choice]


def training_space(recipe: "Recipe", rows: float) -> Space:
    """The default space of the training of any network.

    ================= ==========================================================
    ``learning_rate`` 3e-4 to 3e-2, log scale
    ``weight_decay``  1e-4 to 1, log scale
    ``batch_size``    powers of two from 16 to 512, at most a quarter of the rows
    ================= ==========================================================

    A recipe that takes all rows at once keeps doing so.
    """
    space: Space = {"learning_rate": Range(3e-4, 3e-2), "weight_decay": Range(1e-4, 1.0)}
    if recipe.batch_size:
        sizes = [2**k for k in range(4, 10) if 2**k <= max(16, rows / 4)]
        space["batch_size"] = Choice(tuple(sorted({*sizes, recipe.batch_size})))
    return space


def network_space(network: str | None, training: Space) -> Space:
    """The space of the training with the shape of an ``mlp``, where that is the network.

    ============== ==========================================================
    ``width``      16 to 512 hidden units in every layer, log scale
    ``depth``      1 to 4 hidden layers
    ``dropout``    0 to 0.5
    ``activation`` silu, relu, gelu, tanh
    ============== ==========================================================
    """
    if network != "mlp":
        return training
    shape: Space = {"width": Range(16, 512), "depth": Range(1, 4), "dropout": Range(0.0, 0.5)}
    return {**shape, **training, "activation": Choice(("silu", "relu", "gelu", "tanh"))}
