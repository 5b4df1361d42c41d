import copy

import pytest
import torch
from tests.training.step_contract import StepContract
from torch import nn
from torch.testing import assert_close

from ansatz import likelihoods
from ansatz.data import Batch
from ansatz.errors import NumericalError, UsageError
from ansatz.likelihoods import Cox, Normal, survival_outcome
from ansatz.networks import MLP
from ansatz.spec import TargetSpec
from ansatz.training import AnalyticStep, Supervised
from ansatz.training.fast.likelihood import OutputGradient, closed_form

ACTIVATIONS = "identity relu leaky_relu tanh sigmoid silu gelu softplus elu selu".split()
LIKELIHOODS = {
    "normal": {},
    "normal-constant": {"dispersion": "constant"},
    "normal-known": {"dispersion": 0.5},
    "normal-nll": {"beta": 0.0},
    "normal-beta": {"beta": 0.3},
    "student_t": {},
    "poisson": {},
    "gamma": {},
    "bernoulli": {},
    "categorical": {},
    "mse": {},
    "mae": {},
}


CLOSED = "normal normal-known normal-nll normal-beta poisson bernoulli categorical mse".split()


def problem(name="normal", *, rows=24, targets=(), seed=0):
    """A likelihood that has seen outcomes it can produce, and a batch of them."""
    generator = torch.Generator().manual_seed(seed)
    likelihood = likelihoods.create(name.split("-")[0], **LIKELIHOODS[name])
    x = torch.randn(rows, 5, generator=generator)
    signal = x[:, 0] if not targets else x[:, : targets[0]]
    y = {
        "poisson": lambda: torch.poisson(signal.exp(), generator=generator),
        "gamma": lambda: (signal + 0.1 * x[:, 1]).exp(),
        "bernoulli": lambda: (signal > 0).to(x.dtype),
        "categorical": lambda: (signal > 0).long() + (signal > 1).long(),
    }.get(name, lambda: 3 + 2 * signal + torch.randn(signal.shape, generator=generator))()
    weight = torch.rand(rows, generator=generator) + 0.5
    spec = TargetSpec(targets, classes=3 if name == "categorical" else 0)
    outputs = likelihood.outputs(spec) * (targets[0] if targets else 1)
    likelihood.observe(y, weight)
    objective = Supervised(likelihood, *likelihood.start(y, weight))
    return objective, outputs, Batch.of(x, y, weight)


def network(outputs, **options):
    generator = torch.Generator().manual_seed(1)
    return MLP(5, outputs, widths=(7, 6), output_scale=1.0, generator=generator, **options)


