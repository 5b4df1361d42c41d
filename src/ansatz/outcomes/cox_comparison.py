"""Compares an automatic likelihood of times with the linear Cox model."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ansatz.errors import AnsatzError
from ansatz.fitting.contracts.structure import Structure
from ansatz.fitting.job import Job, thinned
from ansatz.likelihoods import Cox, Likelihood
from ansatz.metrics import harrell_c
from ansatz.outcomes.survival_times import times_and_causes
from ansatz.spec import TargetSpec

RESAMPLES = 100
MOST_ROWS = 5_000  # of the bootstrap, and of the Cox model
_LEAST = 0.002  # below this a difference of concordance says nothing


class CoxComparison(NamedTuple):
    """Concordance of a model and of the linear Cox model on the same held-out rows."""

    model: float
    cox: float
    error: float  # standard error of the difference

    @property
    def note(self) -> str:
        """A sentence where Cox orders the rows better; empty otherwise."""
        gain = self.cox - self.model
        if not gain > _LEAST:
            return ""
        return (
            f"linear cox orders the test rows better: c_index {self.cox:.3f} against "
            f"{self.model:.3f} (difference {gain:.3f}, standard error {self.error:.3f}). To take "
            "it: --likelihood cox --network linear."
        )


def compare_with_cox(
    structure: Structure, likelihood: Likelihood, risk: Tensor, learn: Job, test: Job, seed: int
) -> CoxComparison | None:
    """Fits the linear Cox model to the training rows and compares its order of the test rows.

    Args:
        structure: gives the linear model.
        likelihood: in whose form the outcomes are.
        risk: ``(N,)``, of the test rows by the model.
        learn: training rows.
        test: test rows.
        seed: of the bootstrap.

    Returns:
        None where outcomes are intervals, or Cox cannot be fitted.
    """
    learn, known = thinned(learn, MOST_ROWS), times_and_causes(likelihood, test.y.numpy())
    train = _as_cox(likelihood, learn)
    if known is None or train is None:
        return None
    try:
        solved = structure.linear(Cox(), train, null=False)
    except AnsatzError:  # no event, no column
        return None
    if solved is None:
        return None
    other = solved.posterior.predictive(test.rows, test.offset, notes=[]).raw[:, 0]
    time, event = (torch.from_numpy(np.ascontiguousarray(part)) for part in known)
    entry = test.y[:, 2]
    late = entry if bool((entry > min(0.0, float(time.min()))).any()) else None

    def difference(weight: Tensor) -> tuple[float, float]:
        both = (harrell_c(time, event, score, weight, late) for score in (risk, other))
        return tuple(map(float, both))  # type: ignore[return-value]

    model, cox = difference(test.weight)
    rng, count = np.random.default_rng(seed), len(time)
    gaps = []
    for _ in range(RESAMPLES if count <= MOST_ROWS and cox > model else 0):
        drawn = np.bincount(rng.integers(0, count, count), minlength=count)
        ours, theirs = difference(test.weight * torch.from_numpy(drawn))
        gaps.append(theirs - ours)
    return CoxComparison(model, cox, float(np.nanstd(gaps)) if gaps else float("nan"))


def _as_cox(likelihood: Likelihood, job: Job) -> Job | None:
    """The job with outcomes (time, event, entry)."""
    known = times_and_causes(likelihood, job.y.numpy())
    if known is None:
        return None
    y = np.stack([known[0], np.minimum(known[1], 1), job.y[:, 2].numpy()], axis=1)
    return job._replace(y=torch.from_numpy(y), target=TargetSpec(event=(3,)))
