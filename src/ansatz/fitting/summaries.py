"""What ``summary()`` answers: a linear model's table, or a network's effects."""

import html
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict
from sklearn.base import clone
from sklearn.utils import resample

from ansatz.data import as_frame, is_frame
from ansatz.likelihoods import Likelihood
from ansatz.linear import NetworkSummary, average_marginal_effects
from ansatz.networks import Summary
from ansatz.networks import summary as summarize_network

if TYPE_CHECKING:
    from ansatz.estimators.table_estimator import TableEstimator


class SavedSummary(BaseModel):
    """A summary that was saved with its model: the text, and the numbers behind it.

    Example:
        >>> from ansatz.fitting.summaries import SavedSummary
        >>> print(SavedSummary(text="Call: y ~ x", table={}))
        Call: y ~ x
    """

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
    estimator: "TableEstimator",
    X: Any = None,
    y: Any = None,
    *,
    training: tuple[Any, Any] | None = None,
    refits: int = 20,
) -> Any:
    """A linear model's summary as R prints it; for a network what takes its place.

    A network has no coefficients, no AIC and no in-sample deviance test: it has the deviance that
    it explains on rows it did not learn from, and average marginal effects, their intervals from
    refits to bootstrap samples of the rows that it did learn from. Cells of grids are no columns
    that could have effects: there it is the table of the network's layers.

    Args:
        estimator: fitted.
        X: held-out rows, needed for a network.
        y: their outcomes.
        training: (X, y) of the fit; without them effects have no intervals.
        refits: bootstrap refits behind the intervals; 0 for none.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.fitting.summaries import summarize
        >>> x = np.arange(8.0).reshape(-1, 1)
        >>> model = Regressor(network="linear").fit(x, np.array([1, 3, 5, 8, 9, 11, 12, 15.0]))
        >>> "(Intercept)" in str(summarize(model))
        True
    """
    if estimator.model_.preprocessor.spec.structure == "grid":
        return summarize_layers(estimator)
    if hasattr(estimator, "linear_"):
        return summarize_linear(estimator)
    if hasattr(estimator, "saved_summary_"):
        return estimator.saved_summary_
    law = estimator.model_.objective.likelihood
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
        call=_call(estimator, estimator.target_names_),
        likelihood=law.name,
        link=getattr(law, "link_name", "identity"),
        network=_words(estimator),
        effects=effects,
        deviance_explained=explained,
        held_out=count,
        parameters=estimator.model_.parameters,
        refits=refits,
        class_names=_class_names(estimator),
        messages=messages,
    )


def summarize_layers(estimator: "TableEstimator") -> Summary:
    """The layers of a network on grids; of an ensemble, those of its first network.

    Example:
        >>> import numpy as np
        >>> from ansatz import Classifier
        >>> from ansatz.fitting.summaries import summarize_layers
        >>> images = np.random.default_rng(0).normal(size=(20, 12, 12)).astype(np.float32)
        >>> model = Classifier(network="linear_grid", epochs=1).fit(images, np.arange(20) % 2)
        >>> summarize_layers(model).parameters
        145
    """
    model = getattr(estimator.model_, "members", [estimator.model_])[0]
    return summarize_network(model.network, model.preprocessor.spec)


def summarize_linear(estimator: "TableEstimator") -> Any:
    """The summary of a linear model; for several targets, one under the other.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.fitting.summaries import summarize_linear
        >>> x, y = np.arange(8.0).reshape(-1, 1), np.array([1, 3, 5, 8, 9, 11, 12, 15.0])
        >>> "(Intercept)" in str(summarize_linear(Regressor(network="linear").fit(x, y)))
        True
    """
    fits = estimator.linear_
    if not isinstance(fits, list):
        return fits.summary(call=_call(estimator, estimator.target_names_))
    parts = [
        fit.summary(call=_call(estimator, [name]))
        for fit, name in zip(fits, estimator.target_names_, strict=True)
    ]
    tables = {
        name: part.to_dict() for name, part in zip(estimator.target_names_, parts, strict=True)
    }
    return SavedSummary(text="\n\n".join(map(str, parts)), table=tables)


def _call(estimator: "TableEstimator", targets: list[str]) -> str:
    names = [str(name) for name in getattr(estimator, "feature_names_in_", [])]
    names = names or [f"x{j + 1}" for j in range(estimator.n_features_in_)]
    left_out = {
        column.name for column in getattr(estimator, "columns_", None) or () if not column.used
    }
    names = [name for name in names if name not in left_out]
    shown = " + ".join(names[:8]) + (f" + ... ({len(names)} columns)" if len(names) > 8 else "")
    uses = getattr(estimator, "uses_", None)
    if uses is not None and uses.offset is not None:
        shown += f" + offset({uses.offset})"
    if uses is not None and uses.exposure is not None:
        shown += f" + offset(log({uses.exposure}))"
    shown = shown or "1"
    if len(targets) > 8:
        targets = [targets[0], "...", f"{targets[-1]} ({len(targets)} columns)"]
    return f"{', '.join(targets)} ~ {shown}"


def _words(estimator: "TableEstimator") -> str:
    recipe = getattr(estimator, "recipe_", None)
    name = estimator.model_.network_name
    if name != "mlp" or recipe is None:
        return name
    return f"mlp {' x '.join(map(str, recipe.widths))} {recipe.activation}"


def _class_names(estimator: "TableEstimator") -> list[str] | None:
    classes = getattr(estimator, "classes_", None)
    return None if classes is None else [str(name) for name in classes]


def _frame(estimator: "TableEstimator", X: Any) -> pd.DataFrame:
    if is_frame(X):
        return as_frame(X)
    return pd.DataFrame(np.asarray(X), columns=[f"x{j + 1}" for j in range(np.shape(X)[1])])


def _mean(estimator: "TableEstimator") -> Callable[[pd.DataFrame], Any]:
    """Rows -> the predicted mean, or the probability of each class."""
    named = hasattr(estimator, "feature_names_in_")
    answer = getattr(estimator, "predict_proba", None) or estimator.predict
    return lambda frame: answer(frame if named else frame.to_numpy())


def _refits(estimator: "TableEstimator", X: Any, y: Any, count: int) -> list[Any]:
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


def _deviance_explained(estimator: "TableEstimator", X: Any, y: Any) -> float | None:
    """1 - deviance / deviance of the constant model; None for a law without unit deviances."""
    law = estimator.model_.objective.likelihood
    if type(law).unit_deviance is Likelihood.unit_deviance:
        return None
    job = estimator._read(X, y, reset=False)
    raw = estimator.model_.raw(job.rows)
    constant = estimator.model_.objective.shift
    if constant is None:
        return None
    residual = law.unit_deviance(raw, job.y).sum()
    null = law.unit_deviance(constant.expand_as(raw), job.y).sum()
    return float(1 - residual / null)
