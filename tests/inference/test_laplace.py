"""Laplace's approximation against the formula written out, row by row."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from ansatz import Classifier, Regressor
from ansatz.errors import ResourceError, UsageError
from ansatz.inference.curvature import Diagonal, Full, Jacobian, Kronecker, blocks_of
from ansatz.inference.weights import WeightVector

RNG = np.random.default_rng(0)
X = RNG.normal(size=(25, 2))
Y = np.sin(2 * X[:, 0]) + 0.2 * RNG.normal(size=25)
SHAPE = {"inference": "laplace", "widths": (4,), "steps": 300}


@pytest.fixture(scope="module")
def fits():
    def make(kind):
        return {"inference_options": {"curvature": kind}, **SHAPE}

    return {
        **{kind: Regressor("normal", **make(kind)).fit(X, Y) for kind in ("full", "kron", "diag")},
        "classes": Classifier(**make("full")).fit(X, np.digitize(Y, [-0.5, 0.5])),
        "counts": Regressor("poisson", **make("full")).fit(X, np.floor(np.exp(Y))),
    }


def jacobian(posterior, row):
    """d raw / d theta of one row by autograd."""
    trained = posterior.trained
    raw = trained.objective.raw(trained.network.requires_grad_(), (row.unsqueeze(0),)).reshape(-1)
    weights = list(trained.network.parameters())
    rows = [torch.autograd.grad(each, weights, retain_graph=True) for each in raw]
    return raw.detach(), torch.stack([torch.cat([g.reshape(-1) for g in row]) for row in rows])


def precision_of(posterior):
    """1 / (s c)^2 n of every weight, from the recorded prior."""
    model, scales = posterior.trained.network, posterior.state["scales"]
    columns = torch.tensor(posterior.state["columns"])
    first = scales[0] * columns / model.hidden[0].in_features ** 0.5
    parts = [first.expand_as(model.hidden[0].weight), torch.full((4,), scales[0])]
    last = model.output
    parts += [torch.full_like(last.weight, scales[1] / 4**0.5)]
    parts += [torch.full_like(last.bias, scales[1])]
    return torch.cat([p.detach().reshape(-1) for p in parts]) ** -2


@pytest.mark.parametrize("name", ["full", "classes", "counts"])
def test_full_is_the_formula_row_by_row(name, fits):
    posterior = fits[name].model_.posterior
    x = posterior.encoder.inputs(fits["full"].read_again(X, Y).rows, notes=[])[0]
    matrix = torch.diag(precision_of(posterior))
    for row in x:
        raw, slopes = jacobian(posterior, row)
        if name == "full":
            sd = posterior.trained.likelihood.dispersion.value(torch.float64).detach()
            second = torch.eye(1) / sd**2
        elif name == "classes":
            p = torch.softmax(raw, 0)
            second = torch.diag(p) - torch.outer(p, p)
        else:
            second = raw.exp().reshape(1, 1)
        matrix = matrix + slopes.T @ second @ slopes
    covariance = torch.linalg.inv(matrix)
    mean, found = posterior.functional((x[:3],))
    for k in range(3):
        raw, slopes = jacobian(posterior, x[k])
        assert_close(found[k], slopes @ covariance @ slopes.T, rtol=1e-5, atol=1e-9)
        assert_close(mean[k], raw)


def test_the_predictive_variance_is_the_noise_and_the_variance_of_the_mean(fits):
    model = fits["full"].model_
    rows = fits["full"].read_again(X, Y).rows
    served = model.posterior.predictive(rows).distribution
    mean, covariance = model.posterior.functional(model.encoder.inputs(rows, notes=[]))
    sd = model.posterior.trained.likelihood.dispersion.value(torch.float64)
    assert_close(served.mean, mean[:, 0])
    assert_close(served.variance, covariance[:, 0, 0] + sd**2)


def test_blocks_are_exact_for_one_row_of_one_output(fits):
    trained = fits["full"].model_.posterior.trained
    slopes_of = Jacobian(trained)
    _, slopes = slopes_of((torch.randn(1, 2),))
    unit, factor = torch.full((slopes_of.size,), 0.7), torch.ones(1, 1, 1)
    for block in blocks_of(slopes_of):
        unit[block.bias] = 1.3
    kron = Kronecker(slopes_of.size, blocks_of(slopes_of), unit)
    full, diagonal = Full(slopes_of.size), Diagonal(slopes_of.size)
    for each in (kron, full, diagonal):
        each.add(slopes, factor)
    mask = torch.zeros_like(full.matrix)  # what is inside a block
    for block in kron.blocks:
        inside = torch.zeros(slopes_of.size)
        inside[block.weight] = inside[block.bias] = 1
        mask += torch.outer(inside, inside)
    full.matrix *= mask
    precision, scale = 2 / unit**2, torch.tensor(1.5)
    assert_close(kron.log_det(precision, scale), full.log_det(precision, scale))
    for each in (kron, full):
        each.condition(precision, 1.5)
    probe = torch.randn(2, 3, slopes_of.size)
    assert_close(kron.covariance(probe), full.covariance(probe))
    full.matrix = torch.diag(full.matrix.diagonal())
    diagonal.condition(precision, 1.5)
    full.condition(precision, 1.5)
    assert_close(diagonal.covariance(probe), full.covariance(probe))


def test_the_evidence_prefers_a_narrow_prior_for_a_column_of_noise(fits):
    columns = fits["full"].model_.posterior.state["columns"]
    assert columns[1] < columns[0]


def test_uncertainty_grows_away_from_the_rows(fits):
    for kind in ("full", "kron", "diag"):
        near, far = fits[kind].predict_dist(np.array([[0.0, 0.0], [8.0, -8.0]])).variance
        assert far > near


def test_the_last_map_alone_has_its_weights_in_the_covariance():
    model = Regressor("normal", **SHAPE, inference_options={"subset": "last"}).fit(X, Y)
    posterior = model.model_.posterior
    assert posterior.jacobian.size == 5 and len(WeightVector(posterior.trained).sizes) == 5


def test_wrong_kinds_and_sizes_are_refused():
    with pytest.raises(UsageError, match="curvature of laplace is kron, full, diag"):
        Regressor("normal", **SHAPE, inference_options={"curvature": "kfac"}).fit(X, Y)
    with pytest.raises(ResourceError, match="curvature=kron"):
        Full(20_000)
