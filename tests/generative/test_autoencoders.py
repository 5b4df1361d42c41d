"""Autoencoders: bounds against closed forms, likelihoods of columns and pixels, resuming."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from torch.testing import assert_close

import ansatz
from ansatz import Synthesizer
from ansatz.errors import DataError, UsageError
from ansatz.generative.coding import GridCoding
from ansatz.generative.columns import PIXELS, Column, Columns, Pixels
from ansatz.generative.marginal import Kind
from ansatz.generative.objectives import kl_of_normals, kl_to_standard, log_ratio
from ansatz.generative.training import row_noise, row_uniform
from ansatz.training import Callback

RNG = np.random.default_rng(0)
N = 90
TABLE = pd.DataFrame(
    {
        "size": RNG.gamma(3.0, size=N).round(3),
        "zeros": np.where(RNG.random(N) < 0.4, 0.0, RNG.gamma(2.0, size=N).round(2)),
        "kind": RNG.choice(["a", "b", "c"], N),
        "few": RNG.integers(0, 4, N),
    }
)
IMAGES = (RNG.random((30, 1, 6, 6)) > 0.5).astype(np.uint8) * 255
SMALL = {"latents": 2, "widths": [12]}


def test_the_divergence_of_normals_is_torchs():
    mean, other = torch.randn(2, 50)
    scale, second = torch.rand(2, 50) + 0.2
    p, q = torch.distributions.Normal(mean, scale), torch.distributions.Normal(other, second)
    expected = torch.distributions.kl_divergence(p, q)
    assert_close(kl_of_normals(mean, scale, other, second), expected)
    standard = torch.distributions.kl_divergence(p, torch.distributions.Normal(0.0, 1.0))
    assert_close(kl_to_standard(mean, scale.log()), standard)


def test_importance_weights_are_the_densities():
    noise, mean, scale = torch.randn(7, 3), torch.randn(7, 3), torch.rand(7, 3) + 0.1
    latents = mean + scale * noise
    prior = torch.distributions.Normal(0.0, 1.0).log_prob(latents)
    q = torch.distributions.Normal(mean, scale).log_prob(latents)
    assert_close(log_ratio(latents, noise, scale.log()), (prior - q).sum(1))


def test_noise_of_validation_is_a_function_of_seed_and_row():
    index = torch.tensor([5, 900, 7])
    whole = row_noise(torch.arange(1_000), 4, 3)
    assert_close(row_noise(index, 4, 3), whole[index], rtol=0, atol=0)
    assert (row_noise(index, 4, 4) != whole[index]).all()
    u = row_uniform(torch.arange(20_000), 5, 0).flatten().sort().values
    steps = (torch.arange(len(u)) + 0.5) / len(u)
    assert float((u - steps).abs().max()) < 1.63 / len(u) ** 0.5
    assert abs(torch.corrcoef(whole.T)[0, 1]) < 0.1


@pytest.mark.parametrize("law", PIXELS)
def test_pixels_have_a_density_that_sums_to_one(law):
    """Over the 256 values, of one pixel whose place within a step is averaged."""
    coding = GridCoding((1, 1, 1), 0.0, 255.0, 1.0)
    decoded = Pixels(coding, law)
    raw = 0.3 * torch.randn(1, decoded.outputs).repeat(256, 1)
    codes = torch.arange(256).reshape(-1, 1, 1, 1)
    if law == "bernoulli":
        codes = torch.tensor([0, 255]).reshape(-1, 1, 1, 1)
        raw = raw[:2]
    places = torch.linspace(0.05, 0.95, 10)
    mass = sum(
        (-decoded.loss(raw, codes, torch.full((len(codes), 1), float(at)))).exp().sum() / 10
        for at in places
    )
    if law == "normal":  # the part of it between black and white
        mean, scale = raw[0, 0] + 0.5, raw[0, 1].exp() * 0.5
        inside = torch.distributions.Normal(mean, scale)
        mass = mass / (inside.cdf(torch.tensor(1.0)) - inside.cdf(torch.tensor(0.0)))
    assert float(mass) == pytest.approx(1, abs=2e-3)


def test_a_column_with_many_zeros_has_a_probability_of_zero():
    column = Column.fit(TABLE["zeros"].to_numpy(), Kind(0, 0.01), None)
    assert column.atoms == [0.0] and column.categories == 2 and column.outputs == 4
    few = Column.fit(TABLE["few"].to_numpy(float), Kind(0, 1.0), None)
    assert few.atoms == [0.0, 1.0, 2.0, 3.0] and few.outputs == 4


def test_a_named_likelihood_of_a_column_is_its_density():
    values = TABLE["size"].to_numpy()
    column = Column.fit(values, Kind(), "gamma")
    columns, raw = Columns([column]), 0.2 * torch.randn(N, column.outputs)
    targets = columns.targets(torch.tensor(values).unsqueeze(1), torch.Generator())
    law = column.likelihood.distribution(column._started(raw))
    expected = -(law.log_prob(torch.tensor(values / column.unit)) - math.log(column.unit))
    assert_close(columns.loss(raw, targets.double(), None), expected, rtol=1e-5, atol=1e-5)


def test_a_missing_value_has_weight_zero():
    column = Column.fit(TABLE["zeros"].to_numpy(), Kind(0, 0.01), None)
    codes = torch.tensor([[math.nan], [1.0]])
    columns = Columns([column])
    raw = torch.randn(2, column.outputs, requires_grad=True)
    loss = columns.loss(raw, columns.targets(codes, torch.Generator()).double(), None)
    loss.sum().backward()
    assert loss[0] == 0 and (raw.grad[0] == 0).all() and raw.grad[1].abs().sum() > 0


@pytest.fixture(scope="module")
def vae():
    return Synthesizer("vae", generator_options=SMALL, steps=150).fit(TABLE)


def test_the_bound_grows_with_the_draws(vae):
    means = [vae.score_samples(TABLE, draws=k).mean() for k in (1, 8, 64)]
    assert means[0] < means[1] < means[2]


def test_a_linear_vae_is_below_ppca_and_comes_close():
    """The evidence of PPCA's optimum is its log density; no linear VAE with its noise beats it."""
    x = RNG.normal(size=(150, 1)) @ np.array([[1.0, 0.8, -0.5]])
    x += 0.3 * RNG.normal(size=(150, 3))
    ppca = Synthesizer("ppca", generator_options={"latents": 1}).fit(x).score(x)
    options = {"latents": 1, "widths": [4], "activation": "identity"}
    law = dict.fromkeys(("x1", "x2", "x3"), "normal")
    model = Synthesizer("vae", law, generator_options=options, steps=250, learning_rate=0.02)
    model.fit(x)
    bound = model.score_samples(x, draws=50).mean()
    assert ppca - 0.4 < bound < ppca + 0.15


