"""The simple generators: exact laws where they have a closed form, tables as they were given."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from torch.testing import assert_close

import ansatz
from ansatz import Synthesizer, generative
from ansatz.errors import DataError, UsageError
from ansatz.generative.coding import TableCoding, load_coding
from ansatz.generative.marginal import Kind, Marginal, lattice
from ansatz.generative.normal_law import NormalLaw, log_probability
from ansatz.generative.ranks import two_sided_rank

RNG = np.random.default_rng(0)
N = 120
Z = RNG.normal(size=(N, 3)) @ np.array([[1.0, 0.8, 0.5], [0, 0.6, 0.4], [0, 0, 0.7]])
TABLE = pd.DataFrame(
    {
        "age": (40 + 10 * Z[:, 0]).round().astype(int),
        "cost": np.where(Z[:, 1] > 0.5, 0.0, np.exp(Z[:, 1]).round(2)),
        "kind": pd.Categorical(np.where(Z[:, 2] > 0, "up", "down")),
        "day": pd.to_datetime("2020-01-01") + pd.to_timedelta((Z[:, 0] * 9).round(), unit="D"),
        "flag": Z[:, 1] > 0,
        "one": "x",
        "id": np.arange(N),
    }
)
SIMPLE = pytest.mark.parametrize("name", ["independent", "copula", "ppca"])


@SIMPLE
def test_samples_have_the_columns_and_types_of_the_fit(name):
    drawn = Synthesizer(name).fit(TABLE).sample(40, seed=1)
    assert list(drawn) == list(TABLE) and drawn.dtypes.equals(TABLE.dtypes)
    assert drawn["age"].between(TABLE["age"].min(), TABLE["age"].max()).all() or name == "ppca"
    assert set(drawn["kind"]) <= {"up", "down"} and (drawn["one"] == "x").all()
    assert (drawn["cost"] == drawn["cost"].round(2)).all() and drawn["id"].is_unique
    assert (drawn["day"] == drawn["day"].dt.normalize()).all()


@SIMPLE
def test_a_saved_model_gives_the_same_densities_and_samples(name, tmp_path):
    model = Synthesizer(name).fit(TABLE)
    model.save(tmp_path / "model")
    again = ansatz.load(tmp_path / "model")
    assert_close(again.score_samples(TABLE), model.score_samples(TABLE), rtol=1e-12, atol=1e-12)
    assert again.sample(5).equals(model.sample(5)) and again.generator == name


def test_ppca_of_plain_numbers_is_the_closed_form():
    """Tipping and Bishop's optimum, with the density of N(mean, W W' + s^2 I) in float64."""
    x = Z * [1.0, 2.0, 3.0] + [1.0, 0.0, -1.0]
    model = Synthesizer("ppca", generator_options={"latents": 1}).fit(x)
    unit = (x - x.mean(0)) / x.std(0)
    values, vectors = np.linalg.eigh(np.cov(unit.T, bias=True))
    noise = values[:2].mean()
    covariance = np.outer(vectors[:, 2], vectors[:, 2]) * (values[2] - noise) + noise * np.eye(3)
    law = torch.distributions.MultivariateNormal(torch.zeros(3), torch.from_numpy(covariance))
    expected = law.log_prob(torch.from_numpy(unit)) - math.log(np.prod(x.std(0)))
    assert_close(model.score_samples(x), expected.numpy(), rtol=1e-7, atol=1e-7)
    latents = model.transform(x)[:, 0]
    assert abs(np.corrcoef(latents, unit @ vectors[:, 2])[0, 1]) == pytest.approx(1, abs=1e-9)


def test_the_copula_finds_the_correlation_behind_levels():
    """Levels of a normal pair with correlation 0.8; jitter that ignores the pair would give 0.5."""
    pair = np.random.default_rng(1).multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 4_000)
    table = pd.DataFrame({"a": np.where(pair[:, 0] > 0, "v", "u"), "b": pair[:, 1]})
    law = Synthesizer("copula").fit(table).model_.posterior.model.law
    assert float(law.covariance[0, 1]) == pytest.approx(0.8, abs=0.05)


def test_imputation_of_a_normal_law_is_its_conditional_law():
    mean, covariance = torch.tensor([1.0, 2.0]), torch.tensor([[1.0, 0.6], [0.6, 2.0]])
    x = torch.tensor([[0.5, math.nan]]).repeat(40_000, 1)
    drawn = NormalLaw(mean, covariance).draw(x, torch.Generator().manual_seed(0))[:, 1]
    centre, variance = 2.0 + 0.6 * (0.5 - 1.0), 2.0 - 0.6**2
    assert abs(drawn.mean() - centre) < 3 * (variance / len(x)) ** 0.5
    assert abs(drawn.var() - variance) < 3 * variance * (2 / len(x)) ** 0.5


def test_the_probability_of_a_box_is_scipys():
    from scipy.stats import multivariate_normal

    covariance = torch.tensor([[1.0, 0.7, 0.2], [0.7, 1.0, 0.4], [0.2, 0.4, 1.0]])
    law, rng = NormalLaw(torch.zeros(3), covariance), torch.Generator().manual_seed(0)
    low = torch.tensor([[-0.5, -math.inf, 0.3]]).repeat(20_000, 1)
    high = torch.tensor([[0.8, 0.4, 0.3]]).repeat(20_000, 1)
    found = log_probability(law, low, high, rng).exp()
    own = covariance[:2, :2] - covariance[:2, 2:] @ covariance[2:, :2]
    centre = covariance[:2, 2] * 0.3
    box = multivariate_normal(centre.numpy(), own.numpy())
    expected = box.cdf([0.8, 0.4], lower_limit=[-0.5, -np.inf])
    expected *= math.exp(-(0.3**2) / 2) / math.sqrt(2 * math.pi)
    assert abs(found.mean() - expected) < 4 * found.std() / len(found) ** 0.5


def test_the_density_of_a_histogram_integrates_to_one():
    values = np.concatenate([np.zeros(60), RNG.gamma(2.0, size=140)])
    law = Marginal.fit(values, np.ones(200), Kind())
    grid = np.linspace(-100, 100, 400_001)
    log_density = law.place(grid, np.full(len(grid), 0.5))[1]
    log_density[grid == 0.0] = -np.inf
    mass = np.exp(log_density).sum() * (grid[1] - grid[0])
    assert law.atoms.tolist() == [0.0] and mass + law.masses[0] == pytest.approx(1, abs=2e-3)


def test_values_come_back_from_their_places():
    values = np.concatenate([np.zeros(60), RNG.integers(1, 400, 140) / 4])
    law = Marginal.fit(values, np.ones(200), Kind(0, lattice(values)))
    u, _ = law.place(values, RNG.uniform(size=200))
    assert lattice(values) == 0.25 and np.array_equal(law.value(u), values)


def test_a_table_comes_back_from_its_codes_and_its_coding_from_json():
    import json

    gaps = TABLE.astype({"age": "Float64", "flag": object}).drop(columns="id")
    gaps.loc[3, ["age", "day", "flag"]] = None
    coding = TableCoding.fit(gaps)
    again = load_coding(json.loads(json.dumps(coding.record())))
    back = again.contents(coding.codes(gaps))
    assert back.astype(str).equals(gaps.astype(str)) or (back.isna() == gaps.isna()).all().all()
    assert back.drop(index=3).astype(str).equals(gaps.drop(index=3).astype(str))


def test_columns_are_drawn_given_others():
    model = Synthesizer("copula", given=["kind"]).fit(TABLE.drop(columns="id"))
    means = [model.sample(300, {"kind": kind}, seed=2)["age"].mean() for kind in ("down", "up")]
    real = TABLE.groupby("kind", observed=True)["age"].mean()
    assert means == pytest.approx(real.tolist(), abs=3.0)
    with pytest.raises(DataError, match="'sideways' was never seen in the fit"):
        model.sample(3, {"kind": "sideways"})
    with pytest.raises(UsageError, match="given needs a value for each of kind"):
        model.sample(3, {"colour": "red"})


def test_draws_of_missing_cells_keep_the_known_ones():
    gone = TABLE.drop(columns="id").copy()
    gone["age"] = gone["age"].astype(float)
    gone.loc[::4, "age"] = np.nan
    model = Synthesizer("copula").fit(gone)
    found = model.impute(gone, 10, seed=3)
    known = gone["age"].notna()
    for table in found.tables:
        assert table["age"].notna().all()
        assert table.loc[known, "age"].tolist() == gone.loc[known, "age"].tolist()
    error = (found.mean()["age"] - TABLE["age"])[~known]
    assert error.std() < 0.8 * TABLE["age"].std()


def test_p_values_of_exchangeable_rows_are_uniform():
    reference, values = torch.randn(999), torch.randn(4_000)
    p = two_sided_rank(values, reference).sort().values
    assert (p - (torch.arange(4_000) + 0.5) / 4_000).abs().max() < 0.08
    assert two_sided_rank(torch.tensor([9.0, -9.0]), reference).tolist() == [0.002, 0.002]


def test_bad_input_is_refused_in_a_line():
    with pytest.raises(DataError, match="there is nothing to model"):
        Synthesizer("copula").fit(pd.DataFrame({"a": [1.0, 1.0], "b": ["u", "u"]}))
    model = Synthesizer("copula").fit(TABLE)
    assert len(model.sample(0)) == 0 and list(model.sample(0)) == list(TABLE)
    with pytest.raises(UsageError, match="whole number >= 0, got -1"):
        model.sample(-1)
    with pytest.raises(UsageError, match="copula has no latents"):
        model.transform(TABLE)
    with pytest.raises(UsageError, match="unknown generator"):
        Synthesizer("copla").fit(TABLE)
    with pytest.raises(UsageError, match="5 latents are too many for 3 columns"):
        Synthesizer("ppca", generator_options={"latents": 5}).fit(Z)
    hidden = TABLE.drop(columns="id").copy().astype(object)
    hidden[:] = None
    with pytest.raises(DataError, match="every value of every row is missing"):
        Synthesizer("copula").fit(TABLE.drop(columns="id")).impute(hidden)


def test_one_row_has_nothing_to_model():
    with pytest.raises(DataError, match="no column varies"):
        Synthesizer("independent").fit(TABLE[:1])


def test_rare_levels_share_a_code():
    names = [f"level {k}" for k in range(600)]
    table = pd.DataFrame({"name": pd.Categorical(names * 2), "x": np.arange(1200) / 7})
    coding = TableCoding.fit(table)
    column = coding.columns[0]
    assert column.kind.levels == 400 and len(column.rest) == 201
    assert set(coding.contents(coding.codes(table))["name"]) <= set(names)


def test_a_registered_generator_is_fitted_by_name():
    class Mine(generative.registry.get("independent")):
        name = "mine"

    generative.register("mine", Mine)
    try:
        assert Synthesizer("mine").fit(TABLE).posterior.label == "mine"
    finally:
        generative.registry.remove("mine")
