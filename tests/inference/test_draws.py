"""A posterior of weight draws is the mixture of networks with these weights."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from ansatz import Classifier, Regressor, Segmenter
from ansatz.errors import ModelError, UsageError
from ansatz.inference.draws import DrawsPosterior, rebuild_draws, thin
from ansatz.inference.weights import WeightVector, at_weights

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
IMAGES = RNG.normal(size=(12, 8, 8)).astype(np.float32)
QUICK = {"epochs": 1, "inference": "point"}
SMALL = {"network": "unet", "network_options": {"width": 4, "depth": 1}}
FITS = {
    "normal": (Regressor("normal", widths=(4,), **QUICK), X, X[:, 0]),
    "two counts": (Regressor("poisson", widths=(4,), **QUICK), X, RNG.poisson(2, (40, 2))),
    "classes": (Classifier(widths=(4,), **QUICK), X, np.arange(40) % 3),
    "images": (Classifier(network="small_resnet", **QUICK), IMAGES, np.arange(12) % 2),
    "masks": (Segmenter(**SMALL, **QUICK), IMAGES, (IMAGES > 0).astype(int)),
}
every_fit = pytest.mark.parametrize("name", FITS)


@pytest.fixture(scope="module")
def drawn():
    found = {}

    def make(name):
        if name not in found:
            estimator, rows, y = FITS[name]
            model = estimator.fit(rows, y).model_
            trained = model.posterior.trained
            centre = WeightVector(trained).vector
            noise = torch.randn(3, len(centre), generator=torch.Generator().manual_seed(0))
            draws = (centre + 0.1 * noise).float()
            options = model.posterior.options
            found[name] = (
                DrawsPosterior("point", model.structure, model.encoder, trained, draws, options),
                estimator.read_again(rows, y).rows,
            )
        return found[name]

    return make


def raw_of(posterior, trained, rows):
    found = posterior.structure.raws(
        [trained], posterior.encoder, rows, None, notes=[], options=posterior.options
    )
    return torch.cat([raw for each in found for raw in each])


@every_fit
def test_it_is_the_mixture_of_networks_with_these_weights(name, drawn):
    posterior, rows = drawn(name)
    mixed = posterior.predictive(rows).distribution
    y = mixed.sample((), torch.Generator().manual_seed(0))
    parts = []
    for draw in posterior.draws:
        trained = at_weights(posterior.trained, draw)
        parts.append(trained.likelihood.distribution(raw_of(posterior, trained, rows)).log_prob(y))
    expected = torch.stack(parts).logsumexp(0) - np.log(3)
    assert_close(mixed.log_prob(y), expected, rtol=1e-4, atol=1e-5)


@every_fit
def test_components_are_the_parts_of_the_mixture(name, drawn):
    posterior, rows = drawn(name)
    mixed = posterior.predictive(rows).distribution
    y = mixed.sample((), torch.Generator().manual_seed(0))
    parts = posterior.components(rows)
    assert sum(share for share, _ in parts) == pytest.approx(1)
    each = torch.stack([part.distribution.log_prob(y) + np.log(share) for share, part in parts])
    assert_close(mixed.log_prob(y), each.logsumexp(0), rtol=1e-4, atol=1e-5)


@every_fit
def test_a_record_and_tensors_make_it_again(name, drawn):
    posterior, rows = drawn(name)

    def build(tensors):
        trained = at_weights(posterior.trained, torch.zeros_like(posterior.draws[0]))
        own = {n.removeprefix("network."): t for n, t in tensors.items() if n.startswith("network")}
        trained.network.load_state_dict(own)
        return trained

    parts = (posterior.structure, posterior.encoder, posterior.record())
    again = rebuild_draws("point", *parts, posterior.tensors(), build)
    again.options = posterior.options
    assert torch.equal(again.predictive(rows).raw, posterior.predictive(rows).raw)
    with pytest.raises(ModelError, match="expected 3 draws"):
        rebuild_draws("point", *parts, posterior.tensors() | {"draws": torch.zeros(2, 5)}, build)


def test_each_draw_has_its_own_dispersion(drawn):
    posterior, rows = drawn("normal")
    few = [part.distribution.stddev[0].item() for _, part in posterior.components(rows)]
    assert posterior.weights.of_likelihood == 1 and len(set(few)) == 3


def test_a_graph_of_many_draws_is_refused(drawn):
    posterior, _ = drawn("normal")
    many = posterior.draws[:1].repeat(51, 1)
    wide = DrawsPosterior("point", posterior.structure, posterior.encoder, posterior.trained, many)
    assert len(posterior.composition(torch.float64).members) == 3
    with pytest.raises(UsageError, match="50 draws at most, this model has 51"):
        wide.composition(torch.float64)


def test_draws_of_another_network_are_refused(drawn):
    posterior, _ = drawn("normal")
    with pytest.raises(ModelError, match=r"draws should be \(S, 22\)"):
        DrawsPosterior(
            "point", posterior.structure, posterior.encoder, posterior.trained, torch.zeros(2, 3)
        )


def test_draws_beyond_the_limit_are_thinned_evenly():
    draws = torch.arange(10.0).reshape(10, 1)
    kept, note = thin(draws, most=4 * draws.element_size())
    assert kept.squeeze().tolist() == [0, 3, 6, 9] and note.startswith("4 of 10 draws")
    assert thin(draws) == (draws, None)
