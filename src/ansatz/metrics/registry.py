"""The metrics by name."""

from ansatz.registry import Registry

registry = Registry(
    "metric",
    {
        "accuracy": "ansatz.metrics.classification:accuracy",
        "auc": "ansatz.metrics.classification:auc",
        "brier": "ansatz.metrics.classification:brier",
        "crps": "ansatz.metrics.crps:crps",
        "ece": "ansatz.metrics.classification:ece",
        "kendall_tau": "ansatz.metrics.ranking:kendall_tau",
        "log_score": "ansatz.metrics.log_score:log_score",
        "mae": "ansatz.metrics.errors:mae",
        "r2": "ansatz.metrics.errors:r2",
        "rmse": "ansatz.metrics.errors:rmse",
        "sample_crps": "ansatz.metrics.crps:sample_crps",
        "top_one_accuracy": "ansatz.metrics.ranking:top_one_accuracy",
    },
)
create = registry.create
names = registry.names
register = registry.register
