import math

import pytest
import torch
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.layers import initializers

N, M = 200, 300  # inputs, outputs


def draw(name, shape=(M, N), seed=0, **options):
    generator = torch.Generator().manual_seed(seed)
    return initializers.create(name, torch.empty(shape), generator=generator, **options)


SD = {
    "normal": 1.0,
    "uniform": 1.0,
    "lecun_normal": 1 / math.sqrt(N),
    "lecun_uniform": 1 / math.sqrt(N),
    "glorot_normal": math.sqrt(2 / (N + M)),  # not sqrt(2 / N + M)
    "glorot_uniform": math.sqrt(2 / (N + M)),
    "he_normal": math.sqrt(2 / N),
    "he_uniform": math.sqrt(2 / N),
}


@pytest.mark.parametrize("name", SD)
@pytest.mark.parametrize("gain", [1.0, 0.1])
def test_the_standard_deviation_is_the_schemes(name, gain):
    W, sd = draw(name, gain=gain), SD[name] * gain
    # Relative SE of a variance from n draws: sqrt((kurtosis - 1) / n), kurtosis 3 or 9/5.
    kurtosis = 1.8 if "uniform" in name else 3.0
    tolerance = 5 * math.sqrt((kurtosis - 1) / W.numel())
    assert (W**2).mean().item() == pytest.approx(sd**2, rel=tolerance)
    assert abs(W.mean().item()) < 5 * sd / math.sqrt(W.numel())


@pytest.mark.parametrize("name", [name for name in SD if "uniform" in name])
def test_a_uniform_scheme_fills_plus_minus_root_three_standard_deviations(name):
    W, bound = draw(name), math.sqrt(3) * SD[name]
    assert W.abs().max() <= bound
    assert W.abs().max() > 0.999 * bound  # 60,000 draws all below it: probability e^-60


@pytest.mark.parametrize("name", initializers.names())
def test_a_scheme_is_a_function_of_its_generator_alone(name):
    state = torch.get_rng_state()
    assert torch.equal(draw(name), draw(name))
    assert torch.equal(torch.get_rng_state(), state)
    if name not in ("zeros", "constant"):
        assert not torch.equal(draw(name), draw(name, seed=1))


@pytest.mark.parametrize("name", initializers.names())
def test_a_scheme_works_on_meta_tensors_and_on_layers_without_inputs(name):
    assert initializers.create(name, torch.empty(3, 2, device="meta")).shape == (3, 2)
    assert initializers.create(name, torch.empty(3, 0)).shape == (3, 0)


def test_the_other_names_are_the_same_schemes():
    for ours, theirs in [("glorot", "xavier"), ("he", "kaiming")]:
        for likelihood in ("normal", "uniform"):
            assert torch.equal(draw(f"{ours}_{likelihood}"), draw(f"{theirs}_{likelihood}"))
    assert_close(draw("constant", gain=0.01), torch.full((M, N), 0.01))
    assert not draw("zeros").any()


def test_convolutions_count_their_receptive_field():
    W = draw("he_normal", shape=(64, 32, 3, 3))
    assert W.var().item() == pytest.approx(2 / (32 * 9), rel=5 * math.sqrt(2 / W.numel()))


def test_orthogonal_weights_have_singular_values_one_and_keep_norms():
    W, x = draw("orthogonal", shape=(40, 40)), torch.randn(40)
    assert_close(torch.linalg.svdvals(W), torch.ones(40))
    assert_close((W @ x).norm(), x.norm())
    for shape in ((50, 20), (20, 50)):
        assert_close(torch.linalg.svdvals(draw("orthogonal", shape=shape)), torch.ones(20))


def test_orthogonal_eigenvalues_lie_on_the_unit_circle_in_complex_pairs():
    """Not at +-1, as some texts say."""
    values = torch.linalg.eigvals(draw("orthogonal", shape=(40, 40)))
    assert_close(values.abs(), torch.ones(40))
    assert (values.imag.abs() > 0.1).sum() >= 20


def test_a_vector_has_no_fans():
    with pytest.raises(ValueError, match=r"2 or more axes, got shape \(3,\)"):
        draw("he_normal", shape=(3,))
    with pytest.raises(UsageError, match="Did you mean 'he_normal'"):
        draw("he_norml")


def mean_square_through(scheme, phi, depth, n, nets):
    """Mean over nets of |h_depth|^2 / |h_0|^2."""
    h = torch.ones(nets, n, 1)
    for layer in range(depth):
        W = torch.stack([draw(scheme, (n, n), seed=layer * nets + i) for i in range(nets)])
        h = phi(W @ h)
    return (h**2).mean().item()


def test_he_keeps_the_mean_square_through_ten_relu_layers():
    # A layer multiplies |h|^2 by a factor of mean 1 and variance
    # (4/n) Var(relu(z)^2) = (4/n)(3/2 - 1/4) = 5/n.
    n, nets, depth = 128, 30, 10
    se = math.sqrt(((1 + 5 / n) ** depth - 1) / nets)
    found = mean_square_through("he_normal", torch.relu, depth, n, nets)
    assert found == pytest.approx(1, abs=5 * se)


def test_lecun_keeps_the_variance_through_ten_linear_layers():
    n, nets, depth = 128, 30, 10
    se = math.sqrt(((1 + 2 / n) ** depth - 1) / nets)  # |Wx|^2 / |x|^2 is chi2_n / n
    found = mean_square_through("lecun_normal", lambda z: z, depth, n, nets)
    assert found == pytest.approx(1, abs=5 * se)


def test_unit_normal_weights_explode_by_half_the_width_per_relu_layer():
    n, nets, depth = 128, 30, 3
    se = math.sqrt(((1 + 5 / n) ** depth - 1) / nets)
    found = mean_square_through("normal", torch.relu, depth, n, nets)
    assert found / (n / 2) ** depth == pytest.approx(1, abs=5 * se)
