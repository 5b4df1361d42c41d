"""Maps that read an image between its pixels."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import ndimage, stats
from torch.testing import assert_close

from ansatz.data.augmentation import Affine, Elastic, Rotate, Scale, affine_resample

SCIPY = {"reflect": "reflect", "border": "nearest", "zeros": "grid-constant"}
paddings = pytest.mark.parametrize("padding", SCIPY)
sizes = pytest.mark.parametrize("size", [(12,), (8, 11), (5, 7, 6)])


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def scipys(image, matrix, *, padding, order):
    """y(p) = x(A p + b), with places from the middle: scipy counts them from a corner."""
    matrix = matrix.numpy()
    A, b = matrix[:, :-1], matrix[:, -1]
    middle = (np.array(image.shape) - 1) / 2
    offset = middle + b - A @ middle
    return ndimage.affine_transform(
        image.numpy(), A, offset, order=order, mode=SCIPY[padding], prefilter=False
    )


def random_maps(count, axes):
    A = torch.eye(axes) + 0.2 * torch.randn(count, axes, axes)
    return torch.cat([A, 1.5 * torch.randn(count, axes, 1)], 2)


@paddings
@sizes
def test_affine_maps_are_scipys(size, padding):
    x, matrices = torch.rand(3, 2, *size), random_maps(3, len(size))
    y, _ = affine_resample(x, None, matrices, padding=padding)
    for before, matrix, after in zip(x, matrices, y, strict=True):
        for channel, found in zip(before, after, strict=True):
            expected = scipys(channel, matrix, padding=padding, order=1)
            assert_close(found, torch.from_numpy(expected))


@paddings
@sizes
def test_labels_are_those_of_scipys_nearest_cell(size, padding):
    masks, matrices = torch.randint(1, 9, (3, *size)), random_maps(3, len(size))
    _, moved = affine_resample(torch.rand(3, 1, *size), masks, matrices, padding=padding)
    for before, matrix, after in zip(masks, matrices, moved, strict=True):
        expected = scipys(before, matrix, padding=padding, order=0)
        assert np.array_equal(after.clamp(min=0).numpy(), expected)  # unknown is scipy's 0


def smooth(count, side):
    place = torch.arange(side) / side
    phase = torch.rand(count, 1, 2)
    rows, columns = (torch.sin(2 * math.pi * (place + phase[..., [k]])) for k in (0, 1))
    return 0.5 + 0.25 * (rows.unsqueeze(3) + columns.unsqueeze(2)).view(count, 1, side, side)


def test_the_inverse_map_undoes_a_map_up_to_interpolation():
    """Linear interpolation errs by at most h^2 max|x''| / 8 per axis, here twice."""
    side = 64
    x, angle = smooth(4, side), torch.tensor(0.3)
    turn = torch.tensor([[angle.cos(), angle.sin()], [-angle.sin(), angle.cos()]]) * 0.9
    there = torch.cat([turn, torch.tensor([[1.3], [-0.7]])], 1).expand(4, 2, 3)
    inverse = torch.linalg.inv(turn)
    back = torch.cat([inverse, -inverse @ there[0, :, 2:]], 1).expand(4, 2, 3)
    y, _ = affine_resample(affine_resample(x, None, there)[0], None, back)
    middle = slice(side // 4, -side // 4)  # what never left the frame
    bound = 2 * 2 * 0.25 * (2 * math.pi / side) ** 2 / 8
    assert (y - x)[..., middle, middle].abs().max() < bound


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_a_quarter_turn_read_between_the_cells_is_the_quarter_turn(turns):
    x, masks = torch.rand(3, 2, 8, 8), torch.randint(5, (3, 8, 8))
    cos, sin = [(0, 1), (-1, 0), (0, -1)][turns - 1]
    matrices = torch.tensor([[cos, sin, 0.0], [-sin, cos, 0.0]]).expand(3, 2, 3)
    y, moved = affine_resample(x, masks, matrices)
    assert_close(y, x.rot90(turns, (-2, -1)))
    assert torch.equal(moved, masks.rot90(turns, (-2, -1)))
    assert_close(affine_resample(x.float(), None, matrices)[0], y.float(), atol=1e-5, rtol=0)


def test_the_matrices_are_the_inverse_of_turn_times_scale_times_shear():
    x = torch.rand(500, 1, 4, 4)
    augment = Affine(25, scale=0.3, shear=0.4, shift=3)
    found = augment.matrices(x, seeded())
    forward = torch.linalg.inv(found[:, :, :2])
    z = torch.linalg.det(forward).sqrt()
    # F e_2 = z R e_2 is the second column: its angle and length are those of rotation and scale
    angle = torch.atan2(-forward[:, 0, 1], forward[:, 1, 1])
    R = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], 1).view(-1, 2, 2)
    H = R.mT @ forward / z[:, None, None]
    h = H[:, 1, 0]
    t = -(forward @ found[:, :, 2:]).squeeze(2)
    assert_close(H[:, 0], torch.tensor([1.0, 0.0]).expand(500, 2))
    assert_close(H[:, 1, 1], torch.ones(500))
    draws = {  # each uniform between - and + its strength
        "angle": angle / math.radians(25),
        "log scale": z.log() / math.log(1.3),
        "shear": h / 0.4,
        "shift down": t[:, 0] / 3,
        "shift to the right": t[:, 1] / 3,
    }
    for name, values in draws.items():
        assert stats.kstest(values, stats.uniform(-1, 2).cdf).pvalue > 1e-6, name


def test_axes_that_are_stretched_apart_have_factors_of_their_own():
    x = torch.rand(500, 1, 4, 4)
    forward = torch.linalg.inv(
        Affine(25, scale=0.3, each_axis=True, shear=0.4).matrices(x, seeded())[:, :, :2]
    )
    across = forward[:, :, 1].norm(dim=1)  # F e_2 = z_2 R e_2: what is slanted and turned later
    down = torch.linalg.det(forward) / across
    draws = torch.stack([down, across]).log() / math.log(1.3)
    for values in draws:
        assert stats.kstest(values, stats.uniform(-1, 2).cdf).pvalue > 1e-6
    assert abs(np.corrcoef(draws)[0, 1]) < 0.2


@pytest.mark.parametrize("each_axis", [False, True])
def test_a_volume_is_stretched_along_all_its_axes(each_axis):
    augment = Affine(scale=0.3, each_axis=each_axis)
    found = augment.matrices(torch.rand(9, 1, 2, 3, 4), seeded())
    factors = torch.diagonal(found[:, :, :3], dim1=1, dim2=2)
    assert_close(found[:, :, :3], torch.diag_embed(factors))
    assert bool((factors[:, :1] == factors).all()) is not each_axis
    assert factors.log().abs().max() < math.log(1.3)


def test_a_positive_shift_moves_down_and_to_the_right_and_enlarging_enlarges():
    class Fixed(Affine):
        def matrices(self, x, generator):
            ones = {"scale": 0.0, "shift": 0.0} | {k: getattr(self, k) for k in ("scale", "shift")}
            z = 1 + ones["scale"]
            A = torch.eye(2).expand(len(x), 2, 2) / z
            return torch.cat([A, torch.full((len(x), 2, 1), -ones["shift"] / z)], 2)

    x = torch.zeros(1, 1, 9, 9)
    x[:, :, 3:6, 3:6] = 1
    shifted = Fixed(shift=1.0, padding="zeros")(x)
    assert_close(shifted, x.roll((1, 1), (2, 3)))
    assert Fixed(scale=1.0, padding="zeros")(x)[0].sum() == pytest.approx(4 * 9, rel=1e-6)


def test_rotate_and_scale_are_affine_maps():
    x = torch.rand(4, 1, 8, 8)
    assert torch.equal(Rotate(20)(x, None, seeded()), Affine(20)(x, None, seeded()))
    assert torch.equal(Scale(0.2)(x, None, seeded()), Affine(scale=0.2)(x, None, seeded()))


def test_what_is_flat_stays_flat():
    x = torch.full((5, 3, 9, 9), 0.37)
    for augment in (Affine(90, scale=0.5, shear=0.5, shift=4), Elastic(3.0)):
        assert_close(augment(x, None, seeded()), x)


def test_a_volume_is_turned_within_its_slices():
    x = torch.rand(3, 2, 4, 7, 7)
    flat = x.transpose(1, 2).flatten(0, 1)  # slices as images
    y = Rotate(40)(x, None, seeded())
    matrices = Affine(40).matrices(x, seeded())[:, 1:, 1:].repeat_interleave(4, 0)
    expected, _ = affine_resample(flat, None, matrices)
    assert_close(y.transpose(1, 2).flatten(0, 1), expected)


def test_elastic_displacements_have_the_given_size():
    """At a node the field is N(0, pixels^2), and a ramp shows it."""
    side, pixels = 17, 1.0
    ramp = torch.arange(float(side)).view(1, 1, side, 1).expand(1000, 1, side, side)
    y = Elastic(pixels, nodes=3)(ramp, None, seeded())
    moved = y[:, 0, side // 2, side // 2] - side // 2  # the node in the middle
    assert stats.kstest(moved / pixels, "norm").pvalue > 1e-6


def keys(t, a=-0.75):
    """The cubic convolution kernel of Keys (1981), with torch's constant."""
    t = abs(t)
    inner, outer = (a + 2) * t**3 - (a + 3) * t**2 + 1, a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a
    return inner if t <= 1 else outer if t < 2 else 0.0


