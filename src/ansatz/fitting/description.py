"""A fitted model as plain data, for ``ansatz inspect``."""

from typing import Any

from ansatz.fitting.model import Model


def describe_model(model: Model) -> dict[str, Any]:
    """Structure, network, likelihood, columns, recipe and evidence of a fitted model.

    Args:
        model: fitted.
    """
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
        **({"contains": "the training rows"} if model.posterior.keeps_rows else {}),
    }
