"""The sections of a report, by what a row is, in the order of the page."""

from ansatz.report.evidence import Structure

# Each module has a function section(evidence); the words tell a waiting user what is computed.
_NUMBERS = {
    "pit": "probability integral transform",
    "vectors": "laws of vectors",
    "directions": "errors of direction",
    "rankings": "first places of rankings",
    "coverage": "coverage of intervals",
    "reliability": "reliability of probabilities",
    "survival_calibration": "calibration of survival",
    "quantile_residuals": "quantile residuals",
    "residual_panels": "residual panels",
    "recalibration": "recalibration",
}
_NETWORK = {
    "grid_filters": "filters and feature maps",
    "grid_robustness": "perturbations and symmetries",
}

CONTENTS: dict[Structure, dict[str, str]] = {
    "table": {
        "what_was_fitted": "what was fitted",
        "scores": "scores beside other models",
        **_NUMBERS,
        "importance": "importance of columns",
        "effects": "effects of columns",
        "subgroups": "subgroups",
        "extrapolation": "extrapolation",
        "worst_rows": "worst-fitted rows",
        "costs": "decisions from costs",
        "data_summary": "the data",
    },
    "grid": {
        "what_was_fitted": "what was fitted",
        "scores": "scores beside other models",
        **_NUMBERS,
        "grid_confusion": "classes taken for others",
        "grid_mistakes": "confident mistakes",
        "grid_cases": "best and worst examples",
        "grid_saliency": "what predictions rest on",
        **_NETWORK,
        "costs": "decisions from costs",
        "grid_examples": "the data",
    },
    "masks": {
        "what_was_fitted": "what was fitted",
        "scores": "scores beside other models",
        "mask_overlays": "masks over their images",
        "mask_classes": "scores of each class",
        "mask_reliability": "reliability of the cells' probabilities",
        "mask_recalibration": "recalibration",
        **_NETWORK,
        "grid_examples": "the data",
    },
}
