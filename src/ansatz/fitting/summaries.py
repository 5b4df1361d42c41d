"""Summaries and descriptions of a fitted model."""

import html
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict
from sklearn.base import clone
from sklearn.utils import resample

from ansatz.data import as_frame, is_frame
from ansatz.fitting.model import Model
from ansatz.likelihoods import Likelihood
from ansatz.linear import NetworkSummary, average_marginal_effects, split_formula
from ansatz.linear.terms import read_terms

if TYPE_CHECKING:
    from ansatz.fitting.model import Model


class SavedSummary(BaseModel):
    """A summary that was saved with its model: the text, and the numbers behind it."""

    model_config = ConfigDict(extra="forbid")

    text: str
    table: dict[str, Any]

    @classmethod
    def of(cls, summary: Any) -> "SavedSummary":
        """The text and table of a summary."""
        return cls(text=str(summary), table=summary.to_dict())

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f'<pre class="ansatz-summary">{html.escape(self.text)}</pre>'

    def to_dict(self) -> dict[str, Any]:
        """The numbers behind the text."""
        return self.table


def summarize(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    training: tuple[Any, Any] | None = None,
    refits: int = 20,
) -> Any:
    """A linear model's summary as R prints it; for a network what takes its place.

    A network has no coefficients, no AIC and no in-sample deviance test: it has the deviance that
    it explains on held-out rows, and average marginal effects, their intervals from
    refits to bootstrap samples of the training rows. Pixels of images are not columns
    that could have effects: there it is the table of the network's layers.
    """
    model = estimator.model_
    own = model.structure.summary(model) or model.outcome.summary(model)
    if own is not None:
        return own
    describe = getattr(model.posterior, "summary", None)
    if describe is not None:
        model.require_converged()
        return describe(_call(model, model.outcome.names))
    if model.linear:
        return summarize_linear(model)
    if model.summary is not None:
        return model.summary
    likelihood = model.likelihood
    effects, explained, count = [], None, 0
    messages = []
    if X is None:
        refits = 0
        messages.append("Give held-out rows, summary(X, y), for effects and deviance explained.")
    else:
        frame = _frame(estimator, X)
        again = [] if training is None else _refits(estimator, *training, refits)
        refits = len(again)
        effects = average_marginal_effects(_mean(estimator), frame, refits=again)
        if y is not None:
            explained, count = _deviance_explained(estimator, X, y), len(frame)
    return NetworkSummary(
        call=_call(model, model.outcome.names),
        likelihood=likelihood.name,
        link=getattr(likelihood, "link_name", "identity"),
        network=_words(model),
        effects=effects,
        deviance_explained=explained,
        held_out=count,
        parameters=model.parameters,
        refits=refits,
        class_names=_class_names(model),
        messages=messages,
    )


def summarize_linear(model: "Model") -> Any:
    """The summary of a linear model; for several targets, one under the other."""
    names = model.outcome.names
    if not model.several:
        return model.linear[0].summary(call=_call(model, names))
    parts = [
        fit.summary(call=_call(model, [name]))
        for fit, name in zip(model.linear, names, strict=True)
    ]
    tables = {name: part.to_dict() for name, part in zip(names, parts, strict=True)}
    return SavedSummary(text="\n\n".join(map(str, parts)), table=tables)


def _call(model: "Model", targets: list[str]) -> str:
    names = model.features["names"] or [f"x{j + 1}" for j in range(model.features["count"])]
    left_out = {column.name for column in model.columns or () if not column.used}
    names = [name for name in names if name not in left_out]
    shown = " + ".join(names[:8]) + (f" + ... ({len(names)} columns)" if len(names) > 8 else "")
    formula = model.task.settings.get("formula")
    if formula is not None:
        shown = split_formula(formula).terms
    for term in read_terms(model.task.settings.get("random")):
        shown += f" + ({term})"
    column_roles = model.column_roles
    if column_roles is not None and column_roles.offset is not None:
        shown += f" + offset({column_roles.offset})"
    if column_roles is not None and column_roles.exposure is not None:
        shown += f" + offset(log({column_roles.exposure}))"
    shown = shown or "1"
    if len(targets) > 8:
        targets = [targets[0], "...", f"{targets[-1]} ({len(targets)} columns)"]
    return f"{', '.join(targets)} ~ {shown}"


