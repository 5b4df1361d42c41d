"""The priors of a linear model: those given, and rstanarm's defaults for the others."""

import difflib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ansatz.errors import UsageError
from ansatz.inference.priors import Prior

CLASSES = ("coefficients", "intercept", "sigma", "sd", "correlation")


class ColumnPrior(NamedTuple):
    """A prior by the name of what it is about, with its words for a table."""

    name: str
    prior: Prior
    is_default: bool


class LinearPriors:
    r"""Gives each parameter of a linear model its prior.

    Defaults, with sd(y) 1 where the link is not the identity and x centred:

    - coefficients normal(0, 2.5 sd(y) / sd(x)),
    - the intercept normal(the constant model's, 2.5 sd(y)), under a logit normal(0, 2.5),
    - scales exponential(1 / sd(y)),
    - standard deviations of groups half_student_t(3, 0, 2.5 sd(y)), over sd(x) for slopes,
    - correlations lkj(1).

    Args:
        given: distributions by ``coefficients, intercept, sigma, sd, correlation`` or a column.
        names: of the columns of the design.
        unit: sd(y), or 1.
        centre: the intercept of the constant model.

    Example:
        >>> from ansatz.inference.glm.priors import LinearPriors
        >>> priors = LinearPriors({"age": "normal(0, 1)"}, ["age", "bmi"], unit=2.0)
        >>> str(priors.coefficient("age", 0.5)), str(priors.coefficient("bmi", 0.5))
        ('normal(0, 1)', 'normal(0, 10)')

    References:
        Goodrich, Gabry, Ali and Brilleman, rstanarm: prior distributions.
        https://mc-stan.org/rstanarm/articles/priors.html
    """

    def __init__(
        self,
        given: Mapping[str, str | Prior] | None,
        names: Sequence[str],
        *,
        unit: float = 1.0,
        centre: float = 0.0,
        scales: Sequence[str] = ("sigma",),
    ) -> None:
        self.unit, self.centre, self._scales = unit, centre, tuple(scales)
        known = [*CLASSES, *scales, *names, *(name.split("[")[0] for name in names)]
        self._given: dict[str, Prior] = {}
        for name, text in (given or {}).items():
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f" Did you mean '{near[0]}'?" if near else ""
                raise UsageError(
                    f"prior: this model has no '{name}'.{hint} Known: {', '.join(CLASSES)}, or a "
                    "column."
                )
            self._given[name] = Prior.read(text, f"prior of {name}")
        self._check()

    def _check(self) -> None:
        for name, prior in self._given.items():
            positive = name in ("sigma", "sd", *self._scales)
            if positive and not (prior.is_positive or prior.name == "flat"):
                raise UsageError(
                    f"prior of {name}: it is a positive number; take half_normal, exponential, "
                    f"half_student_t, log_normal or gamma, not {prior}."
                )
            if (name == "correlation") != (prior.name == "lkj"):
                raise UsageError(
                    f"prior of {name}: "
                    + ("take lkj(1)." if name == "correlation" else "lkj is for correlation.")
                )
            if prior.name == "horseshoe" and name != "coefficients":
                raise UsageError(f"prior of {name}: horseshoe is for coefficients.")

    @property
    def horseshoe(self) -> float | None:
        """The scale of the horseshoe prior of the coefficients, where they have it."""
        found = self._given.get("coefficients")
        return found.parameters[0] if found is not None and found.name == "horseshoe" else None

    @property
    def is_flat(self) -> bool:
        """Whether some coefficients have a flat prior."""
        about = [p for n, p in self._given.items() if n not in ("sigma", "sd", *self._scales)]
        return any(prior.name == "flat" for prior in about)

    def own(self, name: str) -> Prior | None:
        """What was given for a column, or for the categories of it."""
        return self._given.get(name) or self._given.get(name.split("[")[0])

    def coefficient(self, name: str, sd: float) -> Prior:
        """Of the coefficient of a column with this standard deviation."""
        found = self.own(name) or self._given.get("coefficients")
        return found or Prior("normal", (0.0, 2.5 * self.unit / sd))

    def intercept(self) -> Prior:
        """Of the linear predictor at the mean of x."""
        return self._given.get("intercept") or Prior("normal", (self.centre, 2.5 * self.unit))

    def scale(self, name: str, unit: float) -> Prior:
        """Of a scale or shape of the likelihood."""
        found = self._given.get(name) or self._given.get("sigma")
        if found is None and name == "nu":
            return Prior("gamma", (2.0, 0.1))
        return found or Prior("exponential", (1 / unit,))

    def group(self, sd: float) -> Prior:
        """Of the standard deviation of a coefficient between groups; sd is that of its column."""
        return self._given.get("sd") or Prior("half_student_t", (3.0, 0.0, 2.5 * self.unit / sd))

    def correlation(self) -> float:
        """The parameter of LKJ."""
        found = self._given.get("correlation")
        return 1.0 if found is None else found.parameters[0]
