"""The generator: pixels, tables, conditions, missing parts, its saved state."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch.testing import assert_close

from ansatz import generative
from ansatz.errors import UsageError
from ansatz.fitting.contracts.structure import Facts
from ansatz.fitting.recipe import default_recipe
from ansatz.fitting.task import TrainingPlan
from ansatz.generative.coding import GridCoding, TableCoding
from ansatz.generative.contract import Examples
from ansatz.generative.diffusion.space import ColumnSpace, PixelSpace
from ansatz.spec import TargetSpec
from ansatz.training import Callback

SMALL = {"network": {"width": 48, "blocks": 2}}


@pytest.fixture(autouse=True)
def single_precision():
    torch.set_default_dtype(torch.float32)


def plan(steps, callbacks=(), **trainer):
    recipe = default_recipe(Facts(1_000.0, None, TargetSpec()))
    changed = {"steps": steps, "batch_size": 128, "learning_rate": 3e-3, "patience": 50}
    options = {"progress": 0, **trainer}
    return TrainingPlan(
        None, "mlp", {}, recipe.model_copy(update=changed), 0, {"callbacks": callbacks}, options
    )


def table(rows=600):
    draw = np.random.default_rng(0)
    a = draw.normal(size=rows)
    level = np.where(a + 0.3 * draw.normal(size=rows) > 0, "u", "v")
    return pd.DataFrame({"a": a, "b": 2 * a + 0.3 * draw.normal(size=rows), "c": level})


def examples(frame, given=None):
    coding = TableCoding.fit(frame)
    found = Examples(coding, coding.codes(frame), torch.ones(len(frame)))
    if given is None:
        return found
    own = TableCoding.fit(given)
    return found._replace(given_coding=own, given=own.codes(given))


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def test_a_table_is_drawn_with_its_dependence_and_its_missing_cells_are_filled():
    data = examples(table())
    model = generative.create("diffusion", **SMALL)
    model.fit(data, None, plan(350))
    drawn = model.sample(600, None, rng())
    a, b, c = drawn.T
    assert drawn.shape == (600, 3) and set(c.tolist()) == {0.0, 1.0}
    assert torch.corrcoef(torch.stack([a, b]))[0, 1] > 0.9
    assert ((a > 0) == (c == data.codes[data.codes[:, 0] > 1, 2][0])).double().mean() > 0.8
    holes = data.codes[:200].clone()
    holes[:, 1] = torch.nan
    filled = model.impute(holes, None, rng())
    assert torch.equal(filled[:, [0, 2]], holes[:, [0, 2]])
    assert (filled[:, 1] - data.codes[:200, 1]).square().mean().sqrt() < 1.5  # a sd of 2
    assert not model.has_density
    with pytest.raises(UsageError, match="no density of tables with levels"):
        model.log_density(data.codes, None, rng())


def test_numbers_have_a_density_bound_and_guidance_moves_along_the_condition():
    frame = table()[["a", "c"]]
    data = examples(frame[["a"]], frame[["c"]])
    model = generative.create("diffusion", **SMALL)
    model.fit(data, None, plan(350))
    mean = {}
    for w in (0.0, 1.0, 3.0):
        model.sampling(guidance=w, steps=12, sampler="ddim")
        mean[w] = [
            model.sample(400, torch.full((400, 1), level), rng()).mean().item()
            for level in (0.0, 1.0)
        ]
    gap = {w: abs(first - second) for w, (first, second) in mean.items()}
    assert gap[0.0] < 0.4 and 1.0 < gap[1.0] < gap[3.0]
    found = model.log_density(data.codes[:300], data.given[:300], rng(), draws=2)
    usual = torch.distributions.Normal(0.0, 1.0).log_prob(data.codes[:300, 0]).mean()
    assert -3 < found.value.mean() - usual < 1.2 and (found.error > 0).any()


def test_pixels_stay_on_their_lattice_and_a_saved_model_draws_the_same():
    images = torch.randint(0, 2, (64, 1, 8, 8), generator=rng()).to(torch.uint8) * 255
    coding = GridCoding.fit(images)
    options = {"widths": (16,), "groups": 4, "head_dim": 8}
    model = generative.create("diffusion", network=options, masked=True)
    model.fit(Examples(coding, images, torch.ones(64)), None, plan(3))
    drawn = model.sample(5, None, rng(1))
    assert drawn.shape == (5, 1, 8, 8) and drawn.dtype == torch.uint8
    again = generative.create("diffusion", **model.options)
    again.load(coding, None, model.record(), model.tensors())
    assert torch.equal(again.sample(5, None, rng(1)), drawn)
    first, second = (each.log_density(images[:6], None, rng()).value for each in (model, again))
    assert_close(first, second)
    holes = images[:4].float()
    holes[:, :, :4] = torch.nan
    assert torch.equal(again.impute(holes, None, rng())[:, :, 4:], holes[:, :, 4:])
    plain = generative.create("diffusion", network=options)
    plain.fit(Examples(coding, images, torch.ones(64)), None, plan(1))
    with pytest.raises(UsageError, match="was not trained for missing parts"):
        plain.impute(holes, None, rng())


def test_spaces_return_what_they_took():
    frame = table(300)
    data = examples(frame)
    space = ColumnSpace.fit(data)
    x, _ = space.into(data.codes, rng())
    assert x.shape == (300, 4) and space.owner.tolist() == [0, 1, 2, 2]
    assert_close(space.back(x), data.codes, rtol=1e-3, atol=1e-2)
    images = torch.arange(256, dtype=torch.uint8).reshape(4, 1, 8, 8)
    pixels = PixelSpace(GridCoding.fit(images))
    assert torch.equal(pixels.back(pixels.into(images, rng())[0]), images)


class Cut(Callback):
    def on_step(self, run, logs):
        if run.number == 11:
            raise RuntimeError("cut")


def test_a_training_that_was_cut_ends_with_the_same_weights(tmp_path):
    data = examples(table(300))
    whole = generative.create("diffusion", **SMALL)
    whole.fit(data, None, plan(30))
    cut = generative.create("diffusion", **SMALL)
    folder = {"checkpoint": tmp_path / "run", "checkpoint_every": 5}
    with pytest.raises(RuntimeError, match="cut"):  # in the middle of an epoch
        cut.fit(data, None, plan(30, callbacks=[Cut()], **folder))
    resumed = generative.create("diffusion", **SMALL)
    resumed.fit(data, None, plan(30, resume=True, **folder))
    for key, value in whole.tensors().items():
        assert torch.equal(resumed.tensors()[key], value), key


def test_wrong_settings_are_named():
    with pytest.raises(UsageError, match="predict of diffusion must be one of"):
        generative.create("diffusion", predict="x0")
    model = generative.create("diffusion", **SMALL)
    model.fit(examples(table(100)), None, plan(1))
    with pytest.raises(UsageError, match="guidance=2 needs a condition"):
        model.sampling(guidance=2.0)
    with pytest.raises(UsageError, match=r"unknown sampler 'dddim'\. Did you mean 'ddim'"):
        model.sampling(sampler="dddim")
    with pytest.raises(UsageError, match="copula draws in one step: steps belongs to diffusion"):
        generative.create("copula").sampling(steps=3)