def test_samples_and_imputations_have_the_values_of_the_fit(vae, tmp_path):
    drawn = vae.sample(50, seed=1)
    assert drawn.dtypes.equals(TABLE.dtypes) and set(drawn["kind"]) <= {"a", "b", "c"}
    assert (drawn["size"] >= TABLE["size"].min()).all() and set(drawn["few"]) <= {0, 1, 2, 3}
    gone = TABLE.copy()
    gone.loc[::3, "kind"] = None
    filled = vae.impute(gone, 3).tables[0]
    assert filled["kind"].notna().all() and filled["size"].equals(TABLE["size"])
    vae.save(tmp_path / "m")
    again = ansatz.load(tmp_path / "m")
    assert_close(again.score_samples(TABLE), vae.score_samples(TABLE), rtol=1e-5, atol=1e-5)
    assert again.sample(9, seed=4).equals(vae.sample(9, seed=4))


@pytest.mark.parametrize("network", ["mlp", "small_resnet"])
def test_images_are_encoded_decoded_and_drawn_given_a_class(network):
    options = SMALL if network == "mlp" else {"latents": 2}
    model = Synthesizer("vae", network=network, generator_options=options, steps=4)
    model.fit(IMAGES, given=np.arange(30) % 3)
    assert model.sample(4, {"given": 1}).shape == (4, 1, 6, 6)
    assert model.sample(4).dtype == np.uint8
    given = np.arange(30) % 3
    latents = model.transform(IMAGES, given)
    assert latents.shape == (30, 2)
    assert model.inverse_transform(latents, given).shape == IMAGES.shape
    assert np.isfinite(model.score_samples(IMAGES, given)).all()
    line = model.interpolate(IMAGES[:2], 5, given=1)
    assert line.shape == (5, 1, 6, 6)


def test_an_autoencoder_reconstructs_and_has_no_density():
    x = RNG.normal(size=(200, 1)) @ np.array([[1.0, 2.0, -1.0]]) + 0.05 * RNG.normal(size=(200, 3))
    options = {"latents": 1, "widths": [16], "activation": "identity", "noise": 0.01}
    model = Synthesizer("autoencoder", generator_options=options, steps=100).fit(x)
    assert np.abs(model.reconstruct(x) - x).mean() < 0.35 * np.abs(x - x.mean(0)).mean()
    with pytest.raises(UsageError, match="autoencoder has no density"):
        model.score_samples(x)


def test_a_run_that_was_stopped_ends_with_the_same_weights(tmp_path):
    TABLE.to_csv(tmp_path / "t.csv", index=False)
    common = {"task": "generate", "generator": "vae", "generator_options": SMALL}
    common |= {"options": {"steps": 30}, "seed": 1}
    whole = ansatz.fit(tmp_path / "t.csv", **common)

    out = {"out": tmp_path / "m", **common}
    with pytest.raises(KeyboardInterrupt):
        ansatz.fit(tmp_path / "t.csv", callbacks=[Stop()], **out)
    resumed = ansatz.fit(tmp_path / "t.csv", resume=True, **out)
    expected = whole.fitted.posterior.tensors()
    for name, value in resumed.fitted.posterior.tensors().items():
        assert_close(value, expected[name], rtol=0, atol=0)


class Stop(Callback):
    """Interrupts a training at its twelfth step."""

    count = 0

    def on_step(self, run, logs):
        self.count += 1
        if self.count == 12:
            raise KeyboardInterrupt


def test_options_that_make_no_sense_are_refused():
    with pytest.raises(UsageError, match="draws > 1 is a bound"):
        Synthesizer("vae", generator_options={"draws": 4, "beta": 2.0}).fit(TABLE)
    with pytest.raises(UsageError, match="levels are categorical, not gamma"):
        Synthesizer("vae", {"kind": "gamma"}, generator_options=SMALL).fit(TABLE)
    with pytest.raises(UsageError, match="no such column of x"):
        Synthesizer("vae", {"colour": "gamma"}, generator_options=SMALL).fit(TABLE)
    with pytest.raises(UsageError, match="the likelihood of pixels is one of"):
        Synthesizer("vae", "gamma", generator_options=SMALL).fit(IMAGES)
    model = Synthesizer("independent").fit(IMAGES)
    with pytest.raises(DataError, match="5"):
        model.score_samples(IMAGES[:, :, :, :5])
