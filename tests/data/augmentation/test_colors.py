"""Values that change where they are: brightness, contrast, saturation, hue, noise, blur, cutout."""

import colorsys
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import ndimage, stats
from torch.testing import assert_close

from ansatz.data.augmentation import Blur, Brightness, Contrast, Hue, Noise, PcaColor, RandomErasing
from ansatz.data.augmentation.colors import blended, gray, hue_turned
from ansatz.data.augmentation.corruptions import blurred
from ansatz.errors import UsageError


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def photographs(count=3, side=8):
    return torch.randint(256, (count, 3, side, side), dtype=torch.uint8)


@pytest.mark.parametrize("name", ["Brightness", "Contrast", "Color"])
@pytest.mark.parametrize("factor", [0.0, 0.4, 1.0, 1.7])
def test_enhancement_is_pillows(name, factor):
    """Pillow rounds to bytes, the mean or grey and then the result: two half steps of 1/255."""
    Image = pytest.importorskip("PIL.Image")
    from PIL import ImageEnhance

    images = photographs()
    x = images / 255
    reference = {
        "Brightness": 0.0,
        "Contrast": gray(x).mean((1, 2, 3), keepdim=True),
        "Color": gray(x),
    }
    y = blended(x, reference[name], torch.full((3,), factor))
    for image, found in zip(images, y, strict=True):
        picture = Image.fromarray(image.permute(1, 2, 0).contiguous().numpy())
        expected = np.asarray(getattr(ImageEnhance, name)(picture).enhance(factor)) / 255
        gap = np.abs(found.permute(1, 2, 0).numpy() - expected).max()
        assert gap <= (1 + max(1, abs(1 - factor))) / 255


def test_a_factor_is_undone_by_its_inverse_unless_it_was_clipped():
    x, twice, half = torch.rand(4, 3, 5, 5), torch.full((4,), 2.0), torch.full((4,), 0.5)
    for reference in (0.0, gray(x).mean((1, 2, 3), keepdim=True), gray(x)):
        there = blended(x, reference, twice, clip=False)
        assert_close(blended(there, reference, half, clip=False), x)
        assert (blended(blended(x, reference, twice), reference, half) - x).abs().max() > 0.01


def test_contrast_keeps_the_mean_grey_and_saturation_each_grey():
    x, factors = torch.rand(4, 3, 5, 5), torch.rand(4) * 2
    mean = gray(x).mean((1, 2, 3), keepdim=True)
    assert_close(gray(blended(x, mean, factors, clip=False)).mean((1, 2, 3), keepdim=True), mean)
    assert_close(gray(blended(x, gray(x), factors, clip=False)), gray(x))


@pytest.mark.parametrize("kind", [Brightness, Contrast])
def test_factors_are_uniform_around_1(kind):
    x = torch.tensor([0.1, 0.3]).view(1, 1, 2).expand(3000, 1, 2)
    y = kind(0.4, clip=False)(x, None, seeded())
    factors = (y[:, 0, 1] - y[:, 0, 0]) / 0.2
    assert stats.kstest(factors, stats.uniform(0.6, 0.8).cdf).pvalue > 1e-6


@pytest.mark.parametrize("turn", [-0.4, 0.0, 1 / 6, 0.25, 1.3])
def test_hue_is_colorsyss(turn):
    x = torch.cat([torch.rand(40, 3), torch.eye(3), 1 - torch.eye(3), torch.full((1, 3), 0.4)])
    y = hue_turned(x.view(-1, 3, 1), torch.full((len(x),), turn)).view(-1, 3)
    for before, after in zip(x.tolist(), y.tolist(), strict=True):
        h, s, v = colorsys.rgb_to_hsv(*before)
        assert after == pytest.approx(colorsys.hsv_to_rgb((h + turn) % 1, s, v), abs=1e-12)


def test_turning_hue_back_gives_the_colour_back():
    x, turns = torch.rand(5, 3, 4, 4), torch.rand(5) - 0.5
    assert_close(hue_turned(hue_turned(x, turns), -turns), x)


def test_hue_is_drawn_evenly_to_both_sides():
    red = torch.tensor([1.0, 0.0, 0.0]).view(1, 3, 1).expand(2000, 3, 1)
    y = Hue(0.1)(red, None, seeded())
    turns = torch.where(y[:, 1] > 0, y[:, 1], -y[:, 2]).flatten() / 6  # towards green, or blue
    assert stats.kstest(turns / 0.1, stats.uniform(-1, 2).cdf).pvalue > 1e-6


def test_noise_is_normal_of_the_given_standard_deviation():
    x = torch.rand(50, 2, 40)
    found = Noise(0.2)(x, None, seeded())
    assert stats.kstest(((found - x) / 0.2).flatten(), "norm").pvalue > 1e-6


def test_relative_noise_follows_the_unit_of_the_signal():
    x = torch.randn(4, 1, 100)
    small, large = (Noise(0.1, relative=True)(u * x, None, seeded()) for u in (1, 1000))
    assert_close(1000 * small, large)


