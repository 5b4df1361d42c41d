"""Games: the bilinear one in three modes, exact resume, refusals."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz.data import Batch, TensorSource
from ansatz.errors import NumericalError, UsageError
from ansatz.training import Callback, GameStep, Loss, Player, Trainer


class Bilinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.x, self.y = nn.Parameter(torch.ones(())), nn.Parameter(torch.ones(()))


BATCH = Batch.of(torch.zeros(1, 1), torch.zeros(1))


def bilinear(mode, rate=0.1, **options):
    game = Bilinear()
    players = [
        Player("x", torch.optim.SGD([game.x], lr=rate), lambda g, b: g.x * g.y),
        Player("y", torch.optim.SGD([game.y], lr=rate), lambda g, b: -g.x * g.y),
    ]
    return GameStep(game, nn.Identity(), players, mode=mode, **options)


@pytest.mark.parametrize("mode", ["alternating", "simultaneous", "extragradient"])
def test_the_bilinear_game_follows_its_recursion(mode):
    """x y with steps h: the matrices of the three schemes."""
    step, h, z = bilinear(mode), 0.1, torch.ones(2)
    turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]])
    for _ in range(30):
        step.step(BATCH)
        if mode == "alternating":
            x = z[0] - h * z[1]
            z = torch.stack([x, z[1] + h * x])
        elif mode == "simultaneous":
            z = z + h * turn @ z
        else:
            z = z + h * turn @ (z + h * turn @ z)
    assert_close(torch.stack([step.network.x, step.network.y]).detach(), z)
    radius = float(z.norm() / 2**0.5)
    assert {"alternating": 0.9 < radius < 1.1, "simultaneous": radius > 1.1,
            "extragradient": radius < 0.9}[mode]  # fmt: skip


def test_a_player_may_move_more_often():
    step = bilinear("alternating", updates=(2, 1))
    step.step(BATCH)
    assert_close(step.network.x.item(), 1 - 2 * 0.1)
    assert_close(step.network.y.item(), 1 + 0.1 * 0.8)


class Generator(nn.Module):
    """A shift of noise, and a critic."""

    def __init__(self):
        super().__init__()
        draws = torch.Generator().manual_seed(0)
        self.shift = nn.Parameter(torch.zeros(1))
        self.critic = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
        for p in self.critic.parameters():
            nn.init.normal_(p, 0, 0.5, generator=draws)


class Distance(nn.Module):
    def forward(self, network, batch):
        gap = (network.shift - batch.inputs[0].mean()).abs().sum()
        return Loss(gap * len(batch.index), batch.weight.sum())


def adversarial():
    game, soft = Generator(), nn.functional.softplus

    def critic(game, batch):
        x = batch.inputs[0]
        fake = (torch.randn_like(x) + game.shift).detach()
        return soft(-game.critic(x)).mean() + soft(game.critic(fake)).mean()

    def generator(game, batch):
        return soft(-game.critic(torch.randn_like(batch.inputs[0]) + game.shift)).mean()

    players = [
        Player("discriminator", torch.optim.Adam(game.critic.parameters(), 0.02), critic),
        Player("generator", torch.optim.Adam([game.shift], 0.02), generator),
    ]
    return GameStep(game, Distance(), players)


class Cut(Callback):
    def on_step(self, run, logs):
        if run.number == 17:
            raise RuntimeError("cut")


def test_a_game_that_was_cut_ends_with_the_same_weights(tmp_path):
    x = 2 + torch.randn(100, 1, generator=torch.Generator().manual_seed(1))
    source = TensorSource(Batch.of(x, x[:, 0]), batch_size=32)
    options = {"steps": 40, "progress": 0, "average": "ema"}
    whole, cut, resumed = adversarial(), adversarial(), adversarial()
    Trainer(**options).fit(whole, source, source)
    folder = {"checkpoint": tmp_path / "run", "checkpoint_every": 7}
    with pytest.raises(RuntimeError, match="cut"):
        Trainer(callbacks=[Cut()], **options, **folder).fit(cut, source, source)
    Trainer(resume=True, **options, **folder).fit(resumed, source, source)
    for key, value in whole.network.state_dict().items():
        assert torch.equal(resumed.network.state_dict()[key], value), key


def test_a_game_finds_the_shift_of_the_data():
    torch.manual_seed(0)
    x = 1 + torch.randn(400, 1)
    step = adversarial()
    source = TensorSource(Batch.of(x, x[:, 0]), batch_size=100)
    history = Trainer(steps=600, progress=0, average="ema").fit(step, source, source)
    assert history.best_loss < 0.3


def test_a_player_that_is_not_finite_is_named_and_nothing_moves():
    step = bilinear("alternating")
    with torch.no_grad():
        step.network.y.fill_(torch.inf)
    with pytest.raises(NumericalError, match="the loss of the x is inf at step 1"):
        step.step(BATCH)
    assert step.network.x.item() == 1.0


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: bilinear("in turn"), "alternating, simultaneous, extragradient"),
        (lambda: bilinear("alternating", updates=(1,)), "one number >= 1 for each of its 2"),
        (lambda: bilinear("simultaneous", updates=(2, 1)), "move once per step"),
    ],
)
def test_wrong_settings_are_named(call, message):
    with pytest.raises(UsageError, match=message):
        call()
    game = Bilinear()
    player = Player("x", torch.optim.SGD([game.x], lr=1.0), lambda g, b: g.x)
    with pytest.raises(UsageError, match="move the same weight"):
        GameStep(game, nn.Identity(), [player, player])
