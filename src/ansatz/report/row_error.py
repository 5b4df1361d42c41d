"""The standard error of an estimate on the test rows, by their groups or their time."""

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from ansatz.metrics import influence_error
from ansatz.report.evidence import Evidence


def row_error(evidence: Evidence, influence: Tensor, rows: Tensor | None = None) -> float:
    """The standard error of an estimate on the test rows, by their groups or their time.

    Args:
        evidence: of the rows.
        influence: ``(N,)``.
        rows: the numbers of those that it is about; all by default.
    """
    keep = slice(None) if rows is None else rows
    group, time = ordered_codes(evidence, "group"), ordered_codes(evidence, "time")
    if group is not None:
        return influence_error(influence, evidence.weight[keep], group=group[keep])
    if time is not None:
        return influence_error(influence, evidence.weight[keep], time=time[keep])
    return influence_error(influence, evidence.weight[keep])


def ordered_codes(evidence: Evidence, name: Literal["group", "time"]) -> Tensor | None:
    """Group or time of the test rows as ordered codes, ``(N,)``; None without it."""
    values = getattr(evidence, name)
    if values is None:
        return None
    key = f"codes of {name}"
    if key not in evidence.kept:
        import pandas as pd

        codes, _ = pd.factorize(np.asarray(values), sort=True)
        evidence.kept[key] = torch.from_numpy(codes.astype(np.int64))
    found: Tensor = evidence.kept[key]
    return found
