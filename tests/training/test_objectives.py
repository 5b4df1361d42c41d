import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz.data import Batch
from ansatz.data.batch import to_device
from ansatz.likelihoods import Dice, Normal, Poisson, Sum, create
from ansatz.networks import UNet3d
from ansatz.training import Supervised
from ansatz.training.objectives import observed


def test_raw_is_shift_plus_scale_times_output_plus_offset():
    network, x = nn.Linear(2, 2), torch.randn(5, 2)
    shift, scale, offset = torch.randn(2), torch.rand(2), torch.randn(5)
    objective = Supervised(Normal(), shift, scale)
    expected = shift + scale * network(x) + torch.stack([offset, torch.zeros(5)], 1)
    assert_close(objective.raw(network, (x,), offset), expected)


def test_a_poisson_offset_is_an_exposure():
    network, x, exposure = nn.Linear(2, 1), torch.randn(5, 2), torch.rand(5) + 0.5
    objective = Supervised(Poisson())
    plain = objective.likelihood.distribution(objective.raw(network, (x,))).mean
    exposed = objective.likelihood.distribution(objective.raw(network, (x,), exposure.log())).mean
    assert_close(exposed, plain * exposure)


def test_total_and_count_are_the_weighted_sums():
    network, rows = nn.Linear(2, 1), Batch.of(torch.randn(5, 2), torch.randn(5))
    rows = rows._replace(weight=torch.rand(5))
    objective = Supervised(Normal(dispersion=1.0))
    loss = objective(network, rows)
    terms = objective.terms(network, rows)
    assert_close(loss.total, sum(w * t for w, t in zip(rows.weight, terms, strict=True)))
    assert_close(loss.count, rows.weight.sum())


@pytest.mark.parametrize("shape", [(6,), (6, 2)])
def test_an_unobserved_nan_has_no_gradient(shape):
    outputs = 2 if len(shape) == 1 else 4
    network, y = nn.Linear(3, outputs), torch.randn(shape)
    weight = torch.ones(shape)
    y[2], weight[2] = torch.nan, 0.0
    wide = len(shape) == 2
    shift = torch.zeros(2, 2) if wide else torch.zeros(2)
    objective = Supervised(Normal(), shift, torch.ones_like(shift))
    objective(network, Batch.of(torch.randn(6, 3), y, weight)).total.backward()
    assert network.weight.grad.isfinite().all()


def test_what_is_observed_is_left_alone():
    y, codes = torch.randn(4), torch.tensor([2, 1, 0, 2])
    weight = torch.tensor([1.0, 0.0, 2.0, 0.5])
    assert_close(observed(y, torch.ones(4)), y)
    assert_close(observed(y, weight)[weight > 0], y[weight > 0])
    assert observed(codes, weight).tolist() == [2, 0, 0, 2]


@pytest.mark.parametrize("weight", [torch.ones(4), torch.tensor([1.0, 0.0, 2.0, 0.5])])
def test_shapes_can_be_tried_out_without_memory(weight):
    network, objective = nn.Linear(2, 2).to("meta"), Supervised(Normal()).to("meta")
    rows = Batch.of(torch.zeros(4, 2), torch.zeros(4), weight)
    loss = objective(network, to_device(rows, "meta"))
    assert loss.total.shape == loss.count.shape == () and loss.total.is_meta


@pytest.mark.parametrize(
    "likelihood", [Dice(), Sum({"dice": 1.0, "focal": 1.0})], ids=["dice", "sum"]
)
def test_pixels_without_a_label_change_neither_loss_nor_gradient(likelihood):
    """Weights that reach inside a mask: what lies at a pixel of weight 0 does not matter."""
    x, y = torch.randn(3, 2, 5, 5), torch.randint(2, (3, 5, 5)).double()
    weight = (torch.rand(3, 5, 5) < 0.5).double()
    weight[2] = 0  # an image without a label
    network, objective = nn.Conv2d(2, 1, 1), Supervised(likelihood, axis=1)
    results = []
    for fill in (torch.nan, 0.0, 1.0):
        batch = Batch.of(x, torch.where(weight > 0, y, fill), weight)
        loss = objective(network, batch)
        assert_close(objective.evaluate(network, batch), loss)
        assert loss.count == 2
        (gradient,) = torch.autograd.grad(loss.total, network.weight)
        results.append((loss.total, gradient))
    assert results[0][0].isfinite() and results[0][1].isfinite().all()
    assert_close(results[1], results[0])
    assert_close(results[2], results[0])
    terms = objective.terms(network, batch)
    assert_close(terms[:2].sum(), results[0][0])


def test_a_weight_per_mask_is_that_weight_at_each_of_its_pixels():
    x, y, weight = torch.randn(3, 2, 4, 4), torch.randint(2, (3, 4, 4)), torch.tensor([1.0, 0, 2])
    network, objective = nn.Conv2d(2, 1, 1), Supervised(Dice(), axis=1)
    whole = objective(network, Batch.of(x, y, weight))
    pixels = objective(network, Batch.of(x, y, weight.reshape(3, 1, 1).expand(3, 4, 4)))
    assert_close(pixels, whole)


@pytest.mark.parametrize("name", ["dice", "sum", "bernoulli"])
def test_a_volume_is_trained_on_one_annotated_slice(name):
    """M236: voxels without a label change neither loss nor gradient of the 3-D U-Net."""
    network = UNet3d(1, 1, depth=1, width=2).eval()
    likelihood = create(name) if name == "bernoulli" else create(name, axes=3)
    objective = Supervised(likelihood, axis=1)
    x, weight = torch.randn(1, 1, 4, 6, 5), torch.zeros(1, 4, 6, 5)
    weight[:, 1] = 1
    y = torch.where(weight > 0, (x[:, 0] > 0).double(), torch.nan)
    found = []
    for target in (y, y.nan_to_num(0.0), y.nan_to_num(1.0)):
        loss = objective(network, Batch.of(x, target, weight))
        mean = loss.total / loss.count
        found.append((mean, *torch.autograd.grad(mean, list(network.parameters()))))
    assert all(t.isfinite().all() for t in found[0])
    assert_close(found[1], found[0])
    assert_close(found[2], found[0])
    # The annotated slice alone gives the same loss.
    raw = objective.raw(network, (x,))[:, 1:2]
    pixels = likelihood.loss(raw, y[:, 1:2]).mean()
    assert_close(found[0][0], pixels)
