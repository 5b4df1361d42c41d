"""Prints a linear fit as R's ``summary(glm)`` does."""

import html
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ansatz.likelihoods.likelihood import Likelihood

if TYPE_CHECKING:
    from ansatz.linear.linear_fit import LinearFit


STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"), (0.1, "."))
LEGEND = "Signif. codes:  0 '***' 0.001 '**' 0.01 '*' 0.05 '.' 0.1 ' ' 1"


_ERRORS = {
    "model": "",
    "sandwich": ", sandwich standard errors",
    "cluster": ", clustered standard errors",
}


def stars(p: float) -> str:
    """R's mark for a p-value."""
    return next((mark for limit, mark in STARS if p <= limit), "")


def format_p(p: float) -> str:
    """Formats a p-value as R does."""
    if math.isnan(p):
        return "NA"
    return "<2e-16" if p < 2e-16 else f"{p:.3g}"


def format_column(values: Sequence[float], digits: int = 5) -> list[str]:
    """Formats a column with a common number of decimals, three digits for the smallest."""
    finite = [abs(v) for v in values if math.isfinite(v) and v != 0]
    if finite and (max(finite) >= 1e7 or min(finite) < 1e-5):
        return ["NA" if math.isnan(v) else f"{v:.{digits - 1}e}" for v in values]
    decimals = 0
    if finite:
        # Enough for three digits of the smallest and `digits` of the largest.
        decimals = max(2 - math.floor(math.log10(min(finite))), digits - 1 - _order(finite))
    decimals = min(max(decimals, 1), 7)
    return ["NA" if math.isnan(v) else f"{v:.{decimals}f}" for v in values]


def _order(values: Sequence[float]) -> int:
    return math.floor(math.log10(max(values)))


