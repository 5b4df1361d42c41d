"""Tests of two linear models of which one contains the other, for a comparison."""

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ansatz.fitting.fit_model import fit_model
from ansatz.fitting.job import Job, take
from ansatz.fitting.replay import Replay
from ansatz.linear import LinearFit, NestedTest, likelihood_ratio_test, wald_test

_INSIDE = 1e-6  # of a column's length: what may be left of it outside of the larger model's columns


class NestedModels(NamedTuple):
    """Two linear models on the same rows, the columns of one among those of the other.

    Args:
        small: the name of the model under the hypothesis.
        large: that of the model with further columns.
        added: the further columns, where the larger model has all columns of the smaller one.
        rows: how many training rows both were fitted to.
        tests: the likelihood ratio, and Wald's test of the further columns.
    """

    small: str
    large: str
    added: list[str]
    rows: int
    tests: list[NestedTest]

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {**self._asdict(), "tests": [test._asdict() for test in self.tests]}

    def lines(self) -> list[str]:
        """The tests in words."""
        columns = f" (without {', '.join(self.added)})" if self.added else ""
        first = f"{self.small} is nested in {self.large}{columns}; on {self.rows} training rows:"
        return [first, *(f"  {test}" for test in self.tests)]


def nested_models(a: Replay, b: Replay) -> NestedModels | None:
    """The tests of two nested linear models; None where neither contains the other.

    Both are maximum-likelihood fits of one target by the same likelihood and link on the same
    training rows, with the same weights and offsets, and the columns of one design matrix are
    linear combinations of those of the other. Where standard errors are robust or clustered, a
    likelihood ratio does not hold, and Wald's test alone is given.
    """
    if not all(_is_exact(each) for each in (a, b)):
        return None
    jobs = [_ordered(each.learn) for each in (a, b)]
    if not _same_rows(*jobs):
        return None
    fits = [_linear_of(each) for each in (a, b)]
    if any(fit is None for fit in fits):
        return None
    first, second = fits
    assert first is not None and second is not None
    if not _same_likelihood(first, second):
        return None
    designs = [_design(each, job) for each, job in zip((a, b), jobs, strict=True)]
    order = (0, 1) if first.parameters < second.parameters else (1, 0)
    (small, large), names = (fits[k] for k in order), [(a, b)[k].name for k in order]
    assert small is not None and large is not None
    if small.parameters >= large.parameters or not _contains(designs[order[1]], designs[order[0]]):
        return None
    if not _varying(small) <= _varying(large):
        return None
    added, tests = _tests(small, large)
    return NestedModels(names[0], names[1], added, len(jobs[0].y), tests) if tests else None


def _is_exact(found: Replay) -> bool:
    """Whether it is a linear model by maximum likelihood, of rows that are known."""
    settings = found.model.task.settings
    solved = found.problem is not None and found.model.task.is_solved(found.job)
    return solved and not settings.get("penalty") and not settings.get("impute")


def _linear_of(found: Replay) -> LinearFit | None:
    """The fit of the one target, made again from the rows where the model was saved."""
    fits = found.model.linear or fit_model(found.model.task, found.learn).linear
    good = len(fits) == 1 and fits[0].likelihood.has_distribution and fits[0].converged
    return fits[0] if good and math.isfinite(fits[0].log_likelihood) else None


def _ordered(job: Job) -> Job:
    return take(job, np.argsort(job.index.numpy(), kind="stable"))


def _same_rows(a: Job, b: Job) -> bool:
    if not torch.equal(a.index, b.index) or a.y.shape != b.y.shape or not torch.equal(a.y, b.y):
        return False
    offsets = [torch.zeros(()) if job.offset is None else job.offset for job in (a, b)]
    return torch.equal(a.weight, b.weight) and torch.equal(*offsets)


def _same_likelihood(a: LinearFit, b: LinearFit) -> bool:
    own = [(fit.likelihood.name, fit.link, fit.outputs, fit.pooled is None) for fit in (a, b)]
    return own[0] == own[1] and repr(a.likelihood.options) == repr(b.likelihood.options)


def _design(found: Replay, job: Job) -> Tensor:
    (x,) = found.model.encoder.inputs(job.rows, notes=[])
    return torch.cat([torch.ones(len(job.y), 1, dtype=torch.float64), x.double()], 1)


def _contains(large: Tensor, small: Tensor) -> bool:
    """Whether every column of the smaller matrix is a combination of those of the larger."""
    large = large / large.norm(dim=0).clamp(min=1e-300)
    small = small / small.norm(dim=0).clamp(min=1e-300)
    rest = small - large @ torch.linalg.lstsq(large, small, driver="gelsd").solution
    return bool((rest.norm(dim=0) <= _INSIDE).all())


def _varying(fit: LinearFit) -> set[int]:
    """The raw numbers that depend on x."""
    return {column for row, column in fit.entries if row > 0}


def _tests(small: LinearFit, large: LinearFit) -> tuple[list[str], list[NestedTest]]:
    known = {small.names[row] for row, _ in small.entries}
    estimated = {large.names[row] for row, _ in large.entries}
    added = [name for name in large.names if name in estimated - known]
    tests = []
    if large.covariance_kind == small.covariance_kind == "model":
        tests.append(likelihood_ratio_test(small, large))
    same = known <= estimated and _varying(small) == _varying(large)
    if same and bool(torch.isfinite(large.covariance).all()):
        tests.append(wald_test(large, added))
    return (added if same else []), tests
