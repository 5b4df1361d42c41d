"""How many grids a report looks at: as many as take a minute of arithmetic and fit in memory."""

import math

import numpy as np
from numpy.typing import NDArray

from ansatz.fitting.job import Job
from ansatz.fitting.model import Model
from ansatz.networks import summary
from ansatz.report.evidence import Evidence

WORK = 3e11  # multiply-adds of the predictions of all examples
NUMBERS = 2**25  # raw numbers of masks that are kept
FEWEST, FEWEST_MASKS = 200, 20  # examples that are evaluated whatever their predictions cost


def sample_rows(model: Model, job: Job, *, seed: int = 0) -> NDArray[np.intp] | None:
    """The rows of a sample, in order; None where all are few enough.

    Args:
        model: fitted.
        job: the test rows.
        seed: of the draw.
    """
    dense = job.target.axis == "element"
    fewest = FEWEST_MASKS if dense else FEWEST
    if len(job.y) <= fewest:
        return None
    most = max(fewest, int(WORK / multiply_adds(model)))
    if dense:
        cells = math.prod(job.target.shape)
        most = min(most, max(1, NUMBERS // (cells * max(job.target.classes or 1, 1))))
    if len(job.y) <= most:
        return None
    chosen = np.random.default_rng(seed).permutation(len(job.y))[:most]
    return np.sort(chosen).astype(np.intp)


def multiply_adds(model: Model) -> int:
    """What the prediction of one example takes; of an ensemble, by all its members."""
    spec, networks = model.encoder.spec, model.posterior.networks
    return max(1, sum(max(1, summary(each.answering, spec).multiply_adds) for each in networks))


def affordable(evidence: Evidence, budget: float, *, least: int, most: int, times: int = 1) -> int:
    """How many examples can be predicted ``times`` times for so many multiply-adds."""
    if "multiply_adds" not in evidence.kept:
        evidence.kept["multiply_adds"] = multiply_adds(evidence.model)
    one: int = evidence.kept["multiply_adds"]
    return max(least, min(most, int(budget / (times * one))))
