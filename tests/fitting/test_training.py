import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz import Regressor, structures
from ansatz.data import Batch
from ansatz.data.batch import take_rows
from ansatz.errors import DataError
from ansatz.fitting.job import take
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.task import TrainingPlan
from ansatz.fitting.training import (
    build_network,
    build_objective,
    build_step,
    choose_steps,
    train,
    update,
)
from ansatz.likelihoods import Bernoulli, Normal, Poisson, StudentT
from ansatz.spec import InputSpec
from ansatz.training import AnalyticStep, GradientStep


def rows(count=40, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 2, generator=generator)
    return Batch.of(x, x[:, 0] + 0.3 * torch.randn(count, generator=generator))


def job_of(batch):
    return Regressor().read(batch.inputs[0].numpy(), batch.target.numpy())


def plan_of(recipe):
    options = {"widths": (8,)}
    return TrainingPlan(structures.create("vector"), "mlp", options, recipe, 0, {}, {"progress": 0})


def fit(batch, valid, recipe, likelihood=None):
    """A network trained on rows of which those with the numbers ``valid`` are held out."""
    job = job_of(batch)._replace(valid=np.asarray(valid, dtype=np.intp))
    return train(plan_of(recipe), job, likelihood or Normal(dispersion="constant"))


def batch_of(job):
    return Batch.of(torch.from_numpy(job.rows.values), job.y)


SMALL = Recipe(
    widths=(8,), batch_size=0, steps=60, schedule="constant", holdout=0.0, dtype="float64"
)


def test_the_constant_model_is_the_start():
    """Before the first step the network predicts the maximum-likelihood constant."""
    batch = rows()
    objective = build_objective(Normal(), batch)
    assert objective.shift[0] == pytest.approx(batch.target.mean())
    counts = Batch.of(torch.zeros(3, 1), torch.tensor([0.0, 2.0, 4.0]), torch.tensor([1.0, 1, 2]))
    assert build_objective(Poisson(), counts).shift.exp() == pytest.approx(10 / 4)


@pytest.mark.parametrize("likelihood", [Poisson(), Bernoulli(), Normal(dispersion="constant")])
def test_beside_an_offset_the_start_is_the_best_constant(likelihood):
    generator = torch.Generator().manual_seed(0)
    offset = torch.randn(200, generator=generator)
    y = (torch.rand(200, generator=generator) < offset.sigmoid()).double()
    batch = Batch.of(torch.zeros(200, 1), y, None, offset)
    objective = build_objective(likelihood, batch)

    def loss(move):
        raw = (objective.shift[:1] + move + offset).unsqueeze(-1)
        return objective.likelihood.loss(raw, y).sum().item()

    best = loss(0.0)
    assert all(best < loss(move) for move in (-0.1, -0.01, 0.01, 0.1))


def test_a_network_of_student_t_can_find_heavy_tails():
    """The means vary more than the noise: the constant model sees no tails, the network must."""
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.uniform(-1, 1, size=(400, 2)))
    y = 5 * x[:, 0] + torch.from_numpy(0.3 * rng.standard_t(3, size=400))
    batch = Batch.of(x, y)
    constant = build_objective(StudentT(dispersion="constant"), batch).likelihood
    assert constant.freedom(torch.zeros(1, 1)) > 100
    recipe = SMALL.model_copy(update={"steps": 400, "learning_rate": 0.02})
    fitted = fit(batch, [], recipe, StudentT(dispersion="constant"))
    assert 2 < fitted.trained.likelihood.freedom(torch.zeros(1, 1)) < 6


def test_outcomes_outside_the_support_are_refused_before_training():
    with pytest.raises(DataError, match=r"-1"):
        build_objective(Poisson(), Batch.of(torch.zeros(2, 1), torch.tensor([1.0, -1.0])))


def test_a_plain_network_is_trained_by_hand_and_others_by_autograd():
    objective = build_objective(Normal(), rows())
    spec = InputSpec.of(2)
    plain = build_network("mlp", {}, inputs=spec, outputs=2, dtype=torch.float64, seed=0)
    assert isinstance(build_step(plain, objective, SMALL, seed=0), AnalyticStep)
    other = nn.Sequential(nn.Linear(2, 4), nn.LayerNorm(4), nn.Linear(4, 2))
    step = build_step(other, objective, SMALL, seed=0)
    assert isinstance(step, GradientStep)
    decays = {p.ndim: g["weight_decay"] for g in step.optimizer.param_groups for p in g["params"]}
    assert decays == {2: SMALL.weight_decay, 1: 0.0}


