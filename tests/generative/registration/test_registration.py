"""Registration: warps, invertible fields, a known field recovered, refusals."""

import pytest
import torch
from torch.testing import assert_close

from ansatz.data import Batch
from ansatz.errors import DataError, UsageError
from ansatz.generative.registration import (
    Registration,
    RegistrationNetwork,
    dice,
    integrate,
    jacobian_determinant,
    local_correlation,
    register,
    warp,
)
from ansatz.generative.registration.register import registered


def smooth_field(size, seed=0, height=1.5):
    """A few slow waves."""
    draws = torch.Generator().manual_seed(seed)
    coarse = torch.randn(1, len(size), *[4] * len(size), generator=draws)
    mode = "bicubic" if len(size) == 2 else "trilinear"
    return height * torch.nn.functional.interpolate(coarse, size, mode=mode, align_corners=True)


def texture(size, seed=1):
    draws = torch.Generator().manual_seed(seed)
    coarse = torch.randn(1, 1, *[max(n // 4, 2) for n in size], generator=draws)
    mode = "bicubic" if len(size) == 2 else "trilinear"
    return torch.nn.functional.interpolate(coarse, size, mode=mode, align_corners=True)


@pytest.mark.parametrize("size", [(6, 9), (4, 5, 6)])
def test_whole_displacements_are_shifts_of_the_axes_in_their_order(size):
    image = torch.randn(2, 3, *size)
    for axis in range(len(size)):
        field = torch.zeros(2, len(size), *size)
        field[:, axis] = 1.0
        inner = image.narrow(axis + 2, 1, size[axis] - 1)
        assert_close(warp(image, field).narrow(axis + 2, 0, size[axis] - 1), inner)


def test_half_displacements_interpolate_and_labels_stay_labels():
    image = torch.tensor([[[[0.0, 1.0, 4.0]]]])
    field = torch.zeros(1, 2, 1, 3)
    field[:, 1] = 0.5
    assert_close(warp(image, field)[0, 0, 0, :2], torch.tensor([0.5, 2.5]))
    assert set(warp(image, 0.7 * field, nearest=True).flatten().tolist()) <= {0.0, 1.0, 4.0}


@pytest.mark.parametrize("size", [(40, 32), (20, 18, 16)])
def test_a_velocity_and_its_negative_are_inverse_maps(size):
    v = smooth_field(size)
    found = registered(v, texture(size))
    assert found.inverse_error < 0.05 and found.folding == 0
    there_and_back = warp(warp(texture(size), found.displacement), found.inverse)
    inner = (..., *[slice(6, -6)] * len(size)) if len(size) == 2 else (..., *[slice(5, -5)] * 3)
    assert (there_and_back - texture(size))[inner].abs().mean() < 0.15


def test_integration_solves_the_differential_equation():
    """A linear velocity: the flow is the exponential, away from the border."""
    place = torch.arange(41.0) - 20
    v = torch.zeros(1, 2, 41, 41)
    v[0, 0] = 0.1 * place.unsqueeze(1)
    u = integrate(v, 8)
    expected = (torch.exp(torch.tensor(0.1)) - 1) * place
    assert_close(u[0, 0, 8:-8, 20], expected[8:-8], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("d", [2, 3])
def test_the_determinant_is_that_of_a_linear_map(d):
    matrix = 0.3 * torch.randn(d, d)
    grid = torch.stack(torch.meshgrid(*[torch.arange(5.0)] * d, indexing="ij"))
    u = torch.einsum("ij,j...->i...", matrix, grid).unsqueeze(0)
    expected = torch.linalg.det(torch.eye(d) + matrix)
    assert_close(jacobian_determinant(u), expected.expand(1, *[3] * d))


def test_local_correlation_ignores_brightness_and_contrast():
    x = texture((24, 24))
    assert_close(local_correlation(x, 3 - 7 * x), torch.ones(1), rtol=1e-4, atol=1e-4)
    assert local_correlation(x, texture((24, 24), 5)) < 0.7


@pytest.mark.parametrize("similarity", ["mse", "correlation"])
def test_a_known_smooth_field_is_recovered_to_half_a_pixel(similarity):
    size = (40, 40)
    moving, truth = texture(size), smooth_field(size, seed=3)
    fixed = warp(moving, integrate(truth))
    if similarity == "correlation":
        fixed = 2 - 3 * fixed
    found = register(moving, fixed, similarity=similarity, smoothness=0.01, steps=150)
    inner = (..., slice(6, -6), slice(6, -6))
    error = (found.displacement - integrate(truth))[inner].norm(dim=1)
    start = integrate(truth)[inner].norm(dim=1)
    assert error.mean() < 0.5 < 0.5 * start.mean() and found.folding == 0


def test_a_network_trains_to_register():
    torch.manual_seed(0)
    network, objective = RegistrationNetwork((16, 16), width=8), Registration(smoothness=0.01)
    moving = torch.cat([texture((16, 16), s) for s in range(4)])
    fixed = torch.cat([
        warp(m.unsqueeze(0), integrate(smooth_field((16, 16), s, 0.8)))
        for s, m in enumerate(moving)
    ])  # fmt: skip
    optimizer = torch.optim.Adam(network.parameters(), 3e-3)
    losses = []
    for _ in range(80):
        optimizer.zero_grad()
        loss = objective(network, Batch.of((moving, fixed), fixed))
        (loss.total / loss.count).backward()
        optimizer.step()
        losses.append(float(loss.total.detach()))
    assert losses[-1] < 0.4 * losses[0]


def test_dice_of_masks():
    a = torch.zeros(1, 4, 4, dtype=torch.bool)
    b = a.clone()
    a[0, :2], b[0, 1:3] = True, True
    assert_close(dice(a, b), torch.tensor([0.5]), check_dtype=False)


X = torch.rand(1, 1, 8, 8)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: register(X, torch.rand(1, 1, 9, 8)), DataError, "resample"),
        (lambda: register(X, torch.ones(1, 1, 8, 8)), DataError, "brightness"),
        (lambda: register(X + torch.nan, X), DataError, "finite"),
        (lambda: warp(torch.rand(1, 1, 8), torch.zeros(1, 1, 8)), UsageError, "images and volumes"),
        (lambda: warp(X, torch.zeros(1, 8, 8, 2)), UsageError, "has shape"),
        (lambda: Registration("ssd"), UsageError, "'mse' or 'correlation'"),
        (lambda: RegistrationNetwork((9,)), UsageError, "images and volumes"),
        (lambda: local_correlation(X, X, 4), UsageError, "odd"),
    ],
)  # fmt: skip
def test_wrong_settings_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
