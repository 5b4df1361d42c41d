"""The trainer with torch's DataLoader, torch's losses and functions."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    Sampler,
    TensorDataset,
    WeightedRandomSampler,
)

from ansatz.data import Batch, TensorSource
from ansatz.errors import UsageError
from ansatz.likelihoods import Normal, Poisson
from ansatz.training import GradientStep, LoaderSource, Loss, Supervised, Trainer
from ansatz.training.torch_losses import as_objective

X = torch.randn(23, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
Y = X.sum(1, keepdim=True)


class Noisy(Dataset):
    """Rows with noise of torch's global generator, as an augmentation draws it."""

    def __len__(self):
        return len(X)

    def __getitem__(self, row):
        return X[row] + 0.1 * torch.randn(3), Y[row]


class Shuffled(Sampler):
    """An order of its own, which nobody can seed."""

    def __iter__(self):
        return iter(torch.randperm(len(X)).tolist())

    def __len__(self):
        return len(X)


def loaders():
    rows = TensorDataset(X, Y)
    return {
        "in order": DataLoader(rows, batch_size=4),
        "shuffled": DataLoader(rows, batch_size=4, shuffle=True),
        "weighted": DataLoader(
            rows, 4, sampler=WeightedRandomSampler(torch.linspace(0.1, 1, 23), 23)
        ),
        "augmented": DataLoader(Noisy(), batch_size=4, shuffle=True, drop_last=True),
        "with a generator": DataLoader(rows, 4, shuffle=True, generator=torch.Generator()),
    }


def train(loader, steps, objective=None, **options):
    torch.manual_seed(0)
    network = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.05)
    step = GradientStep(network, objective or nn.MSELoss(), optimizer)
    history = Trainer(steps=steps, progress=0, **options).fit(step, loader)
    return network, history


@pytest.mark.parametrize("name", loaders())
def test_a_run_that_is_resumed_within_an_epoch_has_the_same_weights(name, tmp_path):
    whole, history = train(loaders()[name], 15)
    train(loaders()[name], 8, checkpoint=tmp_path)
    parts, _ = train(loaders()[name], 15, checkpoint=tmp_path, resume=True)
    assert_close(parts.state_dict(), whole.state_dict(), rtol=0, atol=0)
    assert history.notes == []


def test_epochs_differ_and_repeat():
    source = LoaderSource(loaders()["shuffled"], seed=1)
    orders = [torch.cat([b.target for b in source.batches(epoch)]) for epoch in (0, 1, 0)]
    assert torch.equal(orders[0], orders[2]) and not torch.equal(orders[0], orders[1])
    assert_close(orders[0].sort(0).values, Y.sort(0).values)


def test_batches_that_cannot_be_repeated_are_noted_and_warned_of(tmp_path):
    loader = DataLoader(TensorDataset(X, Y), 4, sampler=Shuffled())
    assert "Shuffled, which has neither" in train(loader, 3)[1].notes[0]
    with pytest.warns(UserWarning, match="a resumed run may see other batches"):
        train(loader, 3, checkpoint=tmp_path)


def test_validation_may_be_a_loader():
    rows = TensorDataset(X, Y)
    network = nn.Linear(3, 1)
    step = GradientStep(network, nn.MSELoss(), torch.optim.Adam(network.parameters(), lr=0.1))
    trainer = Trainer(epochs=30, patience=5, progress=0)
    history = trainer.fit(step, DataLoader(rows, 8, shuffle=True), DataLoader(rows, 10))
    assert history.best_loss == pytest.approx(F.mse_loss(network(X), Y).item(), rel=1e-5)


class Endless(IterableDataset):
    def __iter__(self):
        while True:
            yield X[0], Y[0]


@pytest.mark.parametrize(
    "data, message",
    [
        (DataLoader(Endless(), 2), "this DataLoader has no length"),
        ([1, 2], "or a torch DataLoader, got a list"),
        (DataLoader(X, 4), r"must give \(x, y\).*got a Tensor"),
        (DataLoader([{"x": X[0], "y": Y[0]}], 1), "got a dict.*collate_fn"),
    ],
)
def test_what_the_trainer_cannot_take_is_named(data, message):
    with pytest.raises(UsageError, match=message):
        train(data, 1)


def test_a_collate_function_may_give_batches_with_weights():
    def collate(rows):
        x, y = (torch.stack(part) for part in zip(*rows, strict=True))
        return Batch.of(x, y[:, 0], weight=torch.linspace(0, 1, len(x)))

    loader = DataLoader(TensorDataset(X, Y), 5, collate_fn=collate)
    network, _ = train(loader, 10, Normal(dispersion=1.0))
    assert network.weight.isfinite().all()


def mean_square(network, batch):
    return (network(*batch.inputs) - batch.target).square().mean()


@pytest.mark.parametrize(
    "given",
    [nn.MSELoss(), nn.MSELoss(reduction="none"), F.mse_loss, mean_square],
    ids=["module", "terms", "function", "own"],
)
def test_losses_of_any_kind_give_the_same_steps(given):
    source = TensorSource(Batch.of(X, Y), batch_size=4)
    reference, found = (train(source, 10, each)[0] for each in (mean_square, given))
    assert_close(found.state_dict(), reference.state_dict())


def test_a_sum_is_divided_by_the_rows_and_a_likelihood_may_stand_alone():
    batch = Batch.of(X, Y)
    total, count = as_objective(nn.MSELoss(reduction="sum"))(nn.Identity(), Batch.of(X, 0 * X))
    assert (total, count) == (X.square().sum(), 23)
    assert isinstance(as_objective(Poisson()), Supervised)
    pair = as_objective(lambda network, batch: Loss(torch.tensor(3.0), torch.tensor(2.0)))
    assert pair(nn.Identity(), batch) == (3.0, 2.0)
    likelihood, raw, y = Poisson(), torch.randn(5, 1), torch.arange(5.0)
    assert_close(likelihood(raw, y), likelihood.loss(raw, y))


@pytest.mark.parametrize(
    "given, target, message",
    [
        (nn.MSELoss(), Y[:, 0], r"\(23, 1\) and the targets are \(23,\).*unsqueeze"),
        (lambda network, batch: network(*batch.inputs), Y, r"must give the mean.*shape \(23, 1\)"),
        (lambda network, batch: 3.0, Y, "got float"),
        (lambda network: 3.0, Y, "a function of a network and a batch"),
        ("mse", Y, "a function of a network and a batch"),
    ],
)
def test_a_loss_that_cannot_be_used_is_named(given, target, message):
    with pytest.raises(UsageError, match=message):
        as_objective(given)(nn.Linear(3, 1), Batch.of(X, target))


def test_a_loss_that_is_a_mean_refuses_weights():
    batch = Batch.of(X, Y, weight=torch.linspace(0, 1, 23))
    with pytest.raises(UsageError, match=r"MSELoss takes no weights.*reduction='none'"):
        as_objective(nn.MSELoss())(nn.Linear(3, 1), batch)
