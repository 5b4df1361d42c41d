"""Labels logarithmic axes in plain text: 0.01, 100, 10⁻⁶."""

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axis import Axis

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def logarithmic(*axes: "Axis") -> None:
    """Makes an axis logarithmic and labels it in plain text.

    Args:
        axes: such as ``axes.xaxis`` and ``axes.yaxis`` of a matplotlib plot.

    Example:
        >>> from ansatz.figures.decades import logarithmic
        >>> from ansatz.figures.style import figure
        >>> with figure(3, 2) as paper:
        ...     plot = paper.subplots()
        ...     line = plot.plot([1, 2], [1e-6, 1e6])
        ...     logarithmic(plot.yaxis)
        ...     plot.yaxis.get_major_formatter()(1e-6)
        '10⁻⁶'
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axis in axes:
        axis.axes.set(**{"xscale" if axis is axis.axes.xaxis else "yscale": "log"})
        low, high = sorted(abs(end) for end in axis.get_view_interval())
        span = math.log10(high / low) if low > 0 else math.inf
        axis.set_major_locator(LogLocator(subs=_steps(span)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: power_of_ten(value)))
        axis.set_minor_formatter(NullFormatter())


def _steps(span: float) -> tuple[float, ...]:
    """Chooses the labelled multiples by the number of decades."""
    if span < 0.7:
        return (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0)
    return (1.0, 2.0, 5.0) if span < 2 else (1.0,)


def power_of_ten(value: float) -> str:
    """Formats a number from 0.001 to 10,000 as it is, others as a power of ten."""
    if value == 0 or 1e-3 <= value <= 1e4:
        return f"{value:g}"
    digits, exponent = f"{value:e}".split("e")
    power = "10" + str(int(exponent)).translate(_RAISED)
    return power if float(digits) == 1 else f"{float(digits):g}·{power}"