@pytest.mark.parametrize("size", [(15,), (9, 12), (6, 5, 7)])
def test_blur_is_scipys(size):
    x, sigma = torch.rand(3, 2, *size), torch.tensor([0.4, 1.0, 1.6])
    y = blurred(x, sigma, radius=4)
    for before, s, after in zip(x, sigma.tolist(), y, strict=True):
        for channel, found in zip(before, after, strict=True):
            expected = ndimage.gaussian_filter(channel.numpy(), s, mode="reflect", radius=4)
            assert_close(found, torch.from_numpy(expected))


def test_blur_keeps_the_mean():
    x = torch.rand(5, 1, 8, 8)
    assert_close(Blur(0.5, 2.0)(x, None, seeded()).mean((1, 2, 3)), x.mean((1, 2, 3)))


def test_what_is_erased_is_a_box_of_the_given_side():
    x = torch.rand(300, 2, 9, 11) + 1
    y = RandomErasing(4, value=0.0)(x, None, seeded())
    gone = y == 0
    assert torch.equal(gone[:, 0], gone[:, 1]) and torch.equal(y[~gone], x[~gone])
    rows, columns = gone[:, 0].any(2), gone[:, 0].any(1)
    assert torch.equal(gone[:, 0], rows.unsqueeze(2) & columns.unsqueeze(1)), "not a box"
    assert 2 <= rows.sum(1).min() and rows.sum(1).max() == 4  # two where it reaches over the edge
    # The centre is anywhere in the frame: the start of a whole box is uniform over its places.
    start = rows.long().argmax(1)[(rows.sum(1) == 4)]
    counts = torch.bincount(start)
    assert stats.chisquare(counts.numpy()).pvalue > 1e-6


def test_erasing_leaves_the_mean_of_the_image():
    x = torch.rand(20, 3, 8, 8)
    y = RandomErasing(20)(x, None, seeded())  # wider than the image: little is left
    changed = y != x
    means = x.mean((2, 3), keepdim=True).expand_as(x)
    assert_close(y[changed], means[changed])
    kept = RandomErasing(3, p=0.0)(x, None, seeded())
    assert torch.equal(kept, x)


def test_pca_colors_are_those_of_numpys_covariance():
    images = photographs(20)
    augment = PcaColor.fit(images)
    pixels = images.permute(1, 0, 2, 3).reshape(3, -1).numpy() / 255
    p, values = np.array(augment.vectors), np.array(augment.values)
    assert p @ p.T == pytest.approx(np.eye(3), abs=1e-12)
    assert (p.T * values) @ p == pytest.approx(np.cov(pixels), rel=1e-9, abs=1e-12)


def test_pca_colors_of_bytes_of_floats_and_of_batches_are_the_same():
    images = photographs(20)
    one = PcaColor.fit(images)
    for other in (PcaColor.fit(images / 255), PcaColor.fit(images.split(7))):
        assert other.values == pytest.approx(one.values, rel=1e-9)


def test_pca_shifts_have_mean_0_and_the_squared_covariance():
    count, scale = 20_000, 0.1
    mix = torch.tensor([[0.3, 0.2, 0.1], [0.0, 0.2, 0.1], [0.1, 0.0, 0.3]])
    images = (torch.randn(200, 16, 3) @ mix).movedim(2, 1)
    augment = PcaColor.fit(images, scale=scale)
    covariance = images.movedim(1, 0).flatten(1).cov()
    shifts = augment(torch.zeros(count, 3, 2), None, seeded())
    assert torch.equal(shifts[:, :, 0], shifts[:, :, 1]), "one shift for all pixels of an image"
    shifts = shifts[:, :, 0]
    predicted = scale**2 * covariance @ covariance
    error = predicted.diag().sqrt() / math.sqrt(count)
    assert (shifts.mean(0).abs() < 5 * error).all()
    d = predicted.diag()
    scale_error = ((d[:, None] * d + predicted**2) / count).sqrt()
    assert ((shifts.T.cov() - predicted).abs() < 5 * scale_error).all()


@pytest.mark.parametrize("augment", [Brightness(), Contrast(), Noise(clip=True)])
def test_values_that_cutting_would_ruin_are_refused(augment):
    bytes_as_floats = torch.randint(256, (4, 1, 8, 8)).double()
    for x in (bytes_as_floats, (bytes_as_floats - 128) / 74):  # standardised
        with pytest.raises(UsageError, match=r"cuts values at 0 and 1, and x has .*clip=False"):
            augment(x)
    augment(torch.rand(4, 1, 8, 8) + 0.1 * torch.randn(4, 1, 8, 8))  # noise before it is fine
    replace(augment, clip=False)(bytes_as_floats)


@pytest.mark.filterwarnings("error")
def test_noise_that_drowns_a_signal_is_noted():
    volts = 1e-5 * torch.randn(4, 1, 100)
    with pytest.warns(
        UserWarning, match=r"drowns x, whose standard deviation is .*: relative=True"
    ):
        Noise(0.05)(volts)
    Noise(0.05, relative=True)(volts)
    Noise(0.05)(torch.rand(4, 1, 8, 8))
