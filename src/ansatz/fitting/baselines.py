"""The two models that a network must beat: of the same law, linear in x, and constant."""

import torch

from ansatz.fitting.contracts.inference import Predictive
from ansatz.fitting.job import Job
from ansatz.fitting.training import start_objective
from ansatz.likelihoods import Cox, Likelihood


def constant_predictive(law: Likelihood, learn: Job, test: Job) -> Predictive:
    """The maximum-likelihood constant model of ``learn``, at each row of ``test``.

    Outcomes on the elements of an example all get the shares of the labels in ``learn``.
    """
    if test.target.axis != "row":
        objective = start_objective(law, learn)
        assert objective.shift is not None
        shift = objective.shift.double()
        raw = shift.expand(*test.y.shape, shift.numel()).clone().detach()
        return Predictive(objective.likelihood, raw)
    objective = start_objective(law, learn, torch.float64)
    assert objective.shift is not None
    raw = objective.attach(torch.zeros(len(test.y), objective.shift.numel()).double(), test.offset)
    if isinstance(objective.likelihood, Cox):
        objective.likelihood.set_baseline(torch.zeros(len(learn.y)), learn.y, learn.weight)
    return Predictive(objective.likelihood, raw.detach())