class Autograd:
    """The same training by autograd and torch's own AdamW."""

    def __init__(self, network, objective, *, rate=0.01, decay=0.05, clip=None, schedule=None):
        self.network, self.objective, self.clip = network, objective, clip
        self.rate, self.schedule, self.number = rate, schedule, 0
        every = [*network.parameters(), *objective.parameters()]
        groups = [
            {"params": [p for p in every if p.ndim == 2], "weight_decay": decay},
            {"params": [p for p in every if p.ndim != 2], "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.99), eps=1e-8)

    def step(self, batch, forward=None):
        total, count = self.objective(forward or self.network, batch)
        self.optimizer.zero_grad()
        (total / count).backward()
        parameters = [p for g in self.optimizer.param_groups for p in g["params"]]
        if self.clip is not None:
            nn.utils.clip_grad_norm_(parameters, self.clip)
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate * (self.schedule(self.number) if self.schedule else 1)
        self.optimizer.step()
        self.number += 1
        return (total / count).item()


def compare(objective, net, batch, *, steps=50, clip=None, schedule=None, tolerance=1e-12):
    """Loss after loss and weight after weight, autograd against the analytic step."""
    slow = Autograd(copy.deepcopy(net), copy.deepcopy(objective), clip=clip, schedule=schedule)
    fast = AnalyticStep(
        net, objective, learning_rate=0.01, weight_decay=0.05, clip=clip, schedule=schedule
    )
    batches = [batch, Batch(*(None if f is None else _rows(f) for f in batch))]
    for number in range(steps):
        expected = slow.step(batches[number % 2])
        assert fast.step(batches[number % 2])["loss"] == pytest.approx(expected, rel=1e-11)
    for a, b in zip(net.parameters(), slow.network.parameters(), strict=True):
        assert_close(a, b, rtol=tolerance, atol=tolerance)
    for a, b in zip(objective.parameters(), slow.objective.parameters(), strict=True):
        assert_close(a, b, rtol=tolerance, atol=tolerance)


def _rows(field, count=9):
    return tuple(x[:count] for x in field) if isinstance(field, tuple) else field[:count]


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_equals_autograd_with_adamw_for_every_activation(activation):
    objective, outputs, batch = problem()
    compare(objective, network(outputs, activation=activation), batch)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_equals_autograd_with_adamw_for_every_likelihood(name):
    objective, outputs, batch = problem(name)
    compare(objective, network(outputs), batch)


@pytest.mark.parametrize("name", ["normal", "normal-constant", "student_t"])
def test_equals_autograd_with_several_targets(name):
    objective, outputs, batch = problem(name, targets=(3,))
    compare(objective, network(outputs), batch)


@pytest.mark.parametrize("name", ["poisson", "gamma"])
def test_equals_autograd_with_an_offset(name):
    objective, outputs, batch = problem(name)
    compare(objective, network(outputs), batch._replace(offset=torch.randn(24)))


@pytest.mark.parametrize("clip", [1e-3, 0.5, 1e9])
def test_equals_autograd_with_clipping_and_a_schedule(clip):
    objective, outputs, batch = problem()
    compare(objective, network(outputs), batch, clip=clip, schedule=lambda k: 1 / (1 + k))


@pytest.mark.parametrize("options", [{"activation_options": {"negative_slope": 0.3}}, {}])
def test_the_options_of_an_activation_count(options):
    objective, outputs, batch = problem()
    compare(objective, network(outputs, activation="leaky_relu", **options), batch)


def test_gelu_has_its_tanh_form_too():
    objective, outputs, batch = problem()
    net = network(outputs, activation="relu")
    net.activation = nn.GELU(approximate="tanh")
    compare(objective, net, batch)


def test_a_linear_model_is_a_network_without_hidden_layers():
    objective, outputs, batch = problem()
    compare(objective, MLP(5, outputs, widths=()), batch)


def test_equals_autograd_with_the_same_dropout_masks():
    objective, outputs, batch = problem()
    net = network(outputs, dropout=0.4)
    slow = Autograd(copy.deepcopy(net), copy.deepcopy(objective))
    fast = AnalyticStep(net, objective, learning_rate=0.01, weight_decay=0.05)
    for _ in range(50):
        loss = fast.step(batch)["loss"]
        masks = [torch.from_numpy(mask.copy()) for mask in fast._passes._room.masks]

        def forward(x, masks=masks):
            for layer, mask in zip(slow.network.hidden, masks, strict=True):
                x = slow.network.activation(layer(x)) * mask
            return slow.network.output(x)

        assert loss == pytest.approx(slow.step(batch, forward), rel=1e-11)
    for a, b in zip(net.parameters(), slow.network.parameters(), strict=True):
        assert_close(a, b, rtol=1e-12, atol=1e-12)


def test_dropout_masks_have_the_asked_rate_and_mean_one():
    objective, outputs, batch = problem(rows=4000)
    step = AnalyticStep(network(outputs, dropout=0.3), objective)
    step.step(batch)
    mask = torch.from_numpy(step._passes._room.coins)  # 52,000 coins
    dropped = (mask == 0).double().mean()
    assert abs(dropped - 0.3) < 5 * (0.3 * 0.7 / len(mask)) ** 0.5
    assert mask.max().item() == pytest.approx(1 / 0.7, rel=2e-5)  # 16 bits


def test_the_same_seed_gives_the_same_weights_to_the_last_bit():
    def train():
        objective, outputs, batch = problem()
        seed = torch.Generator().manual_seed(3)
        step = AnalyticStep(network(outputs, dropout=0.2), objective, generator=seed)
        for _ in range(20):
            step.step(batch)
        return step.optimizer.flat

    assert torch.equal(train(), train())


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("size, tolerance", [(1.0, 1e-11), (30.0, 1e-9)])  # e^-20 = 2e-9
def test_the_closed_form_is_the_gradient_of_the_training_loss(name, size, tolerance):
    """Up to what torch's softplus drops of log(1 + e^-x) beyond x = 20."""
    objective, outputs, batch = problem(name, rows=200)
    likelihood = objective.likelihood
    raw = (size * torch.randn(200, outputs)).requires_grad_()
    terms = likelihood.training_loss(raw, batch.target)
    (expected,) = torch.autograd.grad(terms.sum(), raw)
    loss, gradient = closed_form(likelihood)(raw.detach().numpy(), batch.target.numpy())
    assert_close(torch.from_numpy(loss), terms.detach(), rtol=tolerance, atol=tolerance)
    assert_close(torch.from_numpy(gradient), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["normal-constant"])
def test_the_closed_form_has_a_column_for_a_learned_spread(name):
    objective, outputs, batch = problem(name, rows=200)
    likelihood, raw = objective.likelihood, torch.randn(200, outputs, requires_grad=True)
    terms = likelihood.training_loss(raw, batch.target)
    expected, own = torch.autograd.grad(terms.sum(), [raw, likelihood.dispersion.constant])
    loss, gradient = closed_form(likelihood)(raw.detach().numpy(), batch.target.numpy())
    assert_close(torch.from_numpy(loss), terms.detach(), rtol=1e-11, atol=1e-11)
    assert_close(torch.from_numpy(gradient[:, :1].copy()), expected, rtol=1e-11, atol=1e-11)
    assert gradient[:, 1].sum() == pytest.approx(own.item(), rel=1e-11)


@pytest.mark.parametrize("name", CLOSED)
def test_the_closed_form_stays_in_float32_and_finite_at_the_extremes(name):
    objective, outputs, batch = problem(name)
    likelihood = objective.likelihood.float()
    y = batch.target.float() if batch.target.is_floating_point() else batch.target
    for value in (-50.0, 50.0):
        raw = torch.full((24, outputs), value, dtype=torch.float32)
        loss, gradient = closed_form(likelihood)(raw.numpy(), y.numpy())
        assert loss.dtype == gradient.dtype == raw.numpy().dtype
        expected = likelihood.training_loss(raw, y)
        assert_close(torch.from_numpy(loss), expected, rtol=1e-5, atol=1e-5)
        assert bool(torch.from_numpy(gradient).isfinite().all())


def test_float32_follows_float64():
    objective, outputs, batch = problem()
    net = network(outputs)
    single = AnalyticStep(copy.deepcopy(net).float(), copy.deepcopy(objective).float())
    double = AnalyticStep(net, objective)
    short = Batch(
        (batch.inputs[0].float(),), batch.target.float(), batch.weight.float(), None, batch.index
    )
    for _ in range(20):
        a, b = single.step(short)["loss"], double.step(batch)["loss"]
        assert a == pytest.approx(b, rel=1e-4)


@pytest.mark.parametrize("name", ["normal", "gamma"])  # by a closed form, by autograd
def test_a_float32_network_takes_outcomes_and_shifts_in_float64(name):
    objective, outputs, batch = problem(name)
    net = network(outputs)
    mixed = AnalyticStep(copy.deepcopy(net).float(), copy.deepcopy(objective))
    double = AnalyticStep(net, objective)
    for _ in range(10):
        a = mixed.step(batch._replace(inputs=(batch.inputs[0].float(),)))["loss"]
        assert a == pytest.approx(double.step(batch)["loss"], rel=1e-4)
    assert mixed.optimizer.flat.dtype == torch.float32


def test_unobserved_outcomes_may_hold_anything():
    objective, outputs, batch = problem()
    net = network(outputs)
    target, weight = batch.target.clone(), batch.weight.clone()
    target[3], weight[3] = torch.nan, 0.0
    keep = torch.arange(24) != 3
    a = AnalyticStep(copy.deepcopy(net), copy.deepcopy(objective))
    b = AnalyticStep(net, objective)
    a.step(batch._replace(target=target, weight=weight))
    b.step(Batch((batch.inputs[0][keep],), target[keep], weight[keep], None, batch.index[keep]))
    assert_close(a.optimizer.flat, b.optimizer.flat, rtol=1e-12, atol=1e-12)


def test_a_batch_without_an_observed_outcome_changes_nothing():
    objective, outputs, batch = problem()
    step = AnalyticStep(network(outputs), objective)
    before = step.optimizer.flat.clone()
    assert step.step(batch._replace(weight=torch.zeros(24)))["count"] == 0
    assert torch.equal(step.optimizer.flat, before) and step.number == 1


def test_a_gradient_that_overflows_is_refused_while_the_loss_is_finite():
    objective, outputs, batch = problem("mse")
    step = AnalyticStep(network(outputs, activation="identity"), objective)
    with torch.no_grad():
        for layer in [*step.network.hidden, step.network.output]:
            layer.weight.mul_(0)
        step.network.output.weight.fill_(1e200)
        step.network.hidden[1].weight.fill_(1e200)  # 1e200 * 1e200 on the way back only
    before = step.optimizer.flat.clone()
    with pytest.raises(NumericalError, match=r"step 1.*gradient of .*hidden.*not applied"):
        step.step(batch._replace(inputs=(torch.ones(24, 5),)))
    assert torch.equal(step.optimizer.flat, before)


def test_weights_that_explode_are_named_by_their_layer():
    objective, outputs, batch = problem()
    step = AnalyticStep(network(outputs, activation="identity"), objective)
    with torch.no_grad():
        step.network.hidden[1].weight.fill_(1e308)
    with pytest.raises(NumericalError, match=r"hidden\.1.*rows \d+(, \d+){4} of the batch"):
        step.step(batch)


def test_outcomes_of_another_shape_are_never_broadcast():
    objective, outputs, batch = problem()
    step = AnalyticStep(network(outputs), objective)
    with pytest.raises(ValueError, match=r"y \(24,\), got y \(24, 1\)"):
        step.step(batch._replace(target=batch.target.unsqueeze(1)))


def test_parameters_stay_the_networks_own():
    """Loading a state, moving to another dtype: the step follows the network."""
    objective, outputs, batch = problem()
    net = network(outputs)
    parameters = list(net.parameters())
    step = AnalyticStep(net, objective)
    assert all(p is q for p, q in zip(parameters, net.parameters(), strict=True))
    other = network(outputs, activation="relu")
    net.load_state_dict(other.state_dict())
    assert torch.equal(step.optimizer.values[0], other.hidden[0].weight)
    for parameter in net.parameters():
        parameter.data = parameter.data.clone()  # as network.to(...) does
    before = net.hidden[0].weight.clone()
    step.step(batch)
    assert not torch.equal(net.hidden[0].weight, before)


@pytest.mark.parametrize(
    "options", [{"norm": "batch"}, {"connection": "residual"}, {"activation": "softsign"}]
)
def test_what_it_cannot_train_is_refused_with_advice(options):
    objective, outputs, _ = problem()
    net = network(outputs, **options)
    assert not AnalyticStep.supports(net, objective)
    with pytest.raises(UsageError, match="Use GradientStep"):
        AnalyticStep(net, objective)


def test_a_changed_objective_is_not_supported():
    class Doubled(Supervised):
        def forward(self, network, batch):
            loss = super().forward(network, batch)
            return loss._replace(total=2 * loss.total)

    assert AnalyticStep.supports(network(2), Supervised(Normal()))
    assert not AnalyticStep.supports(network(2), Doubled(Normal()))
    assert not AnalyticStep.supports(nn.Linear(5, 2), Supervised(Normal()))
    assert not AnalyticStep.supports(network(2).to("meta"), Supervised(Normal()))


class TestContract(StepContract):
    def make_step(self, dropout=0.0):
        generator = torch.Generator().manual_seed(2)
        net = MLP(3, 2, widths=(8,), dropout=dropout, generator=generator)
        objective = Supervised(Normal(beta=0.0))
        return AnalyticStep(net, objective, learning_rate=0.02)


def test_rows_that_are_coupled_have_the_gradient_of_autograd():
    """Cox's loss belongs to all rows together: the step equals autograd through the objective."""
    x = torch.randn(40, 3)
    y = survival_outcome(torch.rand(40) + 0.1, (torch.rand(40) < 0.7).double())
    batch = Batch.of(x, y, weight=torch.rand(40) + 0.5)
    network, likelihood = torch.nn.Linear(3, 1), Cox()
    objective = Supervised(likelihood, torch.zeros(1), torch.full((1,), 2.0))
    loss = objective(network, batch)
    (expected,) = torch.autograd.grad(loss.total / loss.count, network.weight)
    output = network(x).detach()
    mean, count, gradient = OutputGradient(objective)(output.numpy(), batch)
    assert_close(torch.tensor(mean), (loss.total / loss.count).detach())
    assert_close(torch.from_numpy(gradient).T @ x, expected)
    assert count == float(batch.weight.sum())
