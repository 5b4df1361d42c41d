"""Adversarial games: losses against their formulas, fits, models on disk, resuming."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy
from torch.testing import assert_close

import ansatz
from ansatz import Synthesizer
from ansatz.data import Batch
from ansatz.errors import UsageError
from ansatz.generative.gan import Game
from ansatz.training import Callback

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"a": RNG.normal(3, 2, 120).round(2), "kind": RNG.choice(["u", "v"], 120)})
IMAGES = (RNG.random((24, 1, 8, 8)) > 0.5).astype(np.uint8) * 255
SMALL = {"width": 8, "latents": 3}


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([0.6, -1.2]))

    def forward(self, x):
        return (x @ self.w).unsqueeze(1)


def game(loss, penalty=0.0):
    return Game(nn.Linear(2, 2), Linear(), 2, loss, penalty)


def batch(n=7):
    weight = torch.randint(1, 4, (n,)).double()
    return Batch((torch.randn(n, 2),), torch.zeros(n), weight, None, torch.arange(n))


def test_losses_are_cross_entropies():
    """The discriminator is a classifier; the generator exchanges the labels, or the sign."""
    play, rows = game("non_saturating"), batch()
    torch.manual_seed(1)
    found = play.discriminator_loss(rows)
    torch.manual_seed(1)
    drawn, weight = play.drawn(rows), rows.weight / rows.weight.sum()
    one, zero = torch.ones(7), torch.zeros(7)
    real = cross_entropy(play.score(rows.inputs[0], rows), one, weight, reduction="sum")
    fake = cross_entropy(play.score(drawn, rows), zero, weight, reduction="sum")
    assert_close(found, real + fake)
    torch.manual_seed(1)
    expected = cross_entropy(play.score(drawn, rows), one, weight, reduction="sum")
    assert_close(play.generator_loss(rows), expected)
    torch.manual_seed(1)
    assert_close(Game.generator_loss(_with(play, "minimax"), rows), -fake)


def _with(play, loss):
    play.loss = loss
    return play


def test_the_penalty_of_a_linear_discriminator_is_that_of_its_weights():
    rows, square = batch(), 0.6**2 + 1.2**2
    for loss, expected in (
        ("wasserstein", 3 * (math.sqrt(square) - 1) ** 2),
        ("minimax", 3 * square / 2),
    ):
        play = game(loss, 3.0)
        torch.manual_seed(1)
        whole = play.discriminator_loss(rows)
        play.penalty = 0.0
        torch.manual_seed(1)
        penalty = whole - play.discriminator_loss(rows)
        assert_close(penalty, torch.tensor(expected), rtol=1e-9, atol=1e-9)


def test_the_best_discriminator_knows_the_share_of_real_examples():
    """D* = p / (p + q), where the loss is 2 log 2 - 2 JS; a parametric one is above it."""
    p, q = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.2, 0.2, 0.6])
    score = torch.zeros(3, requires_grad=True)
    optimizer = torch.optim.LBFGS([score], max_iter=200, tolerance_grad=1e-14)

    def loss():
        return (p * nn.functional.softplus(-score) + q * nn.functional.softplus(score)).sum()

    def closure():
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    optimizer.step(closure)
    assert_close(score.sigmoid(), p / (p + q), rtol=0, atol=1e-5)
    middle = (p + q) / 2
    shannon = ((p * (p / middle).log()).sum() + (q * (q / middle).log()).sum()) / 2
    assert_close(loss().detach(), 2 * math.log(2) - 2 * shannon)


def test_a_table_is_drawn_with_its_types_saved_and_loaded(tmp_path):
    options = {"loss": "wasserstein", "updates": [2, 1], **SMALL}
    model = Synthesizer("gan", generator_options=options, steps=60, random_state=0).fit(TABLE)
    drawn = model.sample(40, seed=1)
    assert list(drawn.columns) == ["a", "kind"] and set(drawn["kind"]) <= {"u", "v"}
    assert drawn["a"].between(TABLE["a"].min(), TABLE["a"].max()).all()
    model.save(tmp_path / "m")
    pd.testing.assert_frame_equal(ansatz.load(tmp_path / "m").sample(40, seed=1), drawn)
    with pytest.raises(UsageError, match=r"no density.*vae"):
        model.score_samples(TABLE)


@pytest.mark.parametrize("mode", ["alternating", "extragradient"])
def test_images_are_drawn_given_their_class(mode):
    given = pd.DataFrame({"digit": ["one", "two"] * 12})
    options = {"mode": mode, "spectral_norm": True, **SMALL}
    model = Synthesizer("gan", generator_options=options, steps=4, random_state=0)
    drawn = model.fit(IMAGES, given).sample(3, given={"digit": "one"}, seed=0)
    drawn = np.asarray(drawn)
    assert drawn.shape == (3, 1, 8, 8) and drawn.dtype == np.uint8


class Stop(Callback):
    count = 0

    def on_step(self, run, logs):
        self.count += 1
        if self.count == 7:
            raise KeyboardInterrupt


def test_an_interrupted_game_goes_on_with_the_same_bits(tmp_path):
    TABLE.to_csv(tmp_path / "t.csv", index=False)
    how = {"task": "generate", "generator": "gan", "generator_options": SMALL}
    how |= {"options": {"steps": 12, "batch_size": 32}, "seed": 0}
    whole = ansatz.fit(tmp_path / "t.csv", **how)
    with pytest.raises(KeyboardInterrupt):
        ansatz.fit(tmp_path / "t.csv", out=tmp_path / "m", callbacks=[Stop()], **how)
    again = ansatz.fit(tmp_path / "t.csv", out=tmp_path / "m", resume=True, **how)
    expected = whole.fitted.posterior.tensors()
    for name, value in again.fitted.posterior.tensors().items():
        assert_close(value, expected[name], rtol=0, atol=0)


def test_options_that_make_no_sense_are_refused():
    for options, message in (
        ({"loss": "hinge"}, "loss of gan must be one of"),
        ({"gradient_penalty": -1.0}, "0 or more"),
        ({"rate": 0.0}, "rate positive"),
    ):
        with pytest.raises(UsageError, match=message):
            Synthesizer("gan", generator_options=options).fit(TABLE)