def test_taking_rows_takes_every_field():
    batch = rows()._replace(offset=torch.arange(40.0))
    some = take_rows(batch, torch.tensor([3, 1]))
    assert_close(some.inputs[0], batch.inputs[0][[3, 1]])
    assert some.offset.tolist() == [3.0, 1.0] and some.index.tolist() == [3, 1]


def test_validation_rows_are_never_trained_on():
    batch = rows()
    valid = np.arange(30, 40)
    recipe = SMALL.model_copy(update={"evaluations": 1})
    first = fit(batch, valid, recipe).trained
    spoiled = batch.target.clone()
    spoiled[valid] += 1e-3  # the same stopping, other outcomes
    second = fit(batch._replace(target=spoiled), valid, recipe).trained
    for a, b in zip(first.network.parameters(), second.network.parameters(), strict=True):
        assert torch.equal(a, b)


def test_the_best_weights_by_validation_are_kept():
    batch = rows()
    valid = np.arange(20, 40)
    recipe = SMALL.model_copy(update={"steps": 400, "learning_rate": 0.1, "evaluations": 40})
    fitted, plan = fit(batch, valid, recipe), plan_of(recipe)
    held_out = plan.structure.batch(take(job_of(batch), valid), fitted.encoder, recipe)
    loss = fitted.step.evaluate(held_out)
    assert float(loss.total / loss.count) == pytest.approx(fitted.history.best_loss, rel=1e-9)


def test_the_number_of_steps_is_the_one_with_the_least_out_of_fold_loss():
    """By hand: follow each fold's path, add up the losses outside, take the least."""
    batch = rows(30)
    job, folds = job_of(batch), torch.arange(30) % 3
    recipe = SMALL.model_copy(update={"steps": 40, "evaluations": 8, "learning_rate": 0.05})

    def begin(part):
        objective = build_objective(Normal(dispersion="constant"), batch_of(part))
        spec = InputSpec.of(2)
        net = build_network(
            "mlp", {"widths": (8,)}, inputs=spec, outputs=1, dtype=torch.float64, seed=0
        )
        return build_step(net, objective, recipe, seed=0)

    totals = np.zeros(8)
    for k in range(3):
        step = begin(take(job, np.flatnonzero(folds != k)))
        for place in range(8):
            for _ in range(5):
                step.step(take_rows(batch, torch.nonzero(folds != k)[:, 0]))
            totals[place] += float(
                step.evaluate(take_rows(batch, torch.nonzero(folds == k)[:, 0])).total
            )
    assert choose_steps(begin, job, batch, folds, recipe) == 5 * (int(totals.argmin()) + 1)


def test_rows_of_no_fold_are_never_left_out():
    batch, seen = rows(30), []
    folds = torch.where(torch.arange(30) < 24, -1, 0)
    recipe = SMALL.model_copy(update={"steps": 2, "evaluations": 1})

    def begin(part):
        seen.append(part.index.tolist())
        objective = build_objective(Normal(dispersion="constant"), batch_of(part))
        return build_step(nn.Linear(2, 1), objective, recipe, seed=0)

    choose_steps(begin, job_of(batch), batch, folds, recipe)
    assert seen == [list(range(24))]


def test_an_update_is_one_pass_at_a_constant_rate():
    recipe = Recipe(widths=(8,), batch_size=16, holdout=0.0)
    fitted = update(plan_of(recipe), job_of(rows(40)), Normal())
    assert fitted.history.steps == 3 and fitted.step.rate == recipe.learning_rate


def test_a_row_is_never_normalised_alone():
    rows = np.random.default_rng(0).normal(size=(17, 2))
    options = {"network_options": {"norm": "batch"}, "batch_size": 16, "holdout": 0.0, "epochs": 1}
    model = Regressor(network="mlp", widths=(4,), **options).fit(rows, rows[:, 0])
    assert np.isfinite(model.predict(rows)).all()
