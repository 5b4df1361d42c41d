from ansatz.likelihoods import Barron, Bernoulli, Gamma, Normal, Poisson, Truncated
from ansatz.likelihoods.registry import current_dispersion, with_dispersion


def test_the_dispersion_is_changed_and_a_known_one_is_not():
    assert current_dispersion(with_dispersion(Normal(), "constant")) == "constant"
    assert current_dispersion(with_dispersion(Gamma(dispersion="constant"), "predicted")) == (
        "predicted"
    )
    assert with_dispersion(Normal(dispersion=0.5), "constant").options == {"dispersion": 0.5}
    for likelihood in (Poisson(), Bernoulli()):
        assert (
            current_dispersion(likelihood) is None
            and with_dispersion(likelihood, "constant") is likelihood
        )


def test_other_options_of_the_likelihood_stay():
    assert with_dispersion(Normal(beta=0.2), "constant").options == {
        "beta": 0.2, "dispersion": "constant",
    }  # fmt: skip


def test_a_truncated_likelihood_keeps_its_bounds_and_a_measured_scale_is_kept():
    likelihood = with_dispersion(Truncated("normal", lower=0.0), "constant")
    assert likelihood.options == {
        "likelihood": "normal", "options": {"dispersion": "constant"}, "lower": 0.0, "upper": None,
    }  # fmt: skip
    for likelihood in (Barron(dispersion="mad"), Barron(alpha=-2.0, dispersion="mad")):
        assert with_dispersion(likelihood, "predicted") is likelihood