def _words(model: "Model") -> str:
    recipe, name = model.recipe, model.network_name
    if name != "mlp" or recipe is None:
        return name
    return f"mlp {' x '.join(map(str, recipe.widths))} {recipe.activation}"


def _class_names(model: "Model") -> list[str] | None:
    labels = model.outcome.labels
    return None if labels is None else [str(name) for name in labels]


def _frame(estimator: Any, X: Any) -> pd.DataFrame:
    if is_frame(X):
        return as_frame(X)
    return pd.DataFrame(np.asarray(X), columns=[f"x{j + 1}" for j in range(np.shape(X)[1])])


def _mean(estimator: Any) -> Callable[[pd.DataFrame], Any]:
    """Rows -> the predicted mean, or the probability of each class."""
    named = hasattr(estimator, "feature_names_in_")
    answer = getattr(estimator, "predict_proba", None) or estimator.predict
    return lambda frame: answer(frame if named else frame.to_numpy())


def _refits(estimator: Any, X: Any, y: Any, count: int) -> list[Any]:
    rows = np.arange(len(y))
    found = []
    for k in range(count):
        chosen = resample(rows, random_state=k)
        some = X.iloc[chosen] if isinstance(X, pd.DataFrame) else np.asarray(X)[chosen]
        outcomes = (
            y.iloc[chosen] if isinstance(y, pd.Series | pd.DataFrame) else np.asarray(y)[chosen]
        )
        found.append(_mean(clone(estimator).fit(some, outcomes)))
    return found


def _deviance_explained(estimator: Any, X: Any, y: Any) -> float | None:
    """1 - deviance / null deviance; None for a likelihood without unit deviances."""
    model = estimator.model_
    if type(model.likelihood).unit_deviance is Likelihood.unit_deviance:
        return None
    job = estimator.read_again(X, y)
    likelihood, raw = model.posterior.predictive(job.rows)
    constant = getattr(model.posterior.networks[0].objective, "shift", None)
    if constant is None or len(model.posterior.networks) > 1:
        return None
    residual = likelihood.unit_deviance(raw, job.y).sum()
    null = likelihood.unit_deviance(constant.expand_as(raw), job.y).sum()
    return float(1 - residual / null)


def _of_draws(model: Model) -> dict[str, Any]:
    """The summary of draws of named parameters."""
    describe = getattr(model.posterior, "summary", None)
    if describe is None:
        return {}
    return {"summary": describe(_call(model, model.outcome.names)).to_dict()}


def describe_model(model: Model) -> dict[str, Any]:
    """Structure, network, likelihood, columns, recipe and evidence of a fitted model."""
    recipe, history, fit = model.recipe, model.history, model.evidence.get("fit", {})
    outcome, likelihood = model.outcome, model.likelihood
    labels, networks = outcome.labels, model.posterior.networks
    return {
        "structure": model.structure.name,
        "network": model.network_name,
        "network_options": networks[0].options if networks else None,
        "parameters": model.parameters,
        "likelihood": model.likelihood_name,
        "likelihood_options": getattr(likelihood, "likelihood", likelihood).options,
        "inference": model.task.settings.inference,
        "target": outcome.names,
        outcome.labels_are: None if labels is None else labels.tolist(),
        "columns": [
            {"name": column.name, "role": column.role, "note": column.note}
            for column in model.columns or model.encoder.columns
        ],
        "rows": fit.get("rows"),
        "metrics": fit.get("metrics"),
        "linear": fit.get("linear"),
        "constant": fit.get("constant"),
        "recipe": None if recipe is None else recipe.sentence(model.network_name),
        "stopped": None if history is None else history.stop_reason,
        "seed": fit.get("seed"),
        "notes": fit.get("notes", []),
        "fingerprint": model.evidence.get("fingerprint"),
        **_of_draws(model),
        **({"contains": "the training rows"} if model.posterior.keeps_rows else {}),
    }
