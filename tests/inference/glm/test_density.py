"""Gradients that are written out, against differences of the density."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from ansatz import likelihoods
from ansatz.errors import NumericalError, UsageError
from ansatz.inference.glm.correlation import lkj, root_of
from ansatz.inference.glm.target import Grouping, LinearTarget
from ansatz.linear.terms import Term, TermRows, read_terms
from ansatz.spec import TargetSpec

N = 60
NOISE = torch.Generator().manual_seed(0)
X = torch.randn(N, 2, generator=NOISE, dtype=torch.float64) * torch.tensor([1.0, 10.0]) + 3
GROUP = np.arange(N) % 4
COUNTS = torch.poisson(torch.full((N,), 3.0, dtype=torch.float64), generator=NOISE)
OUTCOMES = {
    "bernoulli": (COUNTS > 2).double(),
    "poisson": COUNTS,
    "normal": torch.randn(N, generator=NOISE, dtype=torch.float64) * 5 + 100,
    "student_t": torch.randn(N, generator=NOISE, dtype=torch.float64),
    "gamma": torch.rand(N, generator=NOISE, dtype=torch.float64) + 0.5,
    "negative_binomial": COUNTS,
    "categorical": torch.randint(0, 3, (N,), generator=NOISE),
    "ordinal": torch.randint(0, 4, (N,), generator=NOISE),
}


def likelihood_of(name):
    options = {} if name in ("bernoulli", "poisson", "categorical", "ordinal") else "constant"
    made = likelihoods.create(name, **({"dispersion": options} if options else {}))
    y = OUTCOMES[name]
    made.outputs(TargetSpec(classes=int(y.max()) + 1 if y.dtype == torch.int64 else 0))
    return made


def grouping(columns=("Intercept", "b"), correlated=True):
    values = np.stack([np.ones(N) if c == "Intercept" else X[:, 1].numpy() for c in columns], 1)
    term = Term(tuple(columns), ("g",), correlated)
    return Grouping(term, TermRows(GROUP, values), ("0", "1", "2", "3"), (1.0,) * len(columns))


def differences(density, x, h=1e-5):
    eye = h * torch.eye(x.shape[1], dtype=torch.float64)
    return torch.stack([(density(x + e)[0] - density(x - e)[0]) / (2 * h) for e in eye], 1)


@pytest.mark.parametrize("jacobian", [True, False])
@pytest.mark.parametrize("name", OUTCOMES)
def test_the_gradient_is_that_of_the_density(name, jacobian):
    target = LinearTarget(
        likelihood_of(name), X, OUTCOMES[name], ["a", "b"], weight=1 + torch.from_numpy(GROUP),
        groupings=[grouping()], jacobian=jacobian, priors={"a": "student_t(3, 0, 1)"},
    )  # fmt: skip
    x = target.start + 0.1 * torch.randn(2, target.size, generator=NOISE, dtype=torch.float64)
    _, gradient = target.density(x)
    expected = differences(target.density, x)
    assert_close(gradient, expected, rtol=1e-6, atol=1e-6 * float(expected.abs().max()))


@pytest.mark.parametrize("name", ["normal", "poisson", "categorical"])
def test_vectors_answer_as_the_density_does(name):
    """The weights in the columns' own units give the likelihood of the coordinates."""
    target = LinearTarget(likelihood_of(name), X, OUTCOMES[name], ["a", "b"])
    theta = target.start + 0.1 * torch.randn(3, target.size, generator=NOISE, dtype=torch.float64)
    rows = target.density.rows(theta.numpy())
    outputs = target.model.outputs
    for vector, own, expected in zip(target.vectors(theta.numpy()), theta, rows, strict=True):
        weight = vector[: 2 * outputs].reshape(outputs, 2)
        raw = X @ weight.T + vector[2 * outputs : 3 * outputs]
        fitted = target.model.fitted(target.criterion, own)
        assert_close(-fitted.loss(raw, OUTCOMES[name]).detach().numpy(), expected)


def test_lkj_one_is_uniform_over_correlations():
    """Of three numbers the first correlation is Beta(1.5, 1.5) on (-1, 1): its density ratio."""
    angles = np.array([[0.0, 0.0, 0.0], [0.8, 0.0, 0.0]])
    value, _ = lkj(root_of(np.zeros((2, 3)), angles), 1.0, jacobian=False)
    assert value[1] - value[0] == pytest.approx(0.5 * np.log(1 - np.tanh(0.8) ** 2))


def test_terms_are_read_as_lme4_reads_them():
    assert read_terms("1|a") == [Term(("Intercept",), ("a",), False)]
    assert read_terms(["x + z || a"]) == [Term(("Intercept", "x", "z"), ("a",), False)]
    assert read_terms("0 + x|a") == [Term(("x",), ("a",), False)]
    assert [t.group for t in read_terms("1|a/b")] == [("a",), ("a", "b")]
    for wrong in ("subject", "|subject", "0|subject"):
        with pytest.raises(UsageError, match="random"):
            read_terms(wrong)


def test_separated_outcomes_have_no_posterior_under_flat_priors():
    x = torch.arange(20, dtype=torch.float64)[:, None]
    y = (x[:, 0] > 9).double()
    made = likelihoods.create("bernoulli")
    with pytest.raises(NumericalError, match="separated"):
        LinearTarget(made, x, y, ["x"], priors={"coefficients": "flat"})
    assert LinearTarget(made, x, y, ["x"]).size == 2


def test_an_unknown_prior_suggests_the_nearest():
    with pytest.raises(UsageError, match="Did you mean 'sigma'"):
        LinearTarget(
            likelihood_of("normal"), X, OUTCOMES["normal"], ["a", "b"], priors={"sgma": "flat"}
        )
