"""Pictures keep their cells, perturbations do what they say."""

import base64
import io
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ansatz.figures.montage import blended, coarse, montage, pictures, strip
from ansatz.structures.grid.report.robustness import perturbed, robustness


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def bytes_of(rng, *shape):
    return rng.integers(0, 256, shape, dtype=np.uint8)


def test_a_picture_has_the_tones_of_its_image_to_one_in_64(rng):
    images = bytes_of(rng, 3, 8, 6, 3)
    assert np.abs(pictures(images).astype(int) - images).max() <= 2  # half of 255 / 63
    grey = pictures(images[..., :1])
    assert np.abs(grey.astype(int) - images[..., :1]).max() <= 2 and grey.shape[-1] == 3
    assert_array_equal(pictures(images[..., 0]), grey)
    assert_array_equal(coarse(np.array([0.0, 255.0]), 4), [0, 255])


def test_a_large_image_is_averaged_down(rng):
    image = bytes_of(rng, 1, 64, 32, 1)
    means = image.reshape(1, 16, 4, 8, 4).mean((2, 4))
    assert_allclose(pictures(image, 16)[..., 0], means, atol=2.6)


def test_numbers_are_stretched_and_opacity_is_left_out(rng):
    shown = pictures(np.array([[[[-1.0], [3.0]]]]))
    assert_array_equal(shown[0, 0, :, 0], [0, 255])
    four = bytes_of(rng, 2, 4, 4, 4)
    assert_array_equal(pictures(four), pictures(four[..., :3]))
    with pytest.raises(ValueError, match=r"\(N, H, W, C\), got \(3,\)"):
        pictures(np.zeros(3))


def test_every_picture_stands_at_its_corner(rng):
    shown = bytes_of(rng, 5, 4, 6, 3)
    found = montage(shown, columns=2, text=0.5, head=0.3)
    for i, picture in enumerate(shown):
        left, top = found.corner(i)
        assert_array_equal(found.image[top : top + 4, left : left + 6, :3], picture)
    assert found.image[..., 3].sum() == 255 * 5 * 24  # all else is transparent


def test_a_drawing_embeds_the_cells_themselves(rng):
    from PIL import Image

    shown = bytes_of(rng, 2, 32, 32, 3)
    svg = strip(shown, ["a", "b"], columns=2)
    (data,) = re.findall(r'"data:image/png;base64,([^"]+)"', svg)
    image = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGBA"))
    assert_array_equal(
        image, montage(shown, columns=2, text=(0.14 + 0.05) / (6.6 / 2 / 1.06)).image
    )
    assert "pixelated" in svg or "crisp-edges" in svg


def test_long_labels_of_rows_have_the_room_they_need():
    """Right-aligned at the pictures, a label that is too long would begin left of the page."""
    shown = np.zeros((1, 8, 8, 3), np.uint8)
    for label in ("a", "automobile: > 99.9 %\nis standing"):
        found = strip(shown, [""], columns=1, lines=0, side=1.0, labels=[label])
        width = float(re.search(r'viewBox="0 0 ([\d.]+)', found)[1]) / 72
        assert width - 1.06 >= 0.06 * max(map(len, label.split("\n")))


def test_heat_is_blue_above_zero_and_vermilion_below():
    ground = np.full((1, 10, 10, 3), 255, np.uint8)
    heat = np.zeros((1, 10, 10))
    heat[0, :2], heat[0, -2:] = 3, -3
    found = blended(ground, heat)[0].astype(int)
    assert_allclose(found[0, 0], (32, 128, 192), atol=2)
    assert_allclose(found[-1, 0], (213, 94, 0), atol=2)
    assert_array_equal(found[5, 0], (255, 255, 255))
    assert_array_equal(blended(ground, 0 * heat), ground)


def test_a_shift_moves_every_image_by_its_strength(rng):
    images = bytes_of(rng, 40, 12, 16, 2)
    moved = perturbed(images, "shift", 3)
    seen = set()
    for before, after in zip(images, moved, strict=True):
        padded = np.pad(before, ((3, 3), (3, 3), (0, 0)), "edge")
        places = [
            (i, j)
            for i in (0, 3, 6)
            for j in (0, 3, 6)
            if np.array_equal(padded[i : i + 12, j : j + 16], after)
        ]
        assert len(places) == 1
        seen.add(places[0])
    assert seen == {(i, j) for i in (0, 3, 6) for j in (0, 3, 6)} - {(3, 3)}


def test_a_rotation_by_a_right_angle_is_a_quarter_turn_either_way(rng):
    images = bytes_of(rng, 20, 9, 9, 1)
    turned = perturbed(images, "rotation", 90)
    ways = [
        [np.array_equal(np.rot90(a, k), b) for k in (1, 3)]
        for a, b in zip(images, turned, strict=True)
    ]
    assert all(sum(way) == 1 for way in ways) and {way[0] for way in ways} == {True, False}


def test_noise_has_its_spread_and_grows_on_the_same_draw():
    images = np.full((50, 16, 16, 1), 128, np.uint8)
    weak, strong = (perturbed(images, "noise", s).astype(float) - 128 for s in (0.05, 0.1))
    # The sd of 12800 draws errs by 1 / sqrt(2 * 12800) = 0.6 %; rounding adds 1/12 to the variance.
    assert weak.std() == pytest.approx(np.sqrt((255 * 0.05) ** 2 + 1 / 12), rel=0.03)
    assert np.abs(strong - 2 * weak).max() <= 1.5
    with pytest.raises(ValueError, match="shift, rotation or noise, got 'blur'"):
        perturbed(images, "blur", 1)


def test_curves_begin_with_the_images_as_they_are(rng):
    images, truth = bytes_of(rng, 30, 16, 16, 1), rng.integers(0, 2, 30)

    def predict(x):
        bright = x[:, :8].mean((1, 2, 3)) > x[:, 8:].mean((1, 2, 3))
        return np.eye(2)[bright.astype(int)]

    curves = robustness(predict, images, truth)
    right = int((predict(images).argmax(1) == truth).sum())
    assert [curve.correct[0] for curve in curves] == [right] * 3
    assert curves[0].strength == [0, 1, 2, 3, 4] and curves[2].strength[-1] == 30
    assert robustness(predict, images, truth) == curves
