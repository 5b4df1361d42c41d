import copy
import pickle

import numpy as np
import pytest
import statsmodels.api as sm
import torch

from ansatz import Classifier, Regressor, load
from ansatz.errors import UsageError
from ansatz.layers.link import LINKS
from ansatz.likelihoods import create
from ansatz.linear import fit_linear
from ansatz.linear.linked import Linked

N = 250
links, families = sm.families.links, sm.families
ROWS = [  # likelihood, link, statsmodels' family
    ("poisson", "identity", families.Poisson(links.Identity())),
    ("poisson", "sqrt", families.Poisson(links.Sqrt())),
    ("gamma", "inverse", families.Gamma(links.InversePower())),
    ("gamma", "identity", families.Gamma(links.Identity())),
    ("inverse_gaussian", "inverse_squared", families.InverseGaussian(links.InverseSquared())),
    ("normal", "log", families.Gaussian(links.Log())),
    ("normal", "inverse", families.Gaussian(links.InversePower())),
    ("bernoulli", "probit", families.Binomial(links.Probit())),
    ("bernoulli", "cloglog", families.Binomial(links.CLogLog())),
    ("bernoulli", "loglog", families.Binomial(links.LogLog())),
    ("bernoulli", "cauchit", families.Binomial(links.Cauchy())),
    ("bernoulli", "log", families.Binomial(links.Log())),
    ("bernoulli", "identity", families.Binomial(links.Identity())),
]
pytestmark = pytest.mark.filterwarnings("ignore::statsmodels.tools.sm_exceptions.DomainWarning")


def outcomes(name):
    rng = np.random.default_rng(8)
    x = rng.uniform(size=(N, 2))
    mean, share = 1 + x @ [2.0, 1.0], 0.2 + x @ [0.3, 0.2]
    return x, {
        "poisson": lambda: rng.poisson(mean).astype(float),
        "gamma": lambda: rng.gamma(3, mean / 3),
        "inverse_gaussian": lambda: rng.wald(mean, 3 * mean),
        "normal": lambda: mean + 0.2 * rng.normal(size=N),
        "bernoulli": lambda: (rng.random(N) < share).astype(float),
    }[name]()


def made(name):
    return create(name, **({} if name in ("poisson", "bernoulli") else {"dispersion": "constant"}))


@pytest.mark.parametrize("name, link, family", ROWS, ids=[f"{a}-{b}" for a, b, _ in ROWS])
def test_fits_are_those_of_statsmodels(name, link, family):
    x, y = outcomes(name)
    fit = fit_linear(Linked(made(name), link), torch.tensor(x), torch.tensor(y))
    start = 1.001 * fit.coefficients[:, 0].numpy()  # from its own start some leave their domain
    expected = sm.GLM(y, sm.add_constant(x), family=family).fit(start, tol=1e-13, maxiter=300)
    np.testing.assert_allclose(fit.coefficients[:, 0], expected.params, rtol=1e-6)
    np.testing.assert_allclose(fit.standard_errors[:, 0], expected.bse, rtol=1e-6)
    assert fit.residual_deviance == pytest.approx(expected.deviance, rel=1e-8)
    assert fit.link == link


@pytest.mark.parametrize("own", LINKS)
def test_links_are_inverted(own):
    raw = {"log": torch.linspace(-3, 3, 9), "logit": torch.linspace(-3, 3, 9)}.get(own)
    raw = torch.linspace(0.1, 3, 9) if raw is None else raw
    for link in LINKS[own].values():
        torch.testing.assert_close(link.to_raw(link.from_raw(raw.double())), raw.double())


def test_a_linked_likelihood_can_be_copied_and_pickled():
    linked = Linked(made("bernoulli"), "probit")
    raw, y = torch.randn(5, 1), torch.tensor([0.0, 1, 1, 0, 1])
    for again in (copy.deepcopy(linked), pickle.loads(pickle.dumps(linked))):
        torch.testing.assert_close(again.loss(raw, y), linked.loss(raw, y))


def test_a_probit_model_predicts_and_survives_saving(tmp_path):
    x, y = outcomes("bernoulli")
    design = sm.add_constant(x)
    expected = sm.GLM(y, design, family=families.Binomial(links.Probit())).fit(tol=1e-13)
    model = Classifier("bernoulli", network="linear", link="probit").fit(x, y.astype(int))
    np.testing.assert_allclose(model.predict_proba(x)[:, 1], expected.predict(), rtol=1e-6)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(x), model.predict_proba(x))
    means = model.interval(x[:5], 0.95, of="mean")
    np.testing.assert_array_equal(again.interval(x[:5], 0.95, of="mean"), means)
    np.testing.assert_allclose(means, expected.get_prediction(design[:5]).conf_int(), rtol=1e-6)
    assert "link probit" in str(model.summary())


def test_means_of_an_identity_link_are_linear():
    x, y = outcomes("poisson")
    model = Regressor("poisson", network="linear", link="identity").fit(x, y)
    table = model.linear_.coefficients[:, 0].numpy()
    np.testing.assert_allclose(model.predict(x), table[0] + x @ table[1:], rtol=1e-9)


def test_an_unknown_link_lists_the_known():
    x, y = outcomes("poisson")
    with pytest.raises(UsageError, match=r"poisson has no link 'probit'\. Links: log, identity"):
        Regressor("poisson", network="linear", link="probit").fit(x, y)
    with pytest.raises(UsageError, match="network='linear'"):
        Regressor("poisson", link="identity").fit(x, y)
    with pytest.raises(UsageError, match="without an offset"):
        Regressor("poisson", network="linear", link="sqrt").fit(x, y, offset=y * 0)
