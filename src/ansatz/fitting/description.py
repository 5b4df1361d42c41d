"""A fitted model as plain data, for ``ansatz inspect``."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ansatz.estimators.table_estimator import TableEstimator


def describe_estimator(estimator: "TableEstimator") -> dict[str, Any]:
    """Structure, network, likelihood, columns, recipe and evidence of a fitted model.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> model = Regressor().fit(np.arange(20.0).reshape(-1, 1), np.arange(20.0))
        >>> model.describe()["likelihood"]
        'normal'
    """
    model = estimator.model_
    recipe, history = (getattr(estimator, name, None) for name in ("recipe_", "history_"))
    evidence = getattr(estimator, "evidence_", {})
    fit = evidence.get("fit", {})
    labels = getattr(estimator, estimator._labels, None)
    law = model.objective.likelihood
    structure = model.preprocessor.spec.structure
    columns: Any = getattr(estimator, "columns_", None)
    columns = columns or getattr(model.preprocessor, "columns", ())
    return {
        "estimator": type(estimator).__name__,
        "structure": structure,
        "network": model.network_name,
        "network_options": model.network_options,
        "parameters": model.parameters,
        "likelihood": getattr(law, "law", law).name,  # a censored Weibull law is weibull
        "likelihood_options": getattr(law, "law", law).options,
        "inference": estimator.inference,
        "target": estimator.target_names_,
        estimator._labels.rstrip("_"): None if labels is None else labels.tolist(),
        "columns": [
            {"name": column.name, "role": column.role, "note": column.note} for column in columns
        ],
        "rows": fit.get("rows"),
        "metrics": fit.get("metrics"),
        "linear": fit.get("linear"),
        "constant": fit.get("constant"),
        "recipe": None if recipe is None else recipe.sentence(model.network_name),
        "stopped": None if history is None else history.stop_reason,
        "seed": fit.get("seed"),
        "notes": fit.get("notes", []),
        "fingerprint": evidence.get("fingerprint"),
    }
