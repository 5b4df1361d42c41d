"""The predictive laws in SciPy's words, so that a file says by itself how to get an interval."""

import re
from collections.abc import Mapping

SCIPY = {
    "beta": "beta(1 / (1 + exp(-law_logits)) / law_dispersion, "
    "1 / (1 + exp(law_logits)) / law_dispersion)",
    "exponential": "expon(0, exp(law_log_mean))",
    "gamma": "gamma(1 / law_dispersion, 0, exp(law_log_mean) * law_dispersion)",
    "generalized_pareto": "genpareto(law_shape, 0, exp(law_log_scale))",
    "inverse_gaussian": "invgauss(exp(law_log_mean) * law_dispersion, 0, 1 / law_dispersion)",
    "laplace": "laplace(law_location, law_scale)",
    "log_normal": "lognorm(law_sigma, 0, exp(law_log_median))",
    "negative_binomial": "nbinom(1 / law_dispersion, 1 / (1 + law_dispersion * exp(law_log_mean)))",
    "normal": "norm(law_mean, law_sd)",
    "poisson": "poisson(exp(law_log_rate))",
    "student_t": "t(law_nu, law_location, law_scale)",
    "weibull": "weibull_min(1 / law_sigma, 0, exp(law_log_scale))",
}


def interval_recipe(
    name: str, outputs: list[str], intervals: Mapping[str, str] | None = None
) -> str:
    """How to get the equal-tailed interval from the outputs of an exported model.

    Args:
        name: the law.
        outputs: the names of the outputs.
        intervals: how to get one from an output of the outcome, by the output's name.
    """
    needed = set(re.findall(r"law_\w+", SCIPY.get(name, "")))
    if needed and needed <= set(outputs):
        return f"scipy.stats.{SCIPY[name]}.interval(level); exp and log are those of numpy."
    for output, words in (intervals or {}).items():
        if output in outputs:
            return words
    if any(output.startswith("law_") for output in outputs) and name in SCIPY:
        return (
            "the quantiles (1 - level) / 2 and (1 + level) / 2 of the mixture of the members' laws "
            "with 'weights', for laws of the whole line stretched about its mean by 'factor'."
        )
    return "the quantiles (1 - level) / 2 and (1 + level) / 2 of the law, in ansatz: interval(X)."