def joined(u, size):
    """u(p) = sum_k prod_axis w_k(p) u_k, the outermost nodes repeated beyond."""
    nodes = len(u)
    for axis, count in enumerate(size):
        weights = np.zeros((count, nodes))
        for pixel, k in itertools.product(range(count), range(-2, nodes + 2)):
            place = pixel * (nodes - 1) / (count - 1)
            weights[pixel, min(max(k, 0), nodes - 1)] += keys(place - k)
        u = np.moveaxis(np.tensordot(weights, u, (1, axis)), 0, axis)
    return u


@paddings
@sizes
def test_elastic_is_scipys_reading_at_the_displaced_places(size, padding):
    axes, pixels, nodes, generator = len(size), 1.3, 3, seeded(1)
    x, masks = torch.rand(1, 1, *size), torch.randint(4, (1, *size))
    y, labels = Elastic(pixels, nodes=nodes, padding=padding)(x, masks, seeded(1))
    Affine().matrices(x, generator)  # drawn first; of no strength
    drawn = torch.randn(1, axes, *[nodes] * axes, generator=generator)[0].flip(0)  # last axis first
    field = np.stack([joined(u.numpy(), size) for u in drawn])
    places, mode = np.indices(size) + pixels * field, SCIPY[padding]
    expected = ndimage.map_coordinates(x[0, 0].numpy(), places, order=1, mode=mode)
    assert_close(y[0, 0], torch.as_tensor(expected))
    moved = ndimage.map_coordinates(masks[0].numpy(), places, order=0, mode=mode, cval=-1)
    assert torch.equal(labels[0], torch.as_tensor(moved))


