"""Whether higher predicted risks go with earlier events, with standard errors."""

from typing import Any

import numpy as np
import torch

from ansatz.errors import AnsatzError
from ansatz.figures.section import Table
from ansatz.metrics import antolini_c, harrell_c, uno_c
from ansatz.outcomes.report.survival_rows import SurvivalRows
from ansatz.report.discrimination import bootstrap_counts
from ansatz.report.evidence import Evidence

_RESAMPLES, _FEWER = 100, 30  # of up to 3,000 rows, and of more


def concordance_table(evidence: Evidence, rows: SurvivalRows) -> Table:
    """Harrell's, Uno's and Antolini's C with bootstrap standard errors of subjects."""
    measures = _measures(evidence, rows)
    weight = torch.from_numpy(rows.weight)
    resamples = _RESAMPLES if len(weight) <= 3_000 else _FEWER
    table: list[list[str | float]] = []
    for name, measure in measures.items():
        try:
            value = float(measure(weight))
            samples = [
                float(measure(weight * torch.from_numpy(counts)))
                for counts in bootstrap_counts(
                    len(weight), resamples, evidence.seed, evidence.group
                )
            ]
        except AnsatzError as error:
            table.append([name, "–", "–", str(error)])
            continue
        low, high = np.nanquantile(samples, [0.025, 0.975])
        error_ = float(np.nanstd(samples))
        table.append([name, f"{value:.3f}", f"{error_:.3f}", f"{low:.3f} to {high:.3f}"])
    unit = "groups" if evidence.group is not None else "subjects"
    return Table(
        ["concordance", "estimate", "SE", "95 % interval"],
        table,
        f"One half is chance, 1 is perfect order. Standard errors: {resamples} bootstrap samples "
        f"of {unit}.",
    )


def _measures(evidence: Evidence, rows: SurvivalRows) -> dict[str, Any]:
    outcome, served = evidence.model.of_times, evidence.predictive()
    time, event = torch.from_numpy(rows.time), torch.from_numpy((rows.cause > 0).astype(np.int64))
    risk = torch.from_numpy(outcome.risk(served))
    entry = None if rows.entry is None else torch.from_numpy(rows.entry)
    found: dict[str, Any] = {"Harrell": lambda w: harrell_c(time, event, risk, w, entry)}
    followed = outcome.followed
    if entry is None and len(followed.time):
        found["Uno"] = lambda w: uno_c(
            time,
            event,
            risk,
            followed.time,
            followed.event,
            tau=followed.horizon,
            weight=w,
            train_weight=followed.weight,
        )
    if entry is None and len(time) <= 5_000:
        times = time[event > 0].unique()
        if len(times) > 200:
            times = times[torch.linspace(0, len(times) - 1, 200).long()]
        curves = torch.from_numpy(outcome.survival(served, times.numpy()))
        found["Antolini"] = lambda w: antolini_c(curves, times, time, event, w)
    return found
