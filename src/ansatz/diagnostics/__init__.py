"""Checks of predictions on held-out rows: calibration, residuals, intervals, attributions.

Each name is imported when it is first used, from the module that reports take it from.
"""

import importlib
from typing import Any

_HOMES = {
    "attributions": "structures.grid.report.attributions",
    "confusion_section": "structures.grid.report.confusion",
    "covered": "report.interval_coverage",
    "decompose": "report.corp",
    "dispersion": "report.residual_tests",
    "draw_pit": "report.pit",
    "intervals": "report.interval_coverage",
    "normal_scores": "report.normal_scores",
    "pit_histogram": "report.pit",
    "quantile_residuals": "report.residual_tests",
    "reliability": "report.corp",
    "robustness": "structures.grid.report.robustness",
    "robustness_section": "structures.grid.report.robustness",
    "simulate": "report.residual_tests",
    "transform": "report.transform",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ansatz.diagnostics' has no attribute {name!r}")
    return getattr(importlib.import_module(f"ansatz.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
