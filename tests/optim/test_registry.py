import copy

import pytest
import torch
from torch.testing import assert_close

from ansatz import optim
from ansatz.errors import UsageError


def fit(rule, theta, steps):
    def closure():
        rule.zero_grad()
        loss = ((theta - 1) ** 2).sum()
        if not getattr(rule, "needs_graph", False):
            loss.backward()
        return loss

    for _ in range(steps):
        rule.step(closure)
    return ((theta - 1) ** 2).sum().item()


@pytest.mark.parametrize("name", optim.names())
def test_every_rule_lowers_a_quadratic(name):
    theta = torch.nn.Parameter(torch.tensor([3.0, -2.0]))
    rule = optim.create(name, [theta], lr=0.05)
    assert fit(rule, theta, 30) < 13


@pytest.mark.parametrize("name", optim.names())
def test_every_rule_continues_from_its_state(name):
    theta = torch.nn.Parameter(torch.tensor([3.0, -2.0]))
    rule = optim.create(name, [theta], lr=0.05)
    fit(rule, theta, 3)
    state, kept = copy.deepcopy(rule.state_dict()), theta.detach().clone()
    fit(rule, theta, 4)
    other = torch.nn.Parameter(kept)
    again = optim.create(name, [other], lr=0.05)
    again.load_state_dict(state)
    fit(again, other, 4)
    assert torch.equal(theta, other)


@pytest.mark.parametrize("name", optim.names())
def test_every_rule_is_described(name):
    entry = optim.registry.describe(name)
    assert entry.summary and entry.reference


def test_torchs_classes_are_torchs_own_and_fused_where_they_can_be():
    theta = torch.nn.Parameter(torch.ones(2))
    for name in ("adam", "adamw", "sgd", "adagrad"):
        rule = optim.create(name, [theta], lr=0.1)
        assert type(rule).__module__.startswith("torch.optim") and rule.defaults["fused"]
        assert not optim.create(name, [theta], lr=0.1, fused=False).defaults["fused"]
    assert type(optim.create("lbfgs", [theta])) is torch.optim.LBFGS
    on_meta = torch.nn.Parameter(torch.ones(2, device="meta"))
    assert not optim.create("adamw", [on_meta]).defaults["fused"]


def test_fused_or_not_the_path_is_the_same():
    paths = []
    for fused in (True, False):
        theta = torch.nn.Parameter(torch.tensor([3.0, -2.0]))
        fit(optim.create("adamw", [theta], lr=0.05, fused=fused), theta, 20)
        paths.append(theta.detach())
    assert_close(*paths)


def test_groups_may_hold_generators_and_are_not_changed():
    network = torch.nn.Linear(2, 1)
    groups = [{"params": network.parameters(), "lr": 0.5}]
    rule = optim.create("adamw", groups, lr=0.1)
    assert [p.shape for p in rule.param_groups[0]["params"]] == [(1, 2), (1,)]
    assert rule.param_groups[0]["lr"] == 0.5 and not isinstance(groups[0]["params"], list)
    named = optim.create("sgd", network.named_parameters(), lr=0.1)
    assert named.param_groups[0]["param_names"] == ["weight", "bias"]


def test_a_wrong_name_or_option_is_explained():
    theta = [torch.nn.Parameter(torch.ones(2))]
    with pytest.raises(UsageError, match="Did you mean 'adam"):
        optim.create("adamm", theta)
    with pytest.raises(UsageError, match="learning_rate"):
        optim.create("sgd", theta, learning_rate=0.1)