def test_a_rotation_within_a_deformation_is_the_rotation():
    """As the field vanishes what is left is the affine map, in the same resampling."""
    x, masks = torch.rand(4, 1, 9, 9), torch.randint(3, (4, 9, 9))
    expected, moved = Affine(30, scale=0.2)(x, masks, seeded())
    for pixels in (0.0, 1e-9):
        y, labels = Elastic(pixels, degrees=30, scale=0.2)(x, masks, seeded())
        assert_close(y, expected, atol=1e-7, rtol=0)
        assert torch.equal(labels, moved)


def test_a_small_elastic_deformation_keeps_neighbours_together():
    place = torch.arange(40.0)
    ramp = (place.unsqueeze(1) + place).view(1, 1, 40, 40).expand(20, 1, 40, 40)
    y = Elastic(1.0, nodes=3, padding="border")(ramp, None, seeded())
    steps = y.diff(dim=-1)[..., 5:-5, 5:-5]
    assert steps.min() > 0, "the deformation folds"


@pytest.mark.parametrize("augment", [Affine(10, shift=3.0), Elastic(3.0), Scale(0.1)])
def test_half_precision_is_read_where_single_precision_is(augment):
    x, masks = torch.rand(1, 1, 256, 256).bfloat16(), torch.arange(256).expand(1, 256, 256) + 5000
    y, labels = augment(x, masks, seeded())
    expected, moved = augment(x.float(), masks, seeded())
    assert_close(y, expected.bfloat16(), rtol=0, atol=0)
    assert torch.equal(labels, moved)
