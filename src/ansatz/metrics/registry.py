"""The metrics by name."""

from ansatz.registry import Registry

registry = Registry(
    "metric",
    {
        "accuracy": "ansatz.metrics.classification:accuracy",
        "antolini_c": "ansatz.metrics.concordance:antolini_c",
        "auc": "ansatz.metrics.classification:auc",
        "boundary_f1": "ansatz.metrics.boundary:boundary_f1",
        "neighbour_precision": "ansatz.metrics.retrieval:neighbour_precision",
        "panoptic_quality": "ansatz.metrics.instances:panoptic_quality",
        "brier": "ansatz.metrics.classification:brier",
        "brier_skill": "ansatz.metrics.survival:brier_skill",
        "brier_survival": "ansatz.metrics.survival:brier_survival",
        "confusion_matrix": "ansatz.metrics.labels:confusion_matrix",
        "crps": "ansatz.metrics.scoring_rules:crps",
        "d_calibration": "ansatz.metrics.survival:d_calibration",
        "dice": "ansatz.metrics.segmentation:dice",
        "ece": "ansatz.metrics.classification:ece",
        "energy_score": "ansatz.metrics.scoring_rules:energy_score",
        "f1": "ansatz.metrics.labels:f1",
        "harrell_c": "ansatz.metrics.concordance:harrell_c",
        "integrated_brier": "ansatz.metrics.survival:integrated_brier",
        "iou": "ansatz.metrics.segmentation:iou",
        "kendall_tau": "ansatz.metrics.ranking:kendall_tau",
        "log_score": "ansatz.metrics.scoring_rules:log_score",
        "mae": "ansatz.metrics.errors:mae",
        "mean_angular_error": "ansatz.metrics.errors:mean_angular_error",
        "mse": "ansatz.metrics.errors:mse",
        "pinball": "ansatz.metrics.scoring_rules:pinball",
        "pixel_error": "ansatz.metrics.segmentation:pixel_error",
        "precision": "ansatz.metrics.labels:precision",
        "r2": "ansatz.metrics.errors:r2",
        "recall": "ansatz.metrics.labels:recall",
        "rmse": "ansatz.metrics.errors:rmse",
        "roc_auc": "ansatz.metrics.classification:roc_auc",
        "sample_circular_crps": "ansatz.metrics.errors:sample_circular_crps",
        "sample_crps": "ansatz.metrics.scoring_rules:sample_crps",
        "sample_energy_score": "ansatz.metrics.scoring_rules:sample_energy_score",
        "top_one_accuracy": "ansatz.metrics.ranking:top_one_accuracy",
        "uno_c": "ansatz.metrics.concordance:uno_c",
    },
)
create = registry.create
names = registry.names
register = registry.register
