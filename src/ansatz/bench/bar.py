"""What a measured number must reach."""

import math
from typing import NamedTuple


class Bar(NamedTuple):
    """A bound from below, from above, or both.

    Args:
        at_least: the smallest number that passes; None for any.
        at_most: the largest number that passes; None for any.

    Example:
        >>> from ansatz.bench import Bar
        >>> Bar(at_least=2.0).met(2.5), Bar(at_most=2.0).met(2.5)
        (True, False)
        >>> str(Bar(0.87, 0.95))
        '0.87 to 0.95'
    """

    at_least: float | None = None
    at_most: float | None = None

    def met(self, value: float | None) -> bool:
        """Whether ``value`` passes; what could not be measured (None, nan) does not."""
        if value is None or math.isnan(value):
            return False
        low, high = self.at_least, self.at_most
        return (low is None or value >= low) and (high is None or value <= high)

    def to_dict(self) -> dict[str, float]:
        """The bounds that are set."""
        return {name: value for name, value in self._asdict().items() if value is not None}

    def __str__(self) -> str:
        if self.at_least is not None and self.at_most is not None:
            return f"{self.at_least:g} to {self.at_most:g}"
        if self.at_least is not None:
            return f">= {self.at_least:g}"
        return f"<= {self.at_most:g}" if self.at_most is not None else "any"