def align(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table: names and columns without a header to the left, numbers to the right."""
    lines = [header, *rows]
    widths = [max(len(line[j]) for line in lines) for j in range(len(header))]
    return [
        " ".join(
            cell.rjust(width) if header[j] else cell.ljust(width)
            for j, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def plain(name: object) -> str:
    r"""Spells out control characters, so that a name cannot move a terminal's cursor."""
    text = str(name)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class Printed:
    """Text that notebooks show as it is printed, escaped."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f'<pre class="ansatz-summary">{html.escape(str(self))}</pre>'


class Summary(Printed):
    """A linear fit as R prints it.

    ``str()`` gives call, likelihood and link, coefficient table, dispersion, deviances with
    degrees of freedom, AIC, iterations, what was dropped, and messages; notebooks show the same,
    escaped; ``to_dict()`` the numbers.

    Args:
        fit: the fitted model.
        call: what the user asked for; default: the model's formula.
        rows_dropped: rows that were left out for missing values before the fit.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Poisson
        >>> from ansatz.linear import Summary, fit_linear
        >>> x, y = torch.arange(4.0).unsqueeze(1), torch.tensor([1.0, 2.0, 4.0, 9.0])
        >>> print(Summary(fit_linear(Poisson(), x, y, feature_names=["age"])))
        Call: y ~ age
        <BLANKLINE>
        Likelihood: poisson, link log
        <BLANKLINE>
        Coefficients:
                    Estimate Std. Error z value Pr(>|z|)
        (Intercept) -0.06051    0.68696  -0.088     0.93
        age          0.74776    0.27669   2.702  0.00688 **
        ---
        Signif. codes:  0 '***' 0.001 '**' 0.01 '*' 0.05 '.' 0.1 ' ' 1
        <BLANKLINE>
        (Dispersion parameter for poisson: 1)
        <BLANKLINE>
            Null deviance:   9.05157  on 3  degrees of freedom
        Residual deviance: 0.0151784  on 2  degrees of freedom
        AIC: 15.9482  BIC: 14.7208
        <BLANKLINE>
        Number of Newton iterations: ...
    """

    def __init__(self, fit: "LinearFit", call: str = "", rows_dropped: int = 0) -> None:
        self.fit, self.rows_dropped = fit, rows_dropped
        self.call = plain(call) if call else self._formula()

    def _formula(self) -> str:
        terms = [plain(name) for name in self.fit.names[1:]]
        shown = terms[:8] + (["..."] if len(terms) > 8 else [])
        return f"y ~ {' + '.join(shown) or '1'}"

    def __str__(self) -> str:
        blocks = [
            [f"Call: {self.call}"],
            [self._likelihood()],
            *self._tables(),
            self._dispersion(),
            self._deviances(),
            [f"Number of Newton iterations: {self.fit.iterations}"],
            self._dropped(),
            [f"Note: {plain(message)}" for message in self.fit.messages],
        ]
        return "\n\n".join("\n".join(block) for block in blocks if block)

    def _likelihood(self) -> str:
        likelihood = self.fit.likelihood
        noun = "Likelihood" if likelihood.has_distribution else "Loss"
        errors = _ERRORS.get(
            self.fit.covariance_kind, f", {self.fit.covariance_kind} standard errors"
        )
        inner = getattr(likelihood, "likelihood", None)  # a censored weibull, a truncated normal
        name = (
            f"{likelihood.name} {inner.name}" if isinstance(inner, Likelihood) else likelihood.name
        )
        return f"{noun}: {name}, link {self.fit.link}{errors}"

    def _tables(self) -> list[list[str]]:
        fit, blocks = self.fit, []
        letter = "t" if fit.uses_t else "z"
        ratio = ["exp(Est.)"] if self._hazards else []
        shares = ["FMI"] if fit.pooled is not None else []
        header = ["", "Estimate", *ratio, "Std. Error", *shares]
        header += [f"{letter} value", f"Pr(>|{letter}|)", ""]
        marked = False
        slopes = {column for row, column in fit.entries if row > 0}
        for column, output in enumerate(fit.outputs):
            if slopes and column not in slopes and column >= fit.locations:
                continue  # a constant dispersion is printed below, in its own unit
            rows = self._rows(column)
            if not rows:
                continue
            of = f" of {plain(output)}" if len(fit.outputs) > 1 else ""
            blocks.append([f"Coefficients{of}:", *align(header, rows)])
            marked = marked or any(row[-1] for row in rows)
        if blocks and marked:
            blocks[-1] += ["---", LEGEND]
        return blocks

    @property
    def _hazards(self) -> bool:
        """Whether exp(coefficient) is a ratio of hazards, which every reader asks for."""
        return self.fit.likelihood.name in ("cox", "discrete_hazard")

    def _rows(self, column: int) -> list[list[str]]:
        fit = self.fit
        estimated = {row for row, output in fit.entries if output == column}
        dropped = {j for j, name in enumerate(fit.names) if j and name in fit.dropped}
        shown = sorted(estimated | dropped) if len(estimated) > 1 else sorted(estimated)
        if column < fit.locations:
            shown = sorted(estimated | dropped)
        estimates = fit.coefficients[shown, column].tolist()
        ratios = fit.statistics[shown, column].tolist()
        p_values = fit.p_values[shown, column].tolist()
        numbers = [format_column(estimates)]
        if self._hazards:
            numbers.append(format_column(fit.coefficients[shown, column].exp().tolist()))
        numbers.append(format_column(fit.standard_errors[shown, column].tolist()))
        if fit.pooled is not None:
            shares = fit.pooled.missing_information[shown, column].tolist()
            numbers.append(["NA" if math.isnan(share) else f"{share:.3f}" for share in shares])
        return [
            [
                plain(fit.names[j]),
                *(cells[i] for cells in numbers),
                "NA" if math.isnan(ratios[i]) else f"{ratios[i]:.3f}",
                format_p(p_values[i]),
                "" if math.isnan(p_values[i]) else stars(p_values[i]),
            ]
            for i, j in enumerate(shown)
        ]

    def _dispersion(self) -> list[str]:
        fit = self.fit
        if fit.dispersion is not None:
            text = f"(Dispersion parameter for {fit.likelihood.name}: {fit.dispersion:.6g}"
            if fit.uses_t and fit.dispersion_ml is not None:
                text += f"; by maximum likelihood {fit.dispersion_ml:.6g}"
            return [text + ")"]
        return [f"({name}: {value:.6g})" for name, value in fit.scales.items()]

    def _deviances(self) -> list[str]:
        fit = self.fit
        if not fit.likelihood.additive:
            return self._partial()
        lines = []
        if fit.null_deviance is not None and fit.residual_deviance is not None:
            numbers = [f"{fit.null_deviance:.6g}", f"{fit.residual_deviance:.6g}"]
            width = max(map(len, numbers))
            lines = [
                f"    Null deviance: {numbers[0]:>{width}}  on {fit.df_null:g}  degrees of freedom",
                f"Residual deviance: {numbers[1]:>{width}}  on {fit.df_residual:g}  degrees of "
                "freedom",
            ]
        else:
            word = "-2 log-likelihood" if fit.likelihood.has_distribution else "Total loss"
            factor = -2 if fit.likelihood.has_distribution else -1
            lines = [
                f"{word}: {factor * fit.log_likelihood:.6g} with {fit.parameters} parameters, "
                f"{factor * fit.null_log_likelihood:.6g} without x"
            ]
        if fit.aic is not None and fit.bic is not None:
            lines.append(f"AIC: {fit.aic:.6g}  BIC: {fit.bic:.6g}{self._other_aic()}")
        return lines

    def _partial(self) -> list[str]:
        """The lines that R prints under a Cox model."""
        fit = self.fit
        statistic, df, p = fit.likelihood_ratio
        lines = [
            f"{fit.observations:g} rows, {fit.measures['events']:g} events",
            f"Partial log-likelihood: {fit.log_likelihood:.4f} with {fit.parameters} parameters, "
            f"{fit.null_log_likelihood:.4f} without x",
            f"Likelihood ratio test: {statistic:.4g} on {df} degrees of freedom, p {_equals(p)}",
        ]
        if "concordance" in fit.measures:
            lines.append(f"Concordance: {fit.measures['concordance']:.4f}")
        if "proportional_hazards_p" in fit.measures:
            p = fit.measures["proportional_hazards_p"]
            lines.append(f"Test of proportional hazards (Schoenfeld): p {_equals(p)}")
        return lines

    def _other_aic(self) -> str:
        """R's and statsmodels' values where they differ from ours."""
        r, statsmodels = self.fit.aic_as("R"), self.fit.aic_as("statsmodels")
        aic = self.fit.aic
        if aic is None or r is None or statsmodels is None or abs(statsmodels - aic) < 1e-9:
            return ""
        first = "" if abs(r - aic) < 1e-6 * abs(aic) else f"R: {r:.6g}, "
        return f"  ({first}statsmodels: {statsmodels:.6g})"

    def _dropped(self) -> list[str]:
        if not self.rows_dropped:
            return []
        noun = "row" if self.rows_dropped == 1 else "rows"
        return [f"({self.rows_dropped} {noun} with missing values dropped)"]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers and strings; what is undefined is None."""
        fit = self.fit
        return {
            "call": self.call,
            "likelihood": fit.likelihood.name,
            "link": fit.link,
            "coefficients": [
                {
                    "name": fit.names[row],
                    "output": fit.outputs[column],
                    "estimate": _number(fit.coefficients[row, column]),
                    "standard_error": _number(fit.standard_errors[row, column]),
                    "statistic": _number(fit.statistics[row, column]),
                    "p_value": _number(fit.p_values[row, column]),
                    **_of_pooling(fit, row, column),
                }
                for row, column in fit.entries
            ],
            "statistic": "t" if fit.uses_t else "z",
            "covariance": fit.covariance_kind,
            "observations": fit.observations,
            "dispersion": _number(fit.dispersion),
            "dispersion_ml": _number(fit.dispersion_ml),
            "scales": fit.scales,
            "null_deviance": _number(fit.null_deviance),
            "df_null": fit.df_null,
            "residual_deviance": _number(fit.residual_deviance),
            "df_residual": fit.df_residual,
            "log_likelihood": _number(fit.log_likelihood),
            "null_log_likelihood": _number(fit.null_log_likelihood),
            "aic": _number(fit.aic),
            "aic_r": _number(fit.aic_as("R")),
            "aic_statsmodels": _number(fit.aic_as("statsmodels")),
            "bic": _number(fit.bic),
            "measures": {name: _number(value) for name, value in fit.measures.items()},
            "curvature": fit.curvature,
            "iterations": fit.iterations,
            "converged": fit.converged,
            "dropped": list(fit.dropped),
            "rows_dropped": self.rows_dropped,
            "messages": list(fit.messages),
        }


def _of_pooling(fit: "LinearFit", row: int, column: int) -> dict[str, float | None]:
    if fit.pooled is None:
        return {}
    return {
        "df": _number(fit.pooled.df[row, column]),
        "missing_information": _number(fit.pooled.missing_information[row, column]),
    }


def _equals(p: float) -> str:
    text = format_p(p)
    return text if text.startswith("<") else f"= {text}"


def _number(value: Any) -> float | None:
    return None if value is None or not math.isfinite(float(value)) else float(value)
