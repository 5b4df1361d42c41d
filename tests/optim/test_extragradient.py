"""Games (M137; E7)."""

import pytest
import torch
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.optim import create


def game(rate=0.1, start=1.0):
    a, b = torch.nn.Parameter(torch.tensor(start)), torch.nn.Parameter(torch.tensor(start))
    rule = create("extragradient", [{"params": [a]}, {"params": [b], "maximize": True}], lr=rate)

    def closure():
        rule.zero_grad()
        loss = a * b
        loss.backward()
        return loss

    return a, b, rule, closure


def norm(a, b):
    return float((a**2 + b**2).detach().sqrt())


def test_on_the_bilinear_game_both_players_at_the_half_point_converge():
    """|z|^2 shrinks by 1 - rate^2 + rate^4 per step: from 1.414 to 0.118 in 500 steps."""
    a, b, rule, closure = game()
    for _ in range(500):
        rule.step(closure)
    predicted = 2**0.5 * (1 - 0.1**2 + 0.1**4) ** 250
    assert norm(a, b) == pytest.approx(predicted, rel=1e-9)
    assert norm(a, b) == pytest.approx(0.118, abs=5e-4)


def test_looking_ahead_in_ones_own_variable_only_diverges():
    """On l = ab the own half step does not enter one's own gradient: plain descent-ascent."""
    a, b = 1.0, 1.0
    for _ in range(500):
        a, b = a - 0.1 * b, b + 0.1 * a
    assert (a**2 + b**2) ** 0.5 == pytest.approx(17.0, abs=0.05)


def test_the_two_halves_can_be_called_one_by_one():
    a, b, rule, closure = game()
    c, d, other, again = game()
    for _ in range(5):
        rule.step(closure)
        again()
        other.extrapolate()
        again()
        other.step()
    assert_close(torch.stack([a, b]), torch.stack([c, d]))


def test_a_step_without_a_look_ahead_is_an_error_and_a_failed_half_leaves_no_trace():
    a, b, rule, closure = game()
    closure()
    with pytest.raises(UsageError, match="needs extrapolate"):
        rule.step()
    calls = []

    def fails():
        calls.append(0)
        if len(calls) == 2:
            raise RuntimeError("no memory")
        return closure()

    with pytest.raises(RuntimeError, match="no memory"):
        rule.step(fails)
    assert a.item() == b.item() == 1.0
    with pytest.raises(UsageError, match="needs extrapolate"):
        rule.step()
