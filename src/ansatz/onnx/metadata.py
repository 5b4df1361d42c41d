"""Describes a model in its ONNX file: likelihood, columns, outputs, provenance."""

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import ansatz
from ansatz.fitting.contracts.exporter import Input
from ansatz.fitting.model import Model
from ansatz.fitting.summaries import describe_model
from ansatz.onnx.graph import label_list
from ansatz.onnx.inputs import exporter_of
from ansatz.onnx.served import ServedModel, curve_times

if TYPE_CHECKING:
    import onnx


_RAW = (
    "the raw numbers of the likelihood, (N, P), (N, targets, P) or (N, *size, P); the first "
    "is the linear predictor"
)


def describe(model: Model, served: ServedModel) -> dict[str, Any]:
    """The file's metadata as plain data."""
    likelihood = served.likelihood
    for _ in range(2):  # what is censored, or what members share
        likelihood = getattr(likelihood, "likelihood", likelihood)
    known, outcome = describe_model(model), model.outcome
    words = {"raw": _RAW, **outcome.outputs}
    return {
        "ansatz_version": ansatz.__version__,
        "estimator": outcome.estimator.partition(":")[2],
        "network": known["network"],
        "parameters": known["parameters"],
        "likelihood": likelihood.name,
        "likelihood_options": likelihood.options,
        "link": likelihood.link_name,
        "target": known["target"],
        "unit": "predictions are in the unit of the target as it was given to the fit",
        "classes": label_list(model),
        **served.words,
        "inputs": [_column(given) for given in served.inputs],
        "outputs": {
            name: words.get(name, "a parameter of the likelihood") for name in served.outputs
        },
        "times": curve_times(served.likelihood) or None,
        "interval": interval_recipe(
            likelihood.name, served.outputs, outcome.intervals, mixed="weights" in served.words
        ),
        "preprocessing": exporter_of(model).preprocessing,
        "fingerprint": known.get("fingerprint"),
        "rows": known.get("rows"),
        "metrics": known.get("metrics"),
        "notes": served.notes,
    }


def attach(proto: "onnx.ModelProto", known: dict[str, Any]) -> None:
    """Writes the metadata into the file: text as it is, the rest as JSON."""
    proto.producer_name, proto.producer_version = "ansatz", str(known.get("ansatz_version", ""))
    proto.doc_string = "Columns or cells in, a predictive distribution out; see the metadata."
    del proto.metadata_props[:]
    for key, value in known.items():
        if value is not None:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            entry = proto.metadata_props.add()
            entry.key, entry.value = key, text


def _column(given: Input) -> dict[str, Any]:
    record: dict[str, Any] = {"name": given.name, "column": given.column, "takes": given.takes}
    if given.is_text:
        record["levels"] = [level for level in given.codes if level]
    return record


SCIPY = {
    "beta": "beta(1 / (1 + exp(-likelihood_logits)) / likelihood_dispersion, "
    "1 / (1 + exp(likelihood_logits)) / likelihood_dispersion)",
    "exponential": "expon(0, exp(likelihood_log_mean))",
    "gamma": "gamma(1 / likelihood_dispersion, 0, "
    "exp(likelihood_log_mean) * likelihood_dispersion)",
    "generalized_pareto": "genpareto(likelihood_shape, 0, exp(likelihood_log_scale))",
    "inverse_gaussian": "invgauss(exp(likelihood_log_mean) * likelihood_dispersion, "
    "0, 1 / likelihood_dispersion)",
    "laplace": "laplace(likelihood_location, likelihood_scale)",
    "log_normal": "lognorm(likelihood_sigma, 0, exp(likelihood_log_median))",
    "negative_binomial": "nbinom(1 / likelihood_dispersion, "
    "1 / (1 + likelihood_dispersion * exp(likelihood_log_mean)))",
    "normal": "norm(likelihood_mean, likelihood_sd)",
    "poisson": "poisson(exp(likelihood_log_rate))",
    "student_t": "t(likelihood_nu, likelihood_location, likelihood_scale)",
    "weibull": "weibull_min(1 / likelihood_sigma, 0, exp(likelihood_log_scale))",
}


def interval_recipe(
    name: str,
    outputs: list[str],
    intervals: Mapping[str, str] | None = None,
    *,
    mixed: bool = False,
) -> str:
    """Explains how to get the equal-tailed interval from the outputs of an exported model.

    A linear model of a normal outcome has the distribution of least squares, Student's t.
    """
    for form in () if mixed else (name, "student_t"):
        needed = set(re.findall(r"likelihood_\w+", SCIPY.get(form, "")))
        if needed and needed <= set(outputs):
            return f"scipy.stats.{SCIPY[form]}.interval(level); exp and log are those of numpy."
    for output, words in (intervals or {}).items():
        if output in outputs:
            return words
    if any(output.startswith("likelihood_") for output in outputs) and name in SCIPY:
        return (
            "the quantiles (1 - level) / 2 and (1 + level) / 2 of the mixture of the members' "
            "distributions with 'weights', for likelihoods of the whole line stretched about its "
            "mean by 'factor'."
        )
    return (
        "the quantiles (1 - level) / 2 and (1 + level) / 2 of the distribution, in ansatz: "
        "interval(X)."
    )
