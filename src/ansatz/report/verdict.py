"""Effects in words and as rows of a table."""

from ansatz.report.effect import Effect
from ansatz.report.normal_scores import NormalScores


def p_text(p: float | None) -> str:
    """A p-value as it is printed."""
    if p is None or p != p:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def effect_row(effect: Effect, prefix: str = "") -> list[str]:
    """Name, estimate, interval, what a right likelihood has, p-value."""
    digits = 3 if max(abs(effect.low), abs(effect.high), abs(effect.value)) < 0.2 else 2
    if effect.value != effect.value:
        return [f"{prefix}{effect.name}", "–", "–", f"{effect.neutral:g}", "–"]
    value, low, high = (
        f"{end:.{digits}f}".replace("-", "−") for end in (effect.value, effect.low, effect.high)
    )
    return [
        f"{prefix}{effect.name}",
        value,
        f"{low} to {high}" if effect.low == effect.low else "–",
        f"{effect.neutral:g}",
        p_text(effect.p_value),
    ]


def say_scores(scores: NormalScores, name: str = "") -> str:
    """What location and spread of normal scores mean, in one sentence.

    Effects below a tenth are called small whatever their p-value: with many rows every likelihood
    is found to be wrong, and that is not the question.
    """
    found = []
    spread, location = scores.spread, scores.location
    if spread.excludes_neutral and abs(spread.value - 1) >= 0.1:
        small = spread.value > 1
        size, ends = spread.value, sorted((spread.low, spread.high))
        if not small:
            size, ends = 1 / size, sorted((1 / spread.high, 1 / spread.low))
        found.append(
            f"spread is too {'small' if small else 'large'} by a factor of {size:.2f} "
            f"({ends[0]:.2f} to {ends[1]:.2f})"
        )
    if location.excludes_neutral and abs(location.value) >= 0.1:
        side = "low" if location.value > 0 else "high"
        ends = sorted((abs(location.low), abs(location.high)))
        found.append(
            f"centre is too {side} by {abs(location.value):.2f} ({ends[0]:.2f} to {ends[1]:.2f}) "
            "of its own spread"
        )
    subject = f"{name}: the" if name else "The"
    if found:
        return f"{subject} predicted " + "; the ".join(found) + "."
    notable = spread.excludes_neutral or location.excludes_neutral
    words = "are close to right" if notable else "fit the outcomes"
    return (
        f"{subject} predicted centre and spread {words}: location {location.value:.2f}".replace(
            "-", "−"
        )
        + f" and spread {spread.value:.2f} of the normal scores (0 and 1 for the right likelihood)."
    )
