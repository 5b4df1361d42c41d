"""The linear model of triples: how often each entity answers a relation."""

import torch

from ansatz.fitting.contracts.structure import Structure
from ansatz.fitting.job import Job
from ansatz.fitting.model import PointPosterior, Trained
from ansatz.fitting.recipe import Recipe
from ansatz.likelihoods import Likelihood
from ansatz.networks import TailFrequencies
from ansatz.training import Supervised


def frequencies(structure: Structure, likelihood: Likelihood, job: Job) -> PointPosterior:
    r"""Counts the answers of each relation in both directions.

    .. math:: p(t \mid r) = \frac{n_{rt} + p_t}{n_r + 1}, \qquad
        p_t = \frac{n_t + 1/2}{n + E/2}

    the relation's own frequencies and, with the weight of one query, those of all relations.
    """
    encoder = structure.encoder(job.rows, job.weight.numpy(), Recipe(), {})
    codes = encoder.inputs(job.rows, notes=[])[0]
    entities, relations = encoder.spec.cardinalities
    counts = torch.zeros(relations, entities, dtype=torch.float64)
    counts.index_put_((codes[:, 1], job.y.long()), job.weight.double(), accumulate=True)
    overall = counts.sum(0) + 0.5
    overall /= overall.sum()
    network = TailFrequencies(encoder.spec, entities).double()
    with torch.no_grad():
        network.scores.weight.copy_(((counts + overall) / (counts.sum(1, True) + 1)).log())
    likelihood.outputs(job.target)
    zeros = torch.zeros(entities, dtype=torch.float64)
    objective = Supervised(likelihood, zeros, torch.ones_like(zeros))
    trained = Trained(network, objective, "tail_frequencies", {}, encoder.dtype)
    return PointPosterior(structure, encoder, trained)
